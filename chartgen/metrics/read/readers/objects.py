"""Many lines of JSON at once: the layout of a line that holds one object, as DLLogger and MLPerf write it.

The expressions match what json reads as they do: names and texts without escapes, nothing nested but objects of values.
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
#: Groups that read a number, and one that fits a column of whole numbers.
NUMBER = b"(%s)" % _NUMBER
INTEGER = rb"(-?(?:0|[1-9]\d{0,17}))"

#: Gives the group that reads a value, None for one that is not read. It is told where the value stands, ("step",) or
#: ("data", "loss"), and the value of the line that is learned from.
Wanted: TypeAlias = Callable[[tuple[str, ...], bytes], bytes | None]


def learn(line: bytes, head: bytes, wanted: Wanted) -> Layout | None:
    """Learn the names of a line, which most lines of a run have in the same order; None when it is no usual one.

    Args:
        line: The line.
        head: What stands before its object.
        wanted: Tells which values are read.

    Returns:
        What matches such lines, and the names of the values that are read.
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
    if len({*places}) < len(places):  # of two with one name the last counts
        return None
    return re.compile(rb"(?m)^%s\{%s\}" % (re.escape(head), b", ".join(parts))), tuple(read)
