"""YAML text to a tree of nodes with their places, and scalars to values, by the rules of Helm's reader (go-yaml v2)."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from chartgen.errors import ChartgenError, Problem

# A node of ruamel.yaml, whose type hints omit half of a node's attributes.
Node: TypeAlias = Any

# Far beyond any values file, far below Python's recursion limit.
MAX_DEPTH = 100
# The message of only the C parser for `{from: gs://bucket}`, which it rejects because it is older than that syntax.
_OLD_RULE = "found unexpected ':'"
# Text that may be nested too deeply for the C parser's recursion: brackets, or one line of indentation and dashes.
_DEEP_LINE = re.compile(r"^[ \t?:-]{1000}", re.MULTILINE)


def compose_nodes(text: str, path: Path | str) -> Node | None:
    """Parse the YAML document of a text, None if empty; raise ChartgenError for several, or deeper than `MAX_DEPTH`."""
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        if text.count("[") + text.count("{") > 1000 or _DEEP_LINE.search(text):
            _refuse_depth(text, path)
        return _tree(text)
    except RecursionError:
        raise ChartgenError(Problem(f"is nested deeper than {MAX_DEPTH} levels", path)) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise ChartgenError(Problem(_syntax(error, text), path, *place)) from None
    except YAMLError as error:
        raise ChartgenError(Problem(" ".join(str(error).split()), path)) from None


def _tree(text: str) -> Node | None:
    from ruamel.yaml.error import MarkedYAMLError

    try:
        return _parser()(text)
    except MarkedYAMLError as error:
        if error.problem != _OLD_RULE:
            raise
        return _compose_slowly(text)


def _syntax(error: Any, text: str) -> str:
    """Describe a syntax error; its context is the start of the damaged part."""
    mark, begin = error.problem_mark, error.context_mark
    if "expected a single document" in str(error.context):
        return "contains more than one YAML document"
    if mark and text[mark.index : mark.index + 1] == "\t":
        return "a tab cannot indent YAML; use spaces"
    since = f" that begins in line {begin.line + 1}" if mark and begin and begin.line != mark.line else ""
    return "invalid YAML: " + " ".join(part for part in (error.problem, error.context) if part) + since


def _compose_slowly(text: str) -> Node | None:
    """Parse in Python, by the rules of YAML 1.1, as go-yaml does."""
    import warnings

    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an anchor may be defined again
        return yaml.compose(text)


@lru_cache(maxsize=1)
def _parser() -> Callable[[str], Node | None]:
    """Return the C parser without ruamel.yaml's additions: plug-ins and unused tags."""
    try:
        from _ruamel_yaml import CParser  # type: ignore[import-not-found]
    except ImportError:  # no wheel of the C parser on this machine
        return _compose_slowly

    from ruamel.yaml.tag import Tag

    class Parser(CParser):  # type: ignore[misc]
        # Called for each node, with its parent and index, and with nothing: built-in functions are the fastest to call.
        descend_resolver, ascend_resolver = operator.is_, tuple

        def resolve(self, _kind: object, _value: object, _implicit: object) -> Tag:
            """Return one tag for all nodes without their own."""
            return untagged

    untagged = Tag()

    return lambda text: Parser(text).get_single_node()


def _refuse_depth(text: str, path: Path | str) -> None:
    """Raise an error for too deep nesting, by the parser's events: composing a too deep tree ends the process."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError

    depth = 0
    with suppress(MarkedYAMLError):  # composing finds the error too, and reports it better
        for event in YAML(typ="safe").parse(text):
            kind = type(event).__name__
            depth += kind in ("SequenceStartEvent", "MappingStartEvent")
            depth -= kind in ("SequenceEndEvent", "MappingEndEvent")
            if depth > MAX_DEPTH:
                raise too_deep(event, path)


def too_deep(place: Any, path: Path | str) -> ChartgenError:
    """Return the error for a node or event that is nested too deeply."""
    mark = place.start_mark
    return ChartgenError(Problem(f"is nested deeper than {MAX_DEPTH} levels", path, mark.line + 1, mark.column + 1))


# go-yaml v2 resolve.go: the words that are not strings when they are unquoted.
_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))")
_BASES = (16, 2, 8, 10)
# Text that YAML reads as one plain scalar, whatever its value.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_NUMERIC_START = frozenset("+-.0123456789")


@lru_cache(maxsize=4096)
def resolve_scalar(text: str) -> bool | int | float | str | None:
    """Return the value of an unquoted scalar as go-yaml v2 resolves it.

    An int has at most 64 bits; dates stay text, as in Helm.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC_START:
        return text
    digits = text.replace("_", "")
    if (match := _INTEGER.fullmatch(digits)) and (number := _integer(match)) is not None:
        return number
    real = float(digits) if _FLOAT.fullmatch(digits) else math.inf
    return real if math.isfinite(real) else text


def text_scalar(text: str) -> str:
    """Return a text as a YAML scalar that is read as text: in quotes where a plain one is a number or a switch."""
    return text if _PLAIN.fullmatch(text) and resolve_scalar(text) == text else json.dumps(text)


def _integer(match: re.Match[str]) -> int | None:
    """Return a whole number within 64 bits; None for a larger one, which Go reads as a float or text."""
    group, base = next(each for each in zip(match.groups()[1:], _BASES, strict=True) if each[0])
    if len(group.lstrip("0")) > 64:  # more digits than any base needs, and too many for Python to read quickly
        return None
    number = int(group, base) * (-1 if match[1] == "-" else 1)
    return number if -(2**63) <= number < 2**64 else None
