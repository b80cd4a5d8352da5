"""Rules as lines of a chart's template: types are checked on the way, by the chart's schema and the table of facts."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from chartgen.composer.expressions import ExpressionError, dotted_name, fields, parse_expression
from chartgen.composer.rule_facts import FACTS
from chartgen.errors import did_you_mean

_KINDS = {
    "number": "a whole number",
    "decimal": "a number",
    "flag": "true or false",
    "text": "text",
    "list": "a list",
    "map": "a map",
    "any": "of several types",
}
_JSON = {
    "integer": "number",
    "number": "decimal",
    "boolean": "flag",
    "string": "text",
    "array": "list",
    "object": "map",
}
_PARENTS = {fact.rpartition(".")[0] for fact in FACTS}
_ARITHMETIC = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "div", ast.Mod: "mod"}
_ORDER = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
_OPPOSITE = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
# Their whole numbers have a map of their own.
_SIZES = "$v.parallelism."
# What would begin an action, or is no text of a template.
_SPECIAL = re.compile(r"[{\x00-\x1f\x7f-\x9f]")


class Term(NamedTuple):
    """A part of an expression in a template."""

    text: str
    kind: str  # a key of `_KINDS`
    schema: Mapping[str, Any]  # the JSON Schema of a value; empty for what is calculated
    least: int | None = None  # the least that a number can be; None = not known
    null: bool = False  # whether it may be null
    raw: bool = False  # whether it is still as Helm read it: a number may be of any of Go's types
    exact: bool = False  # whether it is a boolean, and nothing else that is true or false

    @property
    def number(self) -> str:
        """The text as a whole number."""
        return f"(int64 {self.text})" if self.raw else self.text

    @property
    def test(self) -> str:
        """The text as a boolean, for functions that take no other value."""
        return self.text if self.exact else f"(not (not {self.text}))"

    @property
    def decimal(self) -> str:
        """The text as a number with a point."""
        return f"(float64 {self.text})"

    @property
    def string(self) -> str:
        """The text as text; null is empty, and so is a value that `--set key=null` deletes.

        One of a few words needs no default: a deleted one equals none of them.
        """
        is_deletable = self.raw and self.text != "$each" and "" in self.schema.get("enum", [""])
        return f'(default "" {self.text})' if self.null or is_deletable else self.text


class Translator:
    """Translates the expressions of a chart's rules.

    Args:
        chart: The chart's name, for the templates that it defines.
        schema: The schema of its values.
        launcher: The launcher that the rules belong to, whose values are `own`.
    """

    def __init__(self, chart: str, schema: Mapping[str, Any], launcher: str) -> None:
        self.chart, self.schema = chart, schema
        self.own = self._below(self._below(schema, "launchers"), launcher)
        self.each: Term | None = None
        self._names: dict[str, Term] = {}  # rules repeat a hundred names thousands of times

    def condition(self, text: str) -> str:
        """Translate an expression that is true or false."""
        return self.term(parse_expression(text)).text

    def negation(self, text: str) -> str:
        """Translate the opposite of an expression."""
        return self._opposite(parse_expression(text)).text

    def _opposite(self, node: ast.expr) -> Term:
        if isinstance(node, ast.UnaryOp):
            return self.term(node.operand)
        if isinstance(node, ast.Constant):
            return _constant(ast.Constant(not node.value))
        if isinstance(node, ast.Compare) and (opposite := _OPPOSITE.get(type(node.ops[0]))):
            return self.term(ast.Compare(node.left, [opposite()], node.comparators, **_place(node)))
        if isinstance(node, ast.BoolOp):
            return _logic("or" if isinstance(node.op, ast.And) else "and", map(self._opposite, node.values))
        return _flag(f"(not {self.term(node).text})")

    def loop(self, text: str) -> str:
        """Translate the list that a rule is repeated for, whose items are `each` from here on."""
        term = self._of(parse_expression(text), "list")
        self.each = self._value("$each", term.schema.get("items", {"type": "string"}))
        return term.text

    def check_key(self, text: str) -> None:
        """Raise ExpressionError if the chart has no value of a dotted key; one with an expression is left alone."""
        schema = self.schema
        for step in () if "{" in text else text.split("."):
            known, schema = schema.get("properties", ()), self._below(schema, step)
            if not schema:
                raise ExpressionError(f"unknown key {text}", 1, did_you_mean(step, list(known)))

    def message(self, text: str) -> str:
        """Translate a text with expressions in braces into the text of a template."""
        return "".join(
            _SPECIAL.sub(lambda sign: f"{{{{ {go_string(sign[0])} }}}}", part)
            if node is None
            else f"{{{{ {bare(self._printed(self.term(node), node))} }}}}"
            for part, node in fields(text)
        )

    def term(self, node: ast.expr) -> Term:
        """Translate an expression; raise ExpressionError for an unknown name, or types that do not fit."""
        return self._translators[type(node)](node)

    @cached_property
    def _translators(self) -> dict[type, Callable[[Any], Term]]:
        return {
            ast.Constant: _constant,
            ast.Name: self._name,
            ast.Attribute: self._name,
            ast.Subscript: self._subscript,
            ast.List: self._list,
            ast.BinOp: self._arithmetic,
            ast.BoolOp: lambda node: _logic(
                "and" if isinstance(node.op, ast.And) else "or", map(self.term, node.values)
            ),
            ast.UnaryOp: lambda node: self._opposite(node.operand),
            ast.IfExp: self._choice,
            ast.Compare: self._comparison,
            ast.Call: self._call,
        }

    # -- names

    def _name(self, node: ast.Name | ast.Attribute) -> Term:
        name = dotted_name(node)
        if name is None or name.partition(".")[0] == "each":  # of one rule alone
            return self._named(node, name)
        if name not in self._names:
            self._names[name] = self._named(node, name)
        return self._names[name]

    def _named(self, node: ast.Name | ast.Attribute, name: str | None) -> Term:
        if name == "each" and self.each:
            return self.each
        if name == "own":
            return Term("$f.own", "map", self.own)
        if name in FACTS:
            return self._value(f"$f.{name}", FACTS[name].schema)._replace(raw=False)
        if isinstance(node, ast.Name):
            return self._item(Term("$v", "map", self.schema), node.id, node)
        if (above := dotted_name(node.value)) in _PARENTS:
            known = [fact for fact in FACTS if fact.startswith(f"{above}.")]
            raise ExpressionError(f"unknown name {name}", node.col_offset + 1, did_you_mean(str(name), known))
        return self._item(self._of(node.value, "map"), node.attr, node)

    def _item(self, above: Term, key: str, node: ast.expr) -> Term:
        schema = self._below(above.schema, key)
        if not schema:
            known = [*above.schema.get("properties", ())]
            if above.text == "$v":
                known += [*FACTS, *(["each"] if self.each else [])]
            name = ast.unparse(node)
            path = name.removesuffix(key) if name.endswith(f".{key}") else ""
            raise ExpressionError(f"unknown name {name}", node.col_offset + 1, did_you_mean(key, known, path=path))
        path = f"{above.text}.{key}" if key.isidentifier() else f"(index {above.text} {go_string(key)})"
        return self._value(path, schema)

    def _below(self, schema: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        """Return the schema of a key; empty if the key has none, `{}` made visible as any type."""
        properties = schema.get("properties", {})
        if key in properties:
            return self._resolved(properties[key]) or {"type": []}
        others = schema.get("additionalProperties", "properties" not in schema)
        if isinstance(others, dict):
            return self._resolved(others)
        return {"type": []} if others else {}

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            found: Mapping[str, Any] = self.schema["definitions"][name]
            return found
        return schema

    def _value(self, text: str, schema: Mapping[str, Any]) -> Term:
        schema = self._resolved(schema)
        kind, null = _kind(schema, self._resolved)
        least = schema.get("minimum") if kind == "number" and not null else None
        if least is not None and text.startswith(_SIZES):
            return Term(f"$p.{text.removeprefix(_SIZES)}", kind, schema, least)
        return Term(text, kind, schema, least, null, raw=True)

    def _subscript(self, node: ast.Subscript) -> Term:
        above = self._of(node.value, "map")
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return self._item(above, node.slice.value, node)
        key = self._of(node.slice, "text")
        first = next(iter(above.schema.get("properties", ())), "")
        return self._value(f"(index {above.text} {key.string})", self._below(above.schema, first))

    # -- operators

    def _of(self, node: ast.expr, *kinds: str) -> Term:
        """Translate an expression that must be of one of some kinds."""
        term = self.term(node)
        if term.kind not in kinds:
            wanted = " or ".join(_KINDS[kind] for kind in kinds)
            message = f"{ast.unparse(node)} is {_KINDS[term.kind]}, not {wanted}"
            raise ExpressionError(message, node.col_offset + 1, _as_number(node, term) if "number" in kinds else "")
        return term

    def _list(self, node: ast.List) -> Term:
        if not node.elts:
            raise ExpressionError("a list must not be empty", node.col_offset + 1)
        kind = self.term(node.elts[0]).kind
        items = [self._of(element, kind) for element in node.elts]
        if kind not in ("number", "text"):
            raise ExpressionError("a list must contain whole numbers or text", node.col_offset + 1)
        texts = " ".join(term.number if kind == "number" else term.string for term in items)
        return Term(f"(list {texts})", "list", {"items": {"type": "integer" if kind == "number" else "string"}})

    def _arithmetic(self, node: ast.BinOp) -> Term:
        exact = isinstance(node.op, ast.Div)
        left, right = self._of(node.left, "number", *(["decimal"] if exact else [])), self._of(node.right, "number")
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod) and (right.least is None or right.least < 1):
            divisor = ast.unparse(node.right)
            hint = f"write max({divisor}, 1)"
            raise ExpressionError(f"the divisor {divisor} may be 0", node.right.col_offset + 1, hint)
        divisor = right.text  # functions of arithmetic take every number
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod) and isinstance(node.right, ast.BinOp):
            divisor = f"(max 1 {divisor})"  # a product beyond 64 bits
        if exact:  # divf rounds to 16 digits behind the point, mulf does not
            return Term(f"(mulf {left.decimal} (divf 1 {divisor}))", "decimal", {})
        text = f"({_ARITHMETIC[type(node.op)]} {left.text} {divisor})"
        return Term(text, "number", {}, _least(node.op, left, right))

    def _choice(self, node: ast.IfExp) -> Term:
        body = self._of(node.body, "number", "text", "flag")
        other = self._of(node.orelse, body.kind)
        text = f"(ternary {_plain(body)} {_plain(other)} {self.term(node.test).test})"
        bounds = [term.least for term in (body, other)]
        return Term(text, body.kind, {}, None if None in bounds else min(each for each in bounds if each is not None))

    def _comparison(self, node: ast.Compare) -> Term:
        sign, right = node.ops[0], node.comparators[0]
        if isinstance(sign, ast.Is | ast.IsNot):
            if not (isinstance(right, ast.Constant) and right.value is None):
                raise ExpressionError("is compares with None only", node.col_offset + 1, "use ==")
            test = f'(kindIs "invalid" {self.term(node.left).text})'
            return _flag(test if isinstance(sign, ast.Is) else f"(not {test})")
        if isinstance(sign, ast.In | ast.NotIn):
            test = self._membership(node.left, right)
            return _flag(test if isinstance(sign, ast.In) else f"(not {test})")
        kinds = ("number", "decimal") if not isinstance(sign, ast.Eq | ast.NotEq) else ("number", "decimal", "text")
        first, second = self._of(node.left, *kinds), self._of(right, *kinds)
        if (first.kind == "text") != (second.kind == "text"):
            message = (
                f"{ast.unparse(node.left)} is {_KINDS[first.kind]}, and {ast.unparse(right)} {_KINDS[second.kind]}"
            )
            hint = _as_number(node.left, first) or _as_number(right, second)
            raise ExpressionError(message, node.col_offset + 1, hint)
        word = _ORDER[type(sign)]
        if first.kind == "text":
            return _flag(f"({word} {first.string} {second.string})")
        if "decimal" in (first.kind, second.kind):
            return _flag(f"({word} {first.decimal} {second.decimal})")
        return _flag(f"({word} {first.number} {second.number})")

    def _membership(self, left: ast.expr, right: ast.expr) -> str:
        if isinstance(right, ast.List):
            kind = self._list(right).schema["items"]["type"]
            term = self._of(left, "number" if kind == "integer" else "text")
            items = [self.term(element) for element in right.elts]
            texts = [term.number if kind == "integer" else term.string for term in items]
            return f"(eq {' '.join([term.number if kind == 'integer' else term.string, *texts])})"
        where, term = self._of(right, "list", "map"), self._of(left, "text")
        return f"({'has' if where.kind == 'list' else 'hasKey'} {' '.join(_ordered(where, term))})"

    def _call(self, node: ast.Call) -> Term:
        name = ast.unparse(node.func)
        make: dict[str, Callable[[ast.Call], Term]] = {"len": self._length, "keys": self._keys}
        if name in make:
            return make[name](node)
        if name in ("startswith", "endswith"):
            term, *others = [self._of(each, "text") for each in node.args]
            word = "hasPrefix" if name == "startswith" else "hasSuffix"
            tests = [f"({word} {each.string} {term.string})" for each in others]
            return _flag(tests[0] if len(tests) == 1 else f"(or {' '.join(tests)})")
        if name == "basename":
            return Term(f"(base {self._of(node.args[0], 'text').string})", "text", {})
        if name in ("whole", "bytes"):
            helper = {"whole": "wholeNumber", "bytes": "bytes"}[name]
            text = f'(include "{self.chart}.{helper}" {self.term(node.args[0]).text} | int64)'
            return Term(text, "number", {}, 0)
        terms = [self._of(each, "number") for each in node.args]
        texts = " ".join(term.number for term in terms)
        bounds = [term.least for term in terms if term.least is not None]
        if name in ("min", "max"):
            known = bounds if name == "max" or len(bounds) == len(terms) else []
            return Term(
                f"({name} {' '.join(term.text for term in terms)})",
                "number",
                {},
                {"min": min, "max": max}[name](known) if known else None,
            )
        if len(bounds) < 2 or min(bounds) < 1:
            hint = "write max(x, 1)"
            raise ExpressionError(f"{name}() takes numbers above 0", node.col_offset + 1, hint)
        text = f'(include "{self.chart}.{name}" (list {texts}))'
        return Term(text, "text", {}) if name == "multiples" else Term(f"({text[1:-1]} | int64)", "number", {}, 1)

    def _length(self, node: ast.Call) -> Term:
        term = self._of(node.args[0], "list", "map")
        empty = "list" if term.kind == "list" else "dict"
        return Term(f"(len (default {empty} {term.text}))", "number", {}, 0, raw=True)

    def _keys(self, node: ast.Call) -> Term:
        term = self._of(node.args[0], "map")
        return Term(f"(keys (default dict {term.text}) | sortAlpha)", "list", {"items": {"type": "string"}})

    def _printed(self, term: Term, node: ast.expr) -> str:
        """Return what a template prints for a value."""
        if term.kind == "number":
            return f"(toJson {term.text})" if term.null else term.number
        if term.kind == "text" and term.null:
            return f'(ternary "null" {term.text} (kindIs "invalid" {term.text}))'
        if term.kind in ("any", "map"):
            raise ExpressionError(f"{ast.unparse(node)} is {_KINDS[term.kind]}, not a value to print", 1)
        shown = {
            "decimal": f'(printf "%.6g" {term.decimal})',
            "text": term.string,
            "list": f'(join ", " {term.text})',
            "flag": f"({'print' if term.exact else 'not (not'} {term.text}{')' * (not term.exact)})",
        }
        return shown[term.kind]


def joined(word: str, texts: Sequence[str]) -> str:
    """Return what `and` or `or` make of conditions, without a pair of brackets inside another of the same word."""
    flat = [text.removeprefix(f"({word} ")[:-1] if text.startswith(f"({word} ") else text for text in texts]
    return f"({word} {' '.join(flat)})" if len(texts) > 1 else texts[0]


def bare(text: str) -> str:
    """Return an expression without the brackets around it."""
    return text[1:-1] if text.startswith("(") else text


def go_string(text: str) -> str:
    """Write a text as a string of Go's templates: JSON's, without the pairs of escapes that Go does not know."""
    return json.dumps(text, ensure_ascii=False)


def _kind(
    schema: Mapping[str, Any], resolved: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
) -> tuple[str, bool]:
    """Return the kind of a JSON Schema's values, and whether they may be null."""
    kinds = _types(schema, resolved)
    if not kinds and "enum" in schema:
        kinds = {"string"} if all(isinstance(each, str) for each in schema["enum"]) else set()
    null, kinds = "null" in kinds, kinds - {"null"}
    if kinds == {"number", "string"}:  # --set passes numbers with a point as text
        return "decimal", null
    return _JSON.get(next(iter(kinds)), "any") if len(kinds) == 1 else "any", null


