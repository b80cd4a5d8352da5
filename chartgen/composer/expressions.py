"""Expressions of rules: a small part of Python's syntax, parsed by Python, checked against an allow-list.

An expression compares values and facts of a run. It is evaluated for `chartgen check` and translated into a chart's
template; no part of it is ever compiled or run as Python.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from functools import lru_cache
from keyword import iskeyword

LONGEST = 500
DEEPEST = 20
# What a number of JSON keeps exactly, as RFC 8259 says; Helm passes values through it.
LARGEST = 2**53
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_STEP = re.compile(r"[.](\w+)")

BINARY = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
# Function -> the fewest and the most arguments.
FUNCTIONS = {
    "min": (1, 9),
    "max": (1, 9),
    "gcd": (2, 2),
    "divisor": (2, 2),
    "nearest": (2, 2),
    "multiples": (2, 2),
    "whole": (1, 1),
    "bytes": (1, 1),
    "len": (1, 1),
    "keys": (1, 1),
    "startswith": (2, 9),
    "endswith": (2, 9),
    "basename": (1, 1),
}
_ALLOWED = (
    *(ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.List, ast.BinOp, ast.BoolOp, ast.UnaryOp),
    *(ast.IfExp, ast.Call, ast.Compare),
)


class ExpressionError(Exception):
    """An expression that is not one; the column is 1-based and inside the expression."""

    def __init__(self, message: str, column: int = 1, hint: str = "") -> None:
        self.message, self.column, self.hint = message, column, hint
        super().__init__(message)


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> ast.expr:
    """Return an expression's syntax tree; raise ExpressionError if it is too long, none, or uses what rules may not."""
    if len(text) > LONGEST:
        raise ExpressionError(f"is longer than {LONGEST} characters", hint="make several rules of it")
    if "\\" in text:
        raise ExpressionError("a backslash is not allowed in a rule", text.index("\\") + 1)
    for step in _STEP.finditer(text):
        if iskeyword(step[1]):
            hint = f'write ["{step[1]}"] instead of .{step[1]}'
            raise ExpressionError(f"{step[1]} is a word of the language", step.start() + 1, hint)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"is not an expression: {error.msg}", error.offset or 1) from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError("is not an expression") from None
    _check(tree, 1)
    return tree


def fields(text: str) -> Iterator[tuple[str, ast.expr | None]]:
    """Split a message into its plain parts and the expressions in braces; `{{` and `}}` are one brace.

    Yields:
        A plain part with None, or an expression's text with its tree.

    Raises:
        ExpressionError: A brace without its partner, or a wrong expression.
    """
    last = 0
    for brace in _BRACES.finditer(text):
        if before := text[last : brace.start()]:
            yield before, None
        if brace[0] in ("{{", "}}"):
            yield brace[0][0], None
        elif brace[1] is None:
            hint = f"write {brace[0] * 2} for a brace, or {{name}} for a value"
            raise ExpressionError(f"a single {brace[0]}", brace.start() + 1, hint)
        else:
            try:
                yield brace[1], parse_expression(brace[1])
            except ExpressionError as error:
                error.column += brace.start() + 1
                raise
        last = brace.end()
    if rest := text[last:]:
        yield rest, None


def dotted_name(node: ast.expr) -> str | None:
    """Return the dotted name that names and attributes alone make; None for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (above := dotted_name(node.value)):
        return f"{above}.{node.attr}"
    return None


def _check(node: ast.expr, depth: int) -> None:
    if depth > DEEPEST:
        raise ExpressionError(
            f"is nested deeper than {DEEPEST} levels", node.col_offset + 1, "make several rules of it"
        )
    if not isinstance(node, _ALLOWED):
        raise _refused(node, type(node).__name__)
    if isinstance(node, ast.Constant):
        _check_constant(node)
    elif isinstance(node, ast.BinOp) and not isinstance(node.op, BINARY):
        raise _refused(node, type(node.op).__name__, "use +, -, *, /, // or %")
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        raise _refused(node, type(node.op).__name__, "use not, or 0 - x")
    elif isinstance(node, ast.Call):
        _check_call(node)
    elif isinstance(node, ast.Compare) and len(node.ops) > 1:
        raise _refused(node, "a chain of comparisons", "join two with and")
    for child in _children(node):
        _check(child, depth + 1)


def _children(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call):
        yield from node.args
    else:
        yield from (node for node in ast.iter_child_nodes(node) if isinstance(node, ast.expr))


def _check_constant(node: ast.Constant) -> None:
    number = isinstance(node.value, int) and abs(node.value) < LARGEST
    if not (number or node.value is None or isinstance(node.value, str)):
        raise _refused(node, f"the constant {str(node.value)[:20]}", "use a whole number or text")


def _check_call(node: ast.Call) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in FUNCTIONS:
        raise _refused(node, f"the function {name or '?'}", f"known: {', '.join(FUNCTIONS)}")
    least, most = FUNCTIONS[name]
    if node.keywords or not least <= len(node.args) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise ExpressionError(f"{name}() takes {wanted} arguments", node.col_offset + 1)


def _refused(node: ast.expr, what: str, hint: str = "") -> ExpressionError:
    return ExpressionError(f"{what} is not allowed in a rule", node.col_offset + 1, hint)
