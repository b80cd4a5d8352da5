"""From blocks of lines to events: the few lines that matter are found as bytes before any of them is parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from chartgen.metrics.clock import read_time
from chartgen.metrics.events import NEVER, Event, Step, Steps
from chartgen.metrics.prefix import read_prefix
from chartgen.metrics.readers import MARKERS, SETTINGS, STARTS, Readers

# Where a log may carry its first time: some lines down, behind what a shell or a container runtime said.
_HEAD = 1 << 14
# How far from a start its configuration can reach; to search all of a long log for it takes twice the time.
_REACH = 1 << 25
# Of a line that cannot be read.
_SHOWN = 100


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

    def scan(self, blocks: Iterable[bytes]) -> Iterator[list[tuple[str, bytes, Event]]]:
        """Give the events of each block with the family of their line and who wrote it."""
        for block in blocks:
            if not self.size:
                self.begun = read_time(block, 0, _HEAD)
            self.size += len(block)
            yield self._read(block)

    def _read(self, block: bytes) -> list[tuple[str, bytes, Event]]:
        events: list[tuple[str, bytes, Event]] = []
        lines = sorted((start, end, family) for start, (end, family) in self._find(block).items())
        for family, group in groupby(lines, key=itemgetter(2)):
            places = list(group)
            read_many = self._readers.find(family).read_many
            many = read_many(block, places[0][0], places[-1][1], len(places)) if read_many else None
            events += [(family, b"", many)] if many else self._each(block, family, places)
        if any(isinstance(event, Step | Steps) for _, _, event in events):
            self._configured = 0
        return events

    def _each(
        self, block: bytes, family: str, places: list[tuple[int, int, str]]
    ) -> Iterator[tuple[str, bytes, Event]]:
        read = self._readers.find(family).read
        for start, end, _ in places:
            line = block[start:end]
            prefix = read_prefix(line)
            try:
                for event in read(line, prefix):
                    yield family, prefix.rank, event
            except (ValueError, KeyError, TypeError, AttributeError):  # cut in two by another rank, or a look-alike
                self.broken += 1
                self.first_broken = self.first_broken or line[:_SHOWN].decode(errors="replace")

    def _find(self, block: bytes) -> dict[int, tuple[int, str]]:
        """Find the lines that have a marker: start -> end and family, the first family that knows the line."""
        found: dict[int, tuple[int, str]] = {}
        if any(start in block for start in STARTS):
            self._configured = self.size + _REACH
        known = {**MARKERS, **STARTS, **SETTINGS} if self.size <= self._configured else {**MARKERS, **STARTS}
        for marker, family in known.items():
            at = block.find(marker)
            while at >= 0:
                end = block.find(b"\n", at)
                found.setdefault(block.rfind(b"\n", 0, at) + 1, (end, family))
                at = block.find(marker, end)
        return found