def _types(schema: Mapping[str, Any], resolved: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> set[str]:
    given = schema.get("type", [])
    found = {given} if isinstance(given, str) else set(given)
    if schema.get("pattern") == "^auto$":
        found.discard("string")  # chartgen replaces the word before rules see the values
    for each in schema.get("anyOf", ()):
        found |= _types(resolved(each), resolved)
    return found


def _place(node: ast.expr) -> dict[str, Any]:
    return {"lineno": node.lineno, "col_offset": node.col_offset}


def _constant(node: ast.Constant) -> Term:
    value = node.value
    if value is None:
        return Term("nil", "any", {}, null=True)
    if isinstance(value, bool):
        return _flag("true" if value else "false")
    if isinstance(value, int):
        return Term(str(value), "number", {}, value)
    return Term(go_string(str(value)), "text", {})


def _as_number(node: ast.expr, term: Term) -> str:
    """Return how to write an expression as a number; empty for what has none."""
    if isinstance(node, ast.Constant):
        return f"write {node.value}" if isinstance(node.value, str) and node.value.isdecimal() else ""
    text = ast.unparse(node)
    return f"write whole({text}), or bytes({text}) for a size such as 512Mi" if term.kind in ("text", "any") else ""


def _flag(text: str) -> Term:
    return Term(text, "flag", {}, exact=True)


def _logic(word: str, terms: Iterable[Term]) -> Term:
    every = list(terms)
    return Term(joined(word, [each.text for each in every]), "flag", {}, exact=all(each.exact for each in every))


def _plain(term: Term) -> str:
    return {"number": term.number, "text": term.string}.get(term.kind, term.text)


def _ordered(where: Term, term: Term) -> Sequence[str]:
    return (term.string, where.text) if where.kind == "list" else (where.text, term.string)


def _least(sign: ast.operator, left: Term, right: Term) -> int | None:
    """Return the least that a result can be, of numbers that are not negative."""
    if left.least is None or right.least is None or min(left.least, right.least) < 0:
        return None
    if isinstance(sign, ast.Add):
        return left.least + right.least
    if isinstance(sign, ast.Mult):
        return left.least * right.least
    return None if isinstance(sign, ast.Sub) else 0
