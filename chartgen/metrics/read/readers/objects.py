"""Read many lines of JSON at once: the layout of a line with one object, as DLLogger and MLPerf write it.

The expressions match only text that json reads in the same way: names and texts without escapes, and no nesting except
objects of values.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from chartgen.metrics.read.readers.columns import Layout

_NUMBER = rb"-?(?:0|[1-9]\d{0,99})(?:\.\d+)?(?:[eE][-+]?\d+)?|NaN|-?Infinity"
_TEXT = rb'"[^"\\\x00-\x1f]*"'
_ANY = rb"(?:%s|%s|true|false|null)" % (_NUMBER, _TEXT)
_VALUES = rb"(?:%s: %s(?:, )?)*" % (_TEXT, _ANY)
_OBJECT = rb"\{((?:%s: (?:%s|\{%s\})(?:, )?)+)\}" % (_TEXT, _ANY, _VALUES)
_VALUE = rb'"([^"]*)": (%s)' % _ANY
_MEMBER = rb'"([^"]*)": (?:(%s)|\{(%s)\})' % (_ANY, _VALUES)
#: Groups that read a number, and a number that fits a column of integers.
NUMBER = b"(%s)" % _NUMBER
INTEGER = rb"(-?(?:0|[1-9]\d{0,17}))"

#: Returns the group that reads a value; None for an unread one. It takes the key path of the value, ("step",) or
#: ("data", "loss"), and the value in the line to learn from.
Wanted: TypeAlias = Callable[[tuple[str, ...], bytes], bytes | None]


def learn(line: bytes, head: bytes, wanted: Wanted) -> Layout | None:
    """Learn the names of a line, which most lines of a run have in the same order; None when the line is unusual.

    Args:
        line: The line.
        head: The text before its object.
        wanted: Selects the values to read.

    Returns:
        An expression for such lines, and the names of the values to read.
    """
    match = re.match(re.escape(head) + _OBJECT, line)
    if match is None:
        return None
    places, read = list[tuple[str, ...]](), list[str]()

    def matched(name: bytes, value: bytes, *above: bytes) -> bytes:
        places.append(tuple(part.decode(errors="replace") for part in (*above, name)))
        group = wanted(places[-1], value)
        read.extend(places[-1][-1:] if group else ())
        return b'"%s": %s' % (re.escape(name), group or _ANY)

    parts = []
    for name, value, inner in re.findall(_MEMBER, match[1]):
        if value:
            parts.append(matched(name, value))
        else:
            places.append((name.decode(errors="replace"),))
            values = b", ".join(matched(*pair, name) for pair in re.findall(_VALUE, inner))
            parts.append(rb'"%s": \{%s\}' % (re.escape(name), values))
    if len({*places}) < len(places):  # the last of two equal names wins
        return None
    return re.compile(rb"(?m)^%s\{%s\}$" % (re.escape(head), b", ".join(parts))), tuple(read)
