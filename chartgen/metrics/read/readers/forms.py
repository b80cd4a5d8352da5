"""The form of lines that differ only in their numbers, as most of a long log do: a regular expression.

A reader names the places of the values in one line. The expression made of this line has a group for each of them, and
matches other lines with the same text around other numbers, so that a whole block of them is read at once.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from operator import itemgetter, lt
from typing import Any, TypeAlias

from chartgen.metrics.read.events import NEVER, Event, Steps
from chartgen.metrics.read.prefix import CLOCK_TIME, Prefix, epoch_seconds, read_prefix

#: A number in the format of all programs; float() rejects invalid ones.
NUMBER = rb"[-+\d.eE]+|nan|-?inf"
# More steps than any run has.
_STEPS = 10**18
#: Name -> start and end of a value in a line; the names of a time are `minute` and `second`.
Places: TypeAlias = dict[str, tuple[int, int]]
#: Name -> the texts of a column.
Columns: TypeAlias = dict[str, Sequence[bytes]]
Times: TypeAlias = Sequence[float] | None
Rows: TypeAlias = list[tuple[bytes, ...]]

# A number or another word: its whole text, so that a line matches in one way only.
_WORD = rb"[-+.\w]+"
# Of the numbers that float() reads, those that json.loads reads too.
_JSON = rb"(?!-?0\d)-?[\dNI][-+.\da-zA-Z]*(?<!\.)"
_GROUPS = {
    "minute": rb"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)",
    "second": rb"(\d\d(?:\.\d{1,9})?)",
    "step": rb"(\d{1,18})",
    "planned": rb"(\d{1,18}|infinity)",
    "": rb"(%s)" % _WORD,
}
_MEMBER = b'": '
_VALUE = re.compile(rb'"?(%s)' % _WORD)
# A number between two values: that of a JSON object's member, or any other, and the spaces that pad it.
_OTHER = re.compile(rb'(?P<json>(?<=":) %s(?![-+.\w]))| *(?<!\w)[-+.]*\d[-+.\w]*' % _JSON)


class Form:
    """The form of the previous lines.

    Args:
        find: Returns the places of the values in a line; none when it contains no step of the usual form.
        steps: Returns the events of some lines from their columns, their times (None = unknown) and their process;
            nothing when the steps do not rise.
    """

    def __init__(
        self, find: Callable[[bytes, Prefix], Places], steps: Callable[[Columns, Times, bytes], Sequence[Event]]
    ) -> None:
        self._find, self._steps = find, steps
        self._pattern: re.Pattern[bytes] | None = None
        self._names: list[str] = []
        self._rank = b""

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event] | None:
        """Return the events of one line; None when it contains no step of the usual form."""
        places = self._find(line, prefix)
        if not places:
            return None
        columns: Columns = {name: [line[start:end]] for name, (start, end) in places.items()}
        return self._steps(columns, _times(columns) if isnan(prefix.when) else [prefix.when], prefix.rank)

    def match(self, text: bytes) -> tuple[Rows, int]:
        """Return the values of the lines of this form, and the number of other lines that are not empty."""
        rows = self._pattern.findall(text) if self._pattern else []
        own = [row for row in rows if row[0]]
        return own, len(rows) - len(own)

    def read_rows(self, rows: Rows) -> tuple[bytes, Sequence[Event]]:
        """Return the process and events of matched lines; raise ValueError for invalid numbers and times."""
        columns: Columns = dict(zip(self._names, zip(*rows, strict=True), strict=True))
        return self._rank, self._steps(columns, _times(columns), self._rank)

    def learn(self, line: bytes) -> bool:
        """Learn the form of a line; return whether it is another than before."""
        prefix = read_prefix(line)
        places, times = self._find(line, prefix), [*CLOCK_TIME.finditer(line, 0, prefix.size)]
        if not places or len(times) > 1 or (times and times[0][3] != b"Z"):
            return False
        if times:
            places |= {"minute": times[0].span(1), "second": times[0].span(2)}
        self._names, before = sorted(places, key=places.__getitem__), self._pattern
        source, at = list[bytes](), 0
        for name, (start, end) in sorted(places.items(), key=itemgetter(1)):
            source += [_around(line, at, start, prefix.size), _group(name, line[:start])]
            at = end
        source.append(_around(line, at, len(line), prefix.size))
        # the second branch skips a line of another form, where all groups are empty
        self._pattern = re.compile(rb"%s\n+|.+\n+" % b"".join(source))
        self._rank = prefix.rank
        return self._pattern is not before


def _group(name: str, before: bytes) -> bytes:
    return b"(%s)" % _JSON if before.endswith(_MEMBER) else _GROUPS.get(name, _GROUPS[""])


def _around(line: bytes, start: int, end: int, size: int) -> bytes:
    """Return the expression of a text between two values; within the prefix, which ends at `size`, all is fixed."""
    text, at = line[max(start, size) : end], 0
    parts = [re.escape(line[start : min(end, size)])]
    for match in _OTHER.finditer(text):
        digits = match[0].lstrip(b" ")
        parts += [_padded(text[at : match.end() - len(digits)]), _JSON if match["json"] else _WORD]
        at = match.end()
    return b"".join([*parts, _padded(text[at:])])


def _padded(text: bytes) -> bytes:
    """Return the expression of a text before a number, which any number of spaces may pad."""
    plain = text.rstrip(b" ")
    return re.escape(plain) + (b" +" if plain != text else b"")


def _times(columns: Columns) -> Times:
    minutes, seconds = columns.pop("minute", None), columns.pop("second", ())
    return epoch_seconds(minutes, seconds) if minutes else None


def read_object(line: bytes, prefix: Prefix) -> dict[str, Any]:
    """Return a line's JSON object, empty if truncated; another rank's line may follow. ValueError: it has none."""
    text = line.decode(errors="replace")
    try:
        record, _ = json.JSONDecoder().raw_decode(text, text.index("{", prefix.size))
    except json.JSONDecodeError:
        return {}
    return record if isinstance(record, dict) else {}


def places_in_object(line: bytes, record: Mapping[str, Any], wanted: Mapping[tuple[str, ...], str]) -> Places:
    """Return the places of an object's numbers in its line; empty when one is not a number, or cannot be found.

    Args:
        wanted: Path of a value, such as ("data", "loss"), -> its name.
    """
    places: Places = {}
    for (*outer, key), name in wanted.items():
        members: Any = record
        for above in outer:
            members = members.get(above)
        if not isinstance(members, dict) or key not in members:
            continue
        head = b'"%s": ' % key.encode()
        found = _VALUE.match(line, line.find(head) + len(head))
        if found is None or b"\\" in line or line.count(head) != 1 or not _is_number(found[1]):
            return {}
        places[name] = found.span(1)
    return places


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_constant(column: Sequence[object]) -> bool:
    """Report whether all items of a column are equal."""
    return column[0] == column[-1] and column.count(column[0]) == len(column)


def steps_of(
    numbers: array[int], when: Times, columns: Mapping[str, Sequence[bytes | float]], planned: int = 0
) -> Sequence[Steps]:
    """Join columns to steps.

    Args:
        when: Time of each line; None = unknown.
        columns: The values, most of them as text, by VALUES.
        planned: Steps of the whole run; 0 = unknown.

    Returns:
        The steps; nothing when they do not rise.

    Raises:
        ValueError: A value is not a number.
    """
    if not all(map(lt, numbers, numbers[1:])):
        return ()
    if max(abs(numbers[0]), abs(numbers[-1])) > _STEPS:
        raise ValueError(numbers)
    values = {name: _numbers(column) for name, column in columns.items()}
    times = array("d", when) if when else array("d", [NEVER]) * len(numbers)
    return (Steps(numbers, times, values, planned),)


def _numbers(column: Sequence[bytes | float]) -> array[float]:
    if is_constant(column):
        return array("d", [float(column[0])]) * len(column)
    return array("d", map(float, column))
