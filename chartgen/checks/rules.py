"""Rules of `rules.yaml`, judged for one job; the template that `composer/rule_template.py` makes gives the same."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from chartgen.checks.facts import FACTS, of_a_layout, whole_number
from chartgen.checks.job import Job, once, once_for_layouts
from chartgen.composer.expressions import dotted_name, fields, parse_expression
from chartgen.composer.library import Library
from chartgen.composer.rules import COMMON, FILE, ValuesRule, rules_of
from chartgen.errors import ChartgenError
from chartgen.findings import KeyProblem
from chartgen.helm.chart import Chart

# The first part of the keys whose rules are about sizes: they divide each other, and fit the program.
_SIZES = ("nodes", "gpusPerNode", "model", "sequenceLength", "parallelism", "batch", "precision")
# A rule about sizes with another key, and one about something else with such a key.
_ALSO_SIZES, _NO_SIZE = "uneven-stages", "rotary-base-of-the-family"


class Scope(NamedTuple):
    """What an expression is evaluated for: a job, and an item of the rule's list."""

    job: Job
    item: Any = None


Value: TypeAlias = Callable[[Scope], Any]


def judge(job: Job) -> Iterator[tuple[ValuesRule, KeyProblem]]:
    """Yield a claim for each rule that a job breaks."""
    of_sizes = _of_sizes(job)
    for rule in rules_for(job):
        for claim in of_sizes[rule] if rule in of_sizes else broken(rule, job):
            yield rule, claim


def check_users_rules(job: Job, chart: Chart, taken: Collection[str]) -> None:
    """Raise ChartgenError with all wrong names and types in rules of users; chartgen's are checked in a build."""
    library, workload = job.target.library, job.workload_kind.folders
    parts = (*(launcher.path for launcher in job.target.launchers), *(each.path for each in job.target.fragments))
    if not job.target.policies and _are_builtin(library, (*workload, *parts)):
        return
    from chartgen.composer.rule_lines import rule_lines

    foreign = [rule for rule in rules_of(job.target, workload) if not library.is_builtin(Path(rule.document.path))]
    if clashes := [
        rule.document.problem(f"{rule.id} is the id of another check", (*rule.at, "id"), "choose another id")
        for rule in foreign
        if rule.id in taken
    ]:
        raise ChartgenError(clashes)
    if foreign:
        tasks = tuple((launcher.name, launcher.task) for launcher in job.target.launchers)
        rule_lines(chart.name, tuple(foreign), chart.files["values.schema.json"], tasks)


@lru_cache(maxsize=64)
def _are_builtin(library: Library, folders: tuple[Path, ...]) -> bool:
    return all(map(library.is_builtin, folders))


def miscounts(job: Job, *severities: str) -> bool:
    """Report whether sizes of a job break a rule that all charts share, so that nothing can be calculated from them."""
    return any(claims and rule.severity in severities for rule, claims in _of_sizes(job).items())


@once
def _of_sizes(job: Job) -> dict[ValuesRule, list[KeyProblem]]:
    """Return the claims of each rule about sizes that all charts share."""
    return {rule: [*broken(rule, job)] for rule in rules_for(job) if _about_sizes(rule)}


@lru_cache(maxsize=4096)
def _about_sizes(rule: ValuesRule) -> bool:
    named = rule.key.partition(".")[0] in _SIZES and rule.id != _NO_SIZE
    return rule.document.path == COMMON / FILE and (named or rule.id == _ALSO_SIZES)


def broken(rule: ValuesRule, job: Job) -> Iterator[KeyProblem]:
    """Yield a claim for each item of a job that breaks a rule; none if the rule does not apply."""
    for item in (value(rule.each)(Scope(job)) or ()) if rule.each else (None,):
        scope = Scope(job, item)
        if (rule.when and not value(rule.when)(scope)) or value(rule.require)(scope):
            continue
        key, text, hint = (message(each)(scope) for each in (rule.key, rule.message, rule.hint))
        yield KeyProblem(key, text, hint, tuple(message(each)(scope) for each in rule.also))


