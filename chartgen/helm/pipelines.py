"""The expressions of Go templates as trees: pipelines of commands, commands of operands. Nothing is evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from chartgen.helm.gotemplate import Action

# One token each, in the syntax of text/template: an operand has its fields attached, without a space before the point.
_TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\\n])*"|`[^`]*`) | (?P<assign>:?=) | (?P<sign>[|(,])
    | (?P<close>\)) (?P<of>(?:\.[A-Za-z_]\w*)*)
    | (?P<variable>\$\w*) (?P<in>(?:\.[A-Za-z_]\w*)*)
    | (?P<dot>\.(?![\w.])) | (?P<fields>(?:\.[A-Za-z_]\w*)+)
    | (?P<name>[A-Za-z_]\w*) | (?P<number>[-+]?\d[\w.+]*) | (?P<space>\s+) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = re.compile(r"(?:else\s+)?(?:if|with|range|template|block|define)\b|else\b|end\b|break\b|continue\b")
# Helm's own charts nest a few levels; a deeper text is a stranger's attack on the stack.
_DEEPEST = 40


@dataclass(frozen=True)
class Operand:
    """One operand of a command.

    Args:
        base: What it begins with: `.`, the name of a variable with its `$`, the name of a function, a literal in quotes
            or digits, or a pipeline in parentheses; empty for anything else.
        kind: `dot`, `variable`, `name`, `text`, `number`, `pipeline`, `other`.
        fields: The names that follow, each after a point.
    """

    base: str | Pipeline
    kind: str
    fields: tuple[str, ...] = ()


Command: TypeAlias = tuple[Operand, ...]


@dataclass(frozen=True)
class Pipeline:
    """Commands joined by `|`, and the variables that take the result.

    Args:
        commands: The commands in order.
        variables: Names of variables with their `$`.
        declares: Whether the variables are new (`:=`).
    """

    commands: tuple[Command, ...] = ()
    variables: tuple[str, ...] = ()
    declares: bool = False


@dataclass(frozen=True)
class Statement:
    """An action of a template.

    Args:
        keyword: `if`, `else`, `else if`, `with`, `range`, `define`, `template`, ...; empty for a plain pipeline.
        pipeline: Its expression.
        line: 1-based line in the file.
    """

    keyword: str
    pipeline: Pipeline
    line: int


def statement(action: Action) -> Statement:
    """Parse an action; what is not the syntax of a template becomes operands of the kind `other`."""
    code = action.text[2:-2].removeprefix("-").removesuffix("-")
    begun = len(code) - len(code.lstrip())
    keyword = _KEYWORDS.match(code, begun)
    rest = code[keyword.end() :] if keyword else code
    return Statement(" ".join(keyword[0].split()) if keyword else "", _parsed(rest), action.line)


def literal(operand: Operand) -> str | None:
    """Return the text or the number of a literal; None for other operands."""
    if not isinstance(operand.base, str) or operand.kind not in ("text", "number"):
        return None
    if operand.kind == "number" or operand.base.startswith("`"):
        return operand.base.strip("`")
    try:
        return str(json.loads(operand.base))
    except ValueError:  # an escape of Go alone
        return None


class _Open:
    """A pipeline that is being read."""

    def __init__(self) -> None:
        self.commands: list[list[Operand]] = [[]]
        self.variables: tuple[str, ...] = ()
        self.declares = False

    def closed(self) -> Pipeline:
        return Pipeline(tuple(tuple(each) for each in self.commands if each), self.variables, self.declares)

    def assign(self, sign: str) -> None:
        self.variables = tuple(str(each.base) for command in self.commands for each in command)
        self.declares, self.commands = sign == ":=", [[]]


def _parsed(code: str) -> Pipeline:
    stack = [_Open()]
    for token in _TOKEN.finditer(code):
        now = stack[-1]
        if token["sign"] == "|":
            now.commands.append([])
        elif token["sign"] == "(":
            if len(stack) > _DEEPEST:
                return Pipeline()
            stack.append(_Open())
        elif token["assign"]:
            now.assign(token["assign"])
        elif token["close"] and stack[1:]:
            stack.pop()
            stack[-1].commands[-1].append(Operand(now.closed(), "pipeline", _names(token["of"])))
        else:
            now.commands[-1] += _operand(token)
    return stack[0].closed()


def _operand(token: re.Match[str]) -> Iterator[Operand]:
    kind = token.lastgroup or ""
    if token["variable"]:
        yield Operand(token["variable"], "variable", _names(token["in"]))
    elif token["fields"]:
        yield Operand(".", "dot", _names(token["fields"]))
    elif kind in ("dot", "name", "text", "number"):
        yield Operand(token[0], kind)
    elif kind == "other":
        yield Operand("", "other")


def _names(fields: str) -> tuple[str, ...]:
    return tuple(fields.split(".")[1:])
