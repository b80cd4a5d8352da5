"""Lines that differ only in their numbers, as most of a long log do, read as columns.

A separator of the format cuts such lines into the same number of fields. A field is a number between two texts that all
lines share. A reader learns these texts from one line; other lines are read by them when each has these texts in the
same place. A single line is read in the same way, by what it teaches itself.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from math import isnan
from operator import lt
from typing import NamedTuple, TypeAlias

from chartgen.metrics.read.events import NEVER, Event, Steps
from chartgen.metrics.read.prefix import Prefix, Prefixes, read_prefix, read_prefixes
from chartgen.metrics.read.readers import Reader

#: A number in the format of all programs; float() rejects invalid ones.
NUMBER = rb"[-+\d.eE]+|nan|-?inf"
#: A step; longer numbers are not steps, and do not fit into a column.
STEP = rb"\d{1,18}"
_BRACKETS = b'"[]{}\\\\'
# More steps than any run has.
_STEPS = 10**18
#: The name of a text that is the same in all lines of a form.
CONSTANT = "="
#: Native name -> the texts of a column.
Columns: TypeAlias = dict[str, Sequence[bytes]]


class LineField(NamedTuple):
    """One field of the lines.

    Args:
        name: Its name; empty = only its head and tail matter.
    """

    place: int
    head: bytes
    tail: bytes
    name: str

    def texts(self, pieces: Sequence[bytes]) -> Sequence[bytes] | None:
        """Return the values of some lines; None when one has another head or tail."""
        if is_constant(pieces):
            text = pieces[0].removeprefix(self.head).removesuffix(self.tail)
            whole = len(pieces[0]) - len(text) == len(self.head) + len(self.tail)
            return [text] * len(pieces) if whole else None
        text = b"\n%s\n" % b"\n".join(pieces)
        inner = text.replace(b"\n" + self.head, b"\n") if self.head else text
        inner = inner.replace(self.tail + b"\n", b"\n") if self.tail else inner
        whole = len(text) - len(inner) == len(pieces) * (len(self.head) + len(self.tail))
        # the value of a field that nobody reads may be anything but more fields
        whole = whole and (bool(self.name) or len(inner) == len(inner.translate(None, _BRACKETS)))
        return inner[1:-1].split(b"\n") if whole else None


class LineTable(NamedTuple):
    """The common form of some lines.

    Args:
        separator: The text between two fields.
    """

    separator: bytes
    width: int
    fields: tuple[LineField, ...]

    def columns(self, pieces: list[bytes]) -> Columns:
        """Return the columns of the fields of some lines; empty when a line has another form."""
        found: Columns = {}
        for field in self.fields:
            values = field.texts(pieces[field.place :: self.width])
            if values is None:
                return {}
            if field.name:
                found[field.name] = values
        return found


class ColumnReader:
    """Reads lines as columns; keeps the form of the previous ones."""

    def __init__(self) -> None:
        self._table: LineTable | None = None
        self.reader = Reader(self.read, self.read_many)

    def learn(self, line: bytes) -> LineTable | None:
        """Return the form of a line without its prefix; None when it contains no step of the usual form."""
        raise NotImplementedError

    def steps(self, columns: Columns, prefixes: Prefixes) -> Sequence[Event]:
        """Return the events of some lines of one form; nothing when they do not rise."""
        raise NotImplementedError

    def other(self, line: bytes, prefix: Prefix) -> Sequence[Event]:  # noqa: ARG002  a reader of more lines uses them
        """Return the events of a line of any other form."""
        return ()

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Return the events of one line."""
        text = line[prefix.size :]
        if table := self.learn(text):
            when = None if isnan(prefix.when) else [prefix.when]
            columns = table.columns(text.split(table.separator))
            return self.steps(columns, Prefixes((), when, prefix.rank)) if columns else ()
        return self.other(line, prefix)

    def read_many(self, text: bytes, count: int) -> tuple[bytes, Sequence[Event]] | None:
        """Return the process and the events of many lines; None unless all are of one process and one form.

        Args:
            text: The lines, without the last line end.

        Raises:
            ValueError: A value is not a number, or a time is invalid.
        """
        found = self._columns(text, count)
        if found is None:
            line, _, _ = text.partition(b"\n")
            self._table, before = self.learn(line[read_prefix(line).size :]), self._table
            found = self._columns(text, count) if self._table != before else None
        events = self.steps(*found) if found else ()
        return (found[1].rank, events) if found and events else None

    def _columns(self, text: bytes, count: int) -> tuple[Columns, Prefixes] | None:
        if (table := self._table) is None:
            return None
        pieces = text.replace(b"\n", table.separator).split(table.separator)
        prefixes = read_prefixes(pieces[:: table.width]) if len(pieces) == count * table.width else None
        if prefixes is None:
            return None
        pieces[:: table.width] = prefixes.rest
        columns = table.columns(pieces)
        return (columns, prefixes) if columns else None


