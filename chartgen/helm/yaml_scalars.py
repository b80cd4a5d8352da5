"""Unquoted scalars of YAML, resolved like go-yaml v2, which Helm uses."""

from __future__ import annotations

import json
import math
import re

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


def resolve_scalar(text: str) -> bool | int | float | str | None:
    """Return the value of an unquoted scalar as go-yaml v2 resolves it.

    Args:
        text: The scalar as written, without quotes.

    Returns:
        None, a bool, an int within 64 bits, a float or the text itself. Dates stay text, as in Helm.
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