class Rulebook:
    """Rules for all layouts of a job: each is judged once for the sizes that it names."""

    def __init__(self, rules: Iterable[ValuesRule]) -> None:
        self._rules = {rule: _sizes_in(rule) for rule in rules}
        self._reads = {name: value(name) for names in self._rules.values() for name in names}

    def claims(self, job: Job) -> Iterator[KeyProblem]:
        """Yield a claim for each rule that a layout breaks, with words for the first layout of the same sizes."""
        scope, known = Scope(job), job.fixed.setdefault(self, {})
        sizes = {name: repr(read(scope)) for name, read in self._reads.items()}
        for rule, names in self._rules.items():
            key = (rule, *map(sizes.__getitem__, names))
            if key not in known:
                known[key] = [*broken(rule, job)]
            yield from known[key]


@lru_cache(maxsize=4096)
def _sizes_in(rule: ValuesRule) -> tuple[str, ...]:
    """Return the names in which layouts of a job differ, of those that decide what a rule reports."""
    trees = [parse_expression(text) for text in (rule.each, rule.when, rule.require) if text]
    trees += [tree for text in (rule.key, *rule.also) for _, tree in fields(text) if tree]
    return tuple(sorted({name for tree in trees for name in _named(tree) if of_a_layout(name)}))


def _named(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.expr) and (name := dotted_name(node)):
        yield name
    else:
        for child in ast.iter_child_nodes(node):
            yield from _named(child)


@once_for_layouts
def rules_for(job: Job) -> list[ValuesRule]:
    """Return the rules of a job's chart that are for its launcher and task."""
    every = rules_of(job.target, job.workload_kind.folders, job.launcher.name)
    return [rule for rule in every if job.launcher.task in rule.tasks and (job.describes_model or not rule.about)]


_UNITS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}
# As far as a template looks for divisors, down from a number and around it.
_DIVISORS = 4096


@lru_cache(maxsize=4096)
def value(text: str) -> Value:
    """Return an expression, ready to be evaluated."""
    return _compiled(parse_expression(text))


@lru_cache(maxsize=4096)
def message(text: str) -> Callable[[Scope], str]:
    """Return a text with expressions in braces, ready to be filled in."""
    parts = [part if node is None else _compiled(node) for part, node in fields(text)]
    return lambda scope: "".join(part if isinstance(part, str) else _printed(part(scope)) for part in parts)


def _printed(found: Any) -> str:
    if found is None or isinstance(found, bool):
        return "null" if found is None else str(found).lower()
    if isinstance(found, list | tuple):
        return ", ".join(map(str, found))
    return f"{found:g}" if isinstance(found, float) else str(found)


def _compiled(node: ast.expr) -> Value:
    return _COMPILERS[type(node)](node)


def _constant(node: Any) -> Value:
    return lambda _: node.value


def _name(node: Any) -> Value:
    name = dotted_name(node)
    if name == "each":
        return lambda scope: scope.item
    if name in FACTS:
        fact = FACTS[name]
        return lambda scope: fact(scope.job)
    if isinstance(node, ast.Name):
        return lambda scope: scope.job.values.get(node.id)
    above, key = _compiled(node.value), node.attr
    return lambda scope: (above(scope) or {}).get(key)


def _subscript(node: Any) -> Value:
    above, key = _compiled(node.value), _compiled(node.slice)
    return lambda scope: (above(scope) or {}).get(key(scope))


def _list(node: Any) -> Value:
    items = [_compiled(element) for element in node.elts]
    return lambda scope: [each(scope) for each in items]


def _arithmetic(node: Any) -> Value:
    left, right = _compiled(node.left), _compiled(node.right)
    if isinstance(node.op, ast.Div):
        return lambda scope: _size(left(scope)) / max(_whole(right(scope)), 1)
    function = _ARITHMETIC[type(node.op)]
    return lambda scope: _wrapped(function(_whole(left(scope)), _whole(right(scope))))


def _wrapped(number: int) -> int:
    """Keep a number to 64 bits, as Go does."""
    return (number + 2**63) % 2**64 - 2**63


def _quotient(left: int, right: int) -> int:
    """Divide without the rest; what is below 0 is rounded up, as Go does."""
    quotient = abs(left) // max(right, 1)
    return quotient if left >= 0 else -quotient


def _whole(found: Any) -> int:
    return 0 if found is None else int(found)


def _logic(node: Any) -> Value:
    tests, decisive = [_compiled(each) for each in node.values], isinstance(node.op, ast.Or)

    def judge(scope: Scope) -> bool:
        for test in tests:  # any() and all() would take half as long again
            if bool(test(scope)) is decisive:
                return decisive
        return not decisive

    return judge


