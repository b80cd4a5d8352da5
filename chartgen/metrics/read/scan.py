"""From blocks of lines to events: the few lines that matter are found as bytes before any of them is parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING

from chartgen.metrics.read.clock import read_time
from chartgen.metrics.read.events import NEVER, Checkpoint, Event, Mark, Step, Steps
from chartgen.metrics.read.prefix import read_prefix, read_prefixes
from chartgen.metrics.read.readers import MARKERS, SEQUENTIAL, SETTINGS, STARTS, TABLE, Readers

if TYPE_CHECKING:
    from chartgen.metrics.read.readers.nccl import Bandwidth, TableReader

# Where a log may carry its first time: some lines down, behind what a shell or a container runtime said.
_HEAD = 1 << 14
# How far from a start its configuration can reach; to search all of a long log for it takes twice the time.
_REACH = 1 << 25
# More than any run has; longer numbers have no place in a column.
_STEPS = 10**18
# Fewer lines are read sooner one by one than their layout is learned.
_FEW = 100
# Of a line that cannot be read.
_SHOWN = 100
# Longer than any line of these but those that are an object or a list of numbers.
_LINE = 1 << 16
_LONG = ("dllogger", "mlperf")
# What a line does that another rank has cut in two, and one that only looks like a known one.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)


class Scanner:
    """Reads one log."""

    def __init__(self) -> None:
        #: When the first line with a time was written; nan = none has one.
        self.begun = NEVER
        self.size = 0
        #: Lines that look like known ones but are not, and the first of them.
        self.broken = 0
        self.first_broken = ""
        self._readers = Readers()
        self._configured = _REACH
        # The family whose lines were all that the block before told, if they could be read at once.
        self._only = ""
        #: What tests of the network measured.
        self.bandwidths: list[Bandwidth] = []
        self._table: TableReader | None = None
        self._before = b""

    def scan(self, blocks: Iterable[bytes]) -> Iterator[list[tuple[str, bytes, Event]]]:
        """Return the events of each block with the family of their line and who wrote it."""
        for block in blocks:
            if not self.size:
                self.begun = read_time(block, 0, _HEAD)
            self.size += len(block)
            yield self._read(block)

    def _read(self, block: bytes) -> list[tuple[str, bytes, Event]]:
        self._tables(block)
        if self._only and (whole := self._whole(block, self._only)):
            return whole
        events: list[tuple[str, bytes, Event]] = []
        lines = self._find(block)
        for family, group in groupby(lines, key=itemgetter(2)):
            places = list(group)
            text = b"\n".join([block[start:end] for start, end, _ in places]) if len(places) >= _FEW else b""
            many = self._many(text, family, len(places))
            events += many or self._each(block, family, places)
            self._only = family if many and len(places) == len(lines) else ""
        if any(isinstance(event, Step | Steps) for _, _, event in events):
            self._configured, self._table = 0, None
        return events

    def _tables(self, block: bytes) -> None:
        """Read the tables of a test of the network; what it tests is named before the first one."""
        if self._table is None and TABLE in block:
            from chartgen.metrics.read.readers.nccl import TableReader

            self._table = TableReader()
            self._table.read(self._before)
        if self._table is not None:
            self.bandwidths += self._table.read(block)
        self._before = block

    def _whole(self, block: bytes, family: str) -> list[tuple[str, bytes, Event]]:
        """Read a block of nothing but lines of one family, without looking for each; nothing when it is none."""
        before = takewhile(lambda marker: MARKERS[marker] != family, MARKERS)
        if any(mark in block for mark in (*before, *STARTS)):
            return []
        # carriage returns leave a few lines empty
        lines = block.split(b"\n")
        return self._many(block, family, len(lines) - lines.count(b""))

    def _many(self, text: bytes, family: str, count: int) -> list[tuple[str, bytes, Event]]:
        """Read many lines at once; nothing when they are few, or one of them needs a closer look."""
        read_many = self._readers.find(family).read_many
        if read_many is None or count < _FEW:
            return []
        try:
            lines = read_prefixes(text, count)
            return [(family, lines.rank, event) for event in read_many(lines)] if lines else []
        except _UNREADABLE:
            return []

    def _each(
        self, block: bytes, family: str, places: list[tuple[int, int, str]]
    ) -> Iterator[tuple[str, bytes, Event]]:
        read = self._readers.find(family).read
        for start, end, _ in places:
            line = _whole_line(block, start, end, family)
            prefix = read_prefix(line)
            try:
                for event in read(line, prefix):
                    if abs(_number(event)) > _STEPS:
                        raise ValueError
                    yield family, prefix.rank, event
            except _UNREADABLE:
                self.broken += 1
                self.first_broken = self.first_broken or line[:_SHOWN].decode(errors="replace")

    def _find(self, block: bytes) -> list[tuple[int, int, str]]:
        """Find the lines that have a marker: start, end and family, the first family that knows the line.

        Megatron-Bridge tells of each step in two lines of two families. Where no line opens a new configuration, and
        none has two markers, the lines of each family stand together, so that they can be read at once.
        """
        found: dict[int, tuple[int, str]] = {}
        hits = 0
        if any(start in block for start in STARTS):
            self._configured = self.size + _REACH
        known = {**MARKERS, **STARTS, **SETTINGS} if self.size <= self._configured else {**MARKERS, **STARTS}
        for marker, family in known.items():
            at = block.find(marker)
            while at >= 0:
                end = block.find(b"\n", at)
                found.setdefault(block.rfind(b"\n", 0, at) + 1, (end, family))
                hits += 1
                at = block.find(marker, end)
        lines = sorted((start, end, family) for start, (end, family) in found.items())
        families = {family for _, _, family in lines}
        apart = hits == len(lines) and len(families) > 1 and families.isdisjoint(SEQUENTIAL)
        return sorted(lines, key=itemgetter(2)) if apart else lines


def _number(event: Event) -> int:
    """Return the step that an event is of; 0 for none."""
    return event.number if isinstance(event, Step) else event.step if isinstance(event, Checkpoint | Mark) else 0


def _whole_line(block: bytes, start: int, end: int, family: str) -> bytes:
    """Return a line, or what a notebook holds as one: a text in quotes."""
    if end - start > _LINE and family not in _LONG and b" in s: [" not in block[start:end]:
        return block[start : start + _LINE]
    line = block[start:end]
    if line[-1:] in (b'"', b",") and (text := line.strip(b" ,")).endswith(b'\\n"') and text.startswith(b'"'):
        return text[1:-3]
    return line
