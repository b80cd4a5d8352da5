"""The values that the templates of a chart read, as far as the keys are certain.

Follows the dot and variables through the blocks of a file, and into the definitions that the chart itself calls. What
may be more than one thing is unknown, and keys of unknown things are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart
from chartgen.helm.pipelines import Command, Operand, Pipeline, Statement, literal, statement

# What an expression may be: a path from the root context, such as ("Values", "a"); a map or list that a template makes,
# with its known items; None if unknown.
Thing: TypeAlias = "tuple[str, ...] | dict[str, Thing] | None"

_ROOT: Thing = ()
_VALUES = "Values"
_MERGES = re.compile(r"(?:must)?[mM]erge(?:Overwrite)?")
_MAKE = frozenset(("dict", "list", "tuple", "fromYaml", "fromJson", "fromToml"))
# The result has no keys that the first argument lacks. A key set in a copy counts as a change of the original.
_COPY = frozenset(("deepCopy", "mustDeepCopy", "omit", "pick"))
# Functions that ask for a value, or replace a missing one.
_GUARDS = frozenset(
    ("default", "hasKey", "dig", "coalesce", "ternary", "empty", "not", "and", "or", "kindIs", "required")
)
_FORMAT = re.compile(r"%[a-z]")
_ROUNDS = 30
_DEEPEST = 3  # of the maps that a template makes; a map that contains itself twice would grow without end


class Read(NamedTuple):
    """A value that a template reads.

    Args:
        keys: The path of keys below `.Values`.
        path: The template, relative to the chart.
        line: 1-based line of the action.
        guarded: Whether the action only asks for the value, or replaces a missing one.
    """

    keys: tuple[str, ...]
    path: str
    line: int
    guarded: bool


@dataclass
class Reads:
    """What the templates of a chart do with values.

    Args:
        found: The values that they read.
        changed: Paths of keys that they set or merge into; anything may be below.
        loose: Keys that they set in maps that are unknown here.
        complete: Whether they change no other values.
    """

    found: set[Read] = field(default_factory=set)
    changed: set[tuple[str, ...]] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)
    complete: bool = True

    def certain(self) -> Iterator[Read]:
        """Yield, in order, the reads of values that no template changes."""
        for read in sorted(self.found) if self.complete else ():
            begun = (read.keys[:depth] for depth in range(len(read.keys) + 1))
            if not self.changed.intersection(begun) and not self.loose.intersection(read.keys):
                yield read


class _Body(NamedTuple):
    """The statements of a file or of a definition."""

    path: str
    statements: list[Statement]


class _Call(NamedTuple):
    """A call of the definition with a name, or of all whose names fit a pattern, with a context."""

    name: str | re.Pattern[str]
    context: Thing


def value_reads(chart: Chart) -> Reads:
    """Return which values the templates of a chart and its unpacked subcharts read and change.

    A subchart's own values are not followed; its definitions are, as far as the chart calls them.

    Args:
        chart: The chart.
    """
    files, definitions = _bodies(chart)
    every = (*files, *(body for bodies in definitions.values() for body in bodies))
    assigned = frozenset(key for body in every for told in body.statements for key in _set_keys(told.pipeline))
    contexts: dict[str, Thing] = {}
    for _ in range(_ROUNDS):
        reads: Reads = Reads()
        calls: list[_Call] = []
        for body in files:
            context = _ROOT if body.path.startswith("templates/") else None
            _Walk(body, context, assigned, reads, calls).run()
        for name, context in contexts.items():
            for body in definitions[name]:
                _Walk(body, context, assigned, reads, calls).run()
        found = _contexts(calls, definitions, reads)
        again = {name: _joined((contexts.get(name, thing), thing)) for name, thing in found.items()}
        if again == contexts:
            return reads
        contexts = again
    return Reads(complete=False)


def _bodies(chart: Chart) -> tuple[list[_Body], dict[str, list[_Body]]]:
    """Return the files without their definitions, and the definitions by name."""
    files: list[_Body] = []
    definitions: dict[str, list[_Body]] = {}
    for path, text in chart.files.items():
        if not re.match(r"(?:charts/[^/]+/)*templates/", path):
            continue
        files.append(_Body(path, []))
        opened = [files[-1]]  # the body of each open block
        for action in gotemplate.actions(text):
            if action.word == "comment" or action.text.startswith("<%"):
                continue
            told = statement(action)
            if told.keyword in ("define", "block"):
                if told.keyword == "block":
                    opened[-1].statements.append(told)
                name = next((literal(each) or "" for each in _operands(told.pipeline)), "")
                opened.append(_Body(path, []))
                definitions.setdefault(name, []).append(opened[-1])
                continue
            if told.keyword in ("if", "with", "range"):
                opened.append(opened[-1])
            elif told.keyword == "end" and opened[1:] and opened.pop() is not opened[-1]:
                continue  # the end of a definition
            opened[-1].statements.append(told)
    return files, definitions


def _operands(pipeline: Pipeline) -> Iterator[Operand]:
    return (operand for command in pipeline.commands for operand in command)


def _set_keys(pipeline: Pipeline) -> Iterator[str]:
    """Yield the literal keys that an expression sets in maps."""
    for command in pipeline.commands:
        if command[0].base == "set" and command[2:] and (key := literal(command[2])) is not None:
            yield key
        for operand in command:
            if isinstance(operand.base, Pipeline):
                yield from _set_keys(operand.base)


def _contexts(calls: Sequence[_Call], definitions: Mapping[str, object], reads: Reads) -> dict[str, Thing]:
    """Return the context of each definition that the chart calls; None where calls differ."""
    passed: dict[str, list[Thing]] = {}
    # Exact names first: a pattern matches too many, and passes the root only to definitions that no other call names.
    for call in sorted(calls, key=lambda each: not isinstance(each.name, str)):
        if isinstance(call.name, str):
            names = [call.name] if call.name in definitions else []
        else:
            names = list(filter(call.name.fullmatch, definitions))
        if not names and _reaches_values(call.context):
            reads.complete = False  # a definition of another chart may change any value
        if not isinstance(call.name, str) and call.context == _ROOT:
            names = [name for name in names if name not in passed]
        for name in names:
            passed.setdefault(name, []).append(call.context)
    return {name: _joined(things) for name, things in passed.items()}


def _reaches_values(thing: Thing) -> bool:
    if isinstance(thing, dict):
        return any(map(_reaches_values, thing.values()))
    return thing is not None and thing[:1] in ((), (_VALUES,))


def _joined(things: Iterable[Thing]) -> Thing:
    """Return what several things have in common; None if nothing."""
    found = list(things)
    if all(each == found[0] for each in found):
        return found[0]
    maps = [each for each in found if isinstance(each, dict)]
    return {key: _joined(each.get(key) for each in maps) for key in maps[0]} if len(maps) == len(found) else None


def _depth(thing: Thing) -> int:
    return 1 + max(map(_depth, thing.values()), default=0) if isinstance(thing, dict) else 0


class _Walk:
    """One pass over the statements of a body, with the dot and the variables of each open block.

    Args:
        body: The statements.
        context: The dot at the begin.
        assigned: Keys that some template sets in a map; in a map of a template they are unknown.
        reads: Takes what the body reads and changes.
        calls: Takes the calls of definitions.
    """

    def __init__(self, body: _Body, context: Thing, assigned: frozenset[str], reads: Reads, calls: list[_Call]) -> None:
        self.body, self.assigned, self.reads, self.calls = body, assigned, reads, calls
        self.dots: list[Thing] = [context]
        self.scopes: list[dict[str, Thing]] = [{"$": context}]
        assignments = (each.pipeline for each in body.statements if not each.pipeline.declares)
        self.varying = {name for pipeline in assignments for name in pipeline.variables}
        self.line, self.guarded, self.refuses = 0, False, False

    def run(self) -> None:
        """Note what the body reads, changes and calls."""
        nexts = (*self.body.statements[1:], None)
        for told, following in zip(self.body.statements, nexts, strict=False):
            # `if OLD` before `fail` refuses a value that has been removed
            first = next(_operands(following.pipeline), None) if following else None
            self.refuses = bool(first and first.base == "fail")
            self._statement(told)

    def _statement(self, told: Statement) -> None:
        self.line, keyword = told.line, told.keyword
        if (keyword == "end" or keyword.startswith("else")) and self.scopes[1:]:
            self.scopes.pop()
            self.dots.pop()
        if keyword in ("template", "block"):
            operands = list(_operands(told.pipeline))
            self._call(operands[:1], self._of(operands[1]) if operands[1:] else None)
        if keyword in ("template", "block", "end", "break", "continue"):
            return
        if keyword:
            self.scopes.append({})
        self.guarded = keyword.endswith(("if", "with"))
        thing = self._pipeline(told.pipeline)
        for name in told.pipeline.variables if told.pipeline.declares else ():
            self.scopes[-1][name] = None if keyword == "range" else thing
        if keyword:
            is_with = keyword.endswith("with")
            self.dots.append(thing if is_with else None if keyword == "range" else self.dots[-1])

    def _pipeline(self, pipeline: Pipeline) -> Thing:
        thing: Thing = None
        guarded = self.guarded
        self.guarded = guarded or any(command[0].base in _GUARDS for command in pipeline.commands)
        for index, command in enumerate(pipeline.commands):
            thing = self._command(command, [thing] if index else [])
        self.guarded = guarded
        return thing

    def _command(self, command: Command, piped: list[Thing]) -> Thing:
        first, *operands = command
        things = [*map(self._of, operands), *piped]
        if first.kind != "name":
            return self._of(first)
        name = str(first.base)
        literals = [*map(literal, operands), *(None for _ in piped)]
        if name == "include":
            self._call(operands, things[-1] if things[1:] else None)
            return None
        if operands and (name == "set" or _MERGES.fullmatch(name)):
            varying = operands[0].kind == "variable" and not operands[0].fields
            target = self._variable(str(operands[0].base)) if varying else things[0]
            return self._set(target, literals[1:2]) if name == "set" else self._merged(target, things[1:])
        return self._result(name, things, literals)

    def _result(self, name: str, things: list[Thing], literals: list[str | None]) -> Thing:
        """Return the result of a function, and note the values whose keys it gets as text."""
        if name in _MAKE:
            things = [thing if _depth(thing) < _DEEPEST else None for thing in things]
        if name == "dict":
            return {key: thing for key, thing in zip(literals[::2], things[1::2], strict=False) if key is not None}
        if name in _MAKE:
            return {str(index): thing for index, thing in enumerate(things)} if "from" not in name else {}
        if name == "dig" and things[2:]:
            self._field(things[-1], literals[:-2])
        if not things or name == "dig":
            return None
        if name in ("index", "get", "hasKey"):
            thing = self._field(things[0], literals[1:])
            return thing if name != "hasKey" else None
        passes = name == "required" or (name == "default" and things[0] == {})
        return things[-1] if passes else things[0] if name in _COPY else None

    def _set(self, thing: Thing, key: Sequence[str | None]) -> Thing:
        """Note that a template sets a key in a map."""
        name = key[0] if key else None
        if isinstance(thing, tuple):
            self._change((*thing, name) if name is not None else thing)
        elif thing is None and name is not None:
            self.reads.loose.add(name)
        elif thing and name is None:
            thing.clear()
        return thing

    def _merged(self, thing: Thing, others: Sequence[Thing]) -> Thing:
        """Note that a template merges into a map; `merge (dict KEY VALUE) X` has the keys of X, and KEY."""
        if isinstance(thing, tuple):
            self._change(thing)
        elif thing is None:
            self.reads.complete = False
        elif len(others) == 1 and isinstance(others[0], tuple):
            for key in (key for key, value in thing.items() if value != (*others[0], key)):
                self._change((*others[0], key))
            return others[0]
        else:
            thing.clear()
        return thing

    def _change(self, keys: tuple[str, ...]) -> None:
        if keys[:1] in ((), (_VALUES,)):
            self.reads.changed.add(keys[1:])

    def _call(self, operands: Sequence[Operand], context: Thing) -> None:
        """Note a call of a definition, by its name or by a format of names."""
        name: str | re.Pattern[str] | None = literal(operands[0]) if operands else None
        if name is None:
            name = re.compile(_pattern(operands[0].base) if operands else ".*")
        self.calls.append(_Call(name, context))

    def _of(self, operand: Operand) -> Thing:
        """Return what an operand is, and note the value that it reads."""
        thing: Thing = None
        if operand.kind == "dot":
            thing = self.dots[-1]
        elif operand.kind == "variable" and operand.base not in self.varying:
            thing = self._variable(str(operand.base))
        elif isinstance(operand.base, Pipeline):
            thing = self._pipeline(operand.base)
        elif operand.kind == "name":
            thing = self._result(str(operand.base), [], [])
        return self._field(thing, operand.fields)

    def _field(self, thing: Thing, names: Sequence[str | None]) -> Thing:
        for name in names:
            if name is None or thing is None:
                return None
            known = {} if isinstance(thing, dict) and name in self.assigned else thing
            thing = known.get(name) if isinstance(known, dict) else (*known, name)
        if names and isinstance(thing, tuple) and thing[:1] == (_VALUES,) and thing[1:] and not self.refuses:
            self.reads.found.add(Read(thing[1:], self.body.path, self.line, self.guarded))
        return thing

    def _variable(self, name: str) -> Thing:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)


def _pattern(base: str | Pipeline) -> str:
    """Return a pattern of the texts that `printf FORMAT ...` makes; of any text for another expression."""
    command = base.commands[0] if isinstance(base, Pipeline) and len(base.commands) == 1 else ()
    form = literal(command[1]) if command[1:] and command[0].base == "printf" else None
    # Several gaps in one pattern take time polynomial in the length of a name.
    parts = _FORMAT.split(form) if form is not None else ["", ""]
    return ".*".join(map(re.escape, parts if len(parts) < 4 else (parts[0], parts[-1])))