def _denial(node: Any) -> Value:
    operand = _compiled(node.operand)
    return lambda scope: not operand(scope)


def _choice(node: Any) -> Value:
    test, body, other = map(_compiled, (node.test, node.body, node.orelse))
    return lambda scope: body(scope) if test(scope) else other(scope)


def _comparison(node: Any) -> Value:
    compare, left, right = _COMPARE[type(node.ops[0])], _compiled(node.left), _compiled(node.comparators[0])
    return lambda scope: compare(left(scope), right(scope))


def _equal(left: Any, right: Any) -> bool:
    """Report whether two values are the same; null is 0 among numbers, and empty among texts."""
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if isinstance(left, str) and isinstance(right, int | float):
        left = float(left)
    if isinstance(left, str) or isinstance(right, str):
        return bool((left or "") == (right or ""))
    return bool((left or 0) == (right or 0))


def _among(left: Any, items: Any) -> bool:
    return any(_equal(left, each) for each in items or ()) if left is None else left in (items or ())


def _size(found: Any) -> float:
    """Return a number; --set passes those with a point as text."""
    return float(found) if isinstance(found, str) else found or 0


def _call(node: Any) -> Value:
    function, arguments = _FUNCTIONS[node.func.id], [_compiled(each) for each in node.args]
    return lambda scope: function(*(argument(scope) for argument in arguments))


def _bytes(text: Any) -> int:
    digits = str(text).rstrip("KMGTi")
    unit = _UNITS.get(str(text).removeprefix(digits))
    is_number = digits.isascii() and digits.isdecimal() and len(digits) < 12
    return int(digits) << unit if unit is not None and is_number else 0


def _divisor(number: Any, most: Any) -> int:
    number, most = _whole(number), min(_whole(most), _whole(number), _DIVISORS)
    return next((size for size in range(most, 1, -1) if number % size == 0), 1)


def _nearest(number: Any, wanted: Any) -> int:
    number, wanted = _whole(number), min(_whole(wanted), _whole(number))
    around = (size for away in range(min(wanted, _DIVISORS)) for size in (wanted - away, wanted + away))
    return next((size for size in around if size <= number and number % size == 0), 1)


def _multiples(unit: Any, number: Any) -> str:
    unit = max(_whole(unit), 1)
    below = _whole(number) // unit * unit
    return f"{f'{below} or ' if below else ''}{_wrapped(below + unit)}"


_COMPILERS: dict[type, Callable[[Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _name,
    ast.Subscript: _subscript,
    ast.List: _list,
    ast.BinOp: _arithmetic,
    ast.BoolOp: _logic,
    ast.UnaryOp: _denial,
    ast.IfExp: _choice,
    ast.Compare: _comparison,
    ast.Call: _call,
}
_ARITHMETIC: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: _quotient,
    ast.Mod: lambda left, right: left - _quotient(left, right) * max(right, 1),
}
_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Is: lambda left, _: left is None,
    ast.IsNot: lambda left, _: left is not None,
    ast.In: _among,
    ast.NotIn: lambda left, right: not _among(left, right),
    ast.Eq: _equal,
    ast.NotEq: lambda left, right: not _equal(left, right),
    ast.Lt: lambda left, right: _size(left) < _size(right),
    ast.LtE: lambda left, right: _size(left) <= _size(right),
    ast.Gt: lambda left, right: _size(left) > _size(right),
    ast.GtE: lambda left, right: _size(left) >= _size(right),
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": lambda *numbers: min(map(_whole, numbers)),
    "max": lambda *numbers: max(map(_whole, numbers)),
    "gcd": lambda left, right: math.gcd(_whole(left), _whole(right)),
    "divisor": _divisor,
    "nearest": _nearest,
    "multiples": _multiples,
    "whole": whole_number,
    "bytes": _bytes,
    "len": lambda items: len(items or ()),
    "keys": lambda items: sorted(items or ()),
    "startswith": lambda text, *starts: (text or "").startswith(tuple(start or "" for start in starts)),
    "basename": lambda text: (text or "").rpartition("/")[2],
    "endswith": lambda text, *ends: (text or "").endswith(tuple(end or "" for end in ends)),
}
