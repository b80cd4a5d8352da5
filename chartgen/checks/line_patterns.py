"""Regular expressions of users for the lines of a log, of which only those are accepted that never backtrack.

Wherever an expression has a choice, the next character of the line decides it: what a repetition matches cannot begin
what follows the repetition, and alternatives begin with different characters. From each place where a match may begin,
Python's `re` then reads each character of a line once.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import combinations, groupby
from typing import Any, NamedTuple, TypeAlias

# The named groups: what a step's line may tell. `milliseconds` are the same as `seconds`; the others have the units of
# metrics/read/events.py.
GROUPS = (
    *("step", "seconds", "milliseconds", "loss", "rate", "samples", "batch", "tflops", "tokens", "gradient", "memory"),
)
_Chars: TypeAlias = frozenset[str]
_OTHER = "\x80"  # stands for all characters beyond ASCII
_EVERY = frozenset(map(chr, range(129)))
_CLASSES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}
_parser = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")


class LinePatterns(NamedTuple):
    """Expressions that must all be found in the line of a step, and a text that every such line contains."""

    expressions: tuple[re.Pattern[str], ...]
    marker: str


def compile_lines(texts: Iterable[str]) -> LinePatterns:
    """Compile the expressions for a step's line; raise ValueError if one is refused, or none has the group `step`."""
    compiled, runs = [], [""]
    for text in texts:
        tree = _parse(text)
        _first(tree, frozenset())
        compiled.append(re.compile(text, re.ASCII))
        runs += _literals(tree)
    names = [name for each in compiled for name in each.groupindex]
    if unknown := sorted(set(names) - set(GROUPS)):
        raise ValueError(f"{unknown[0]} is not a known group; known: {', '.join(GROUPS)}")
    if names.count("step") != 1:
        raise ValueError("exactly one group must have the name step, as in step: (?P<step>[0-9]+)")
    marker = max(runs, key=len)
    if not marker.strip():
        raise ValueError("one expression must contain a text of the line, as in step: (?P<step>[0-9]+)")
    return LinePatterns(tuple(compiled), marker)


def _parse(text: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tree = _parser.parse(text, re.ASCII)
    except (re.error, Warning, RecursionError, OverflowError) as error:
        raise ValueError(f"{text} is not a regular expression: {error}") from error
    if tree.state.flags != re.ASCII:
        raise ValueError(f"{text} has flags, which are not supported")
    return tree


def _literals(tree: Sequence[Any]) -> list[str]:
    """Return the texts that each match of an expression contains."""
    parts = groupby(tree, key=lambda part: str(part[0]) == "LITERAL")
    return ["".join(chr(value) for _, value in run) for is_text, run in parts if is_text]


def _first(tree: Sequence[Any], follow: _Chars) -> _Chars:
    """Return the characters that a match can begin with.

    Args:
        tree: Parts of an expression, as Python's own parser returns them.
        follow: The characters that what follows them can begin with.

    Raises:
        ValueError: The next character does not decide how a match continues.
    """
    for op, value in reversed(tree):
        follow = _begin(str(op), value, follow)
    return follow


def _begin(op: str, value: Any, follow: _Chars) -> _Chars:
    if op == "AT":
        return follow
    if op == "SUBPATTERN" and not value[1] and not value[2]:
        return _first(value[3], follow)
    if op == "BRANCH":
        return _alternatives([_first(each, follow) for each in value[1]])
    if op in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, body = value
        return _repetition(least, most, body, follow)
    return _set(op, value)


def _alternatives(firsts: list[_Chars]) -> _Chars:
    for one, other in combinations(firsts, 2):
        if both := one & other:
            raise ValueError(f"two alternatives can begin with {min(both)!r}; write what they share before them")
    return frozenset().union(*firsts)


def _repetition(least: int, most: int, body: Sequence[Any], follow: _Chars) -> _Chars:
    if most > 1 and (len(body) != 1 or str(body[0][0]) not in ("LITERAL", "NOT_LITERAL", "ANY", "IN")):
        raise ValueError("a group is repeated; repeat single characters or sets of them, such as [0-9.]+")
    own = _first(body, follow)
    if both := own & follow:
        raise ValueError(
            f"a repetition and what follows it can both match {min(both)!r}; exclude it from the repetition, or write "
            "an expression for each part of the line"
        )
    return own if least else own | follow


def _set(op: str, value: Any) -> _Chars:
    """Return the characters of one part that matches one character."""
    if op == "LITERAL":
        return _char(value)
    if op == "NOT_LITERAL":
        return _EVERY - (_char(value) - {_OTHER})
    if op == "ANY":
        return _EVERY - {"\n"}
    if op != "IN":
        raise ValueError(f"{op.lower().replace('_', ' ')} is not supported: the next character must decide")
    found: _Chars = frozenset()
    for name, item in value:
        found |= _member(str(name), item)
    return _EVERY - (found - {_OTHER}) if str(value[0][0]) == "NEGATE" else found


def _member(name: str, item: Any) -> _Chars:
    if name == "NEGATE":
        return frozenset()
    if name == "LITERAL":
        return _char(item)
    if name == "RANGE":
        return frozenset().union(*(_char(code) for code in range(item[0], min(item[1], 128) + 1)), _char(item[1]))
    kind = str(item).removeprefix("CATEGORY_")
    own = frozenset(each for each in _EVERY if re.match(_CLASSES[kind.removeprefix("NOT_")], each, re.ASCII))
    return _EVERY - own if kind.startswith("NOT_") else own


def _char(code: int) -> _Chars:
    return frozenset((chr(code) if code < 128 else _OTHER,))