def is_constant(column: Sequence[object]) -> bool:
    """Report whether all items of a column are equal."""
    return column[0] == column[-1] and column.count(column[0]) == len(column)


def is_number(text: bytes) -> bool:
    """Report whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


# A field of a line with one object, split at the commas: closed brackets stand behind the last value of an object.
_MEMBER = re.compile(rb'((?:[^"{]*\{)?(?:"[^"\\]*": \{)*"[^"\\]*": "?)([^"{}\[\]\\]*)("?\}*)')
_NAME = re.compile(rb'"([^"]*)": (\{?)')


def table_of_json(line: bytes, wanted: Mapping[tuple[str, ...], str]) -> LineTable | None:
    """Return the form of a line with one JSON object of values and objects of values; None for any other line.

    Args:
        wanted: Path of a value, such as ("data", "loss"), -> its name.
    """
    pieces, fields, seen = line.split(b", "), list[LineField](), set[tuple[str, ...]]()
    above: list[str] = []
    for index, piece in enumerate(pieces):
        match = _MEMBER.fullmatch(piece)
        if match is None:
            return None
        head, value, tail = match.groups()
        *outer, (last, _) = _NAME.findall(head)
        above += [name.decode(errors="replace") for name, _ in outer]
        path = (*above, last.decode(errors="replace"))
        name = wanted.get(path, "")
        if path in seen or (name not in ("", CONSTANT) and not is_number(value)):
            return None
        seen.add(path)
        above = above[: max(len(above) - tail.count(b"}"), 0)]
        fields.append(LineField(index, piece, b"", "") if name == CONSTANT else LineField(index, head, tail, name))
    return LineTable(b", ", len(pieces), tuple(fields))


def steps_of(
    numbers: array[int],
    when: Sequence[float] | None,
    columns: Mapping[str, Sequence[bytes | float]],
    planned: int = 0,
) -> Steps | None:
    """Join columns to steps.

    Args:
        when: Time of each line; None = unknown.
        columns: The values, most of them as text, by VALUES.
        planned: Steps of the whole run; 0 = unknown.

    Returns:
        The steps; None when they do not rise, or when one occurs twice at different times.

    Raises:
        ValueError: A value is not a number.
    """
    if not all(map(lt, numbers, numbers[1:])):
        return None
    if max(abs(numbers[0]), abs(numbers[-1])) > _STEPS:
        raise ValueError(numbers)
    values = {name: _numbers(column) for name, column in columns.items()}
    return Steps(numbers, array("d", [NEVER]) * len(numbers) if when is None else array("d", when), values, planned)


def _numbers(column: Sequence[bytes | float]) -> array[float]:
    if is_constant(column):
        return array("d", [float(column[0])]) * len(column)
    return array("d", map(float, column))


def scaled(column: array[float], factor: float) -> array[float]:
    """Return a column in another unit."""
    return array("d", [value * factor for value in column])
