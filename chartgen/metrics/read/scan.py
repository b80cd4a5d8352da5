"""From blocks of lines to events: a search in bytes finds the few relevant lines before any is parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from chartgen.metrics.read.events import NEVER, Checkpoint, Event, Mark, Start, Step, Steps
from chartgen.metrics.read.prefix import read_prefix, read_time
from chartgen.metrics.read.readers import FAMILIES, MARKERS, SEQUENTIAL, SETTINGS, STARTS, TABLE, Reader, open_reader
from chartgen.visible import cut

if TYPE_CHECKING:
    from chartgen.checks.line_patterns import LinePatterns
    from chartgen.metrics.read.readers.forms import Form, Rows
    from chartgen.metrics.read.readers.nccl import Bandwidth, TableReader

# Part of a log in which to search its first time, which may follow the output of a shell or a container runtime.
_HEAD = 1 << 14
# Largest extent of a configuration from its start; to search all of a long log for it takes twice the time.
_REACH = 1 << 25
# More steps than any run has; longer numbers do not fit into a column.
_STEPS = 10**18
# Fewer lines take less time one by one than to learn their form: in a log of one block, and of any block.
_FEW, _FEWEST = 100, 10
# Shown characters of an unreadable line.
_SHOWN = 100
# Longer than any relevant line, except objects and lists of numbers.
_LINE = 1 << 16
_LONG = ("dllogger", "mlperf")
# Errors from a line that another rank has interrupted, or that only resembles a known one.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)


_ORDER = {family: place for place, family in enumerate(FAMILIES)}
#: The family of a line, the process that wrote it, and an event.
Found: TypeAlias = tuple[str, bytes, Event]


class Scanner:
    """Reads one log; `own` has expressions for the lines of a user's program, which count before all others."""

    def __init__(self, own: LinePatterns | None = None) -> None:
        #: Time of the first line with a time; nan = none has one.
        self.begun = NEVER
        self.size = 0
        #: Number of unreadable lines of a known form, and the first of them.
        self.broken = 0
        self.first_broken = ""
        self._readers: dict[str, Reader] = {}
        if own:
            from chartgen.metrics.read.readers.own import open_own

            self._readers["own"] = open_own(own)
        self._own = own.marker.encode() if own else b""
        self._markers = {self._own: "own", **MARKERS} if own else MARKERS
        self._configured = _REACH
        # The families of the previous block and their forms, if all its lines could be read at once.
        self._forms: list[tuple[str, Form]] = []
        #: Results of network tests.
        self.bandwidths: list[Bandwidth] = []
        self._table: TableReader | None = None
        self._before = b""

    def scan(self, blocks: Iterable[bytes]) -> Iterator[list[Found]]:
        """Yield the events of each block, each with the family and the process of its line."""
        for block in blocks:
            if not self.size:
                self.begun = read_time(block, 0, _HEAD)
            self.size += len(block)
            yield self._read(block)

    def _read(self, block: bytes) -> list[Found]:
        self._tables(block)
        if usual := self._usual(block):
            return usual
        events: list[Found] = []
        forms: dict[str, Form | None] = {}
        size = 0
        for family, group in groupby(self._find(block), key=itemgetter(2)):
            places, form = list(group), self._reader(family).form
            lines = [block[start : end + 1] for start, end, _ in places] if form else []
            many = self._many(lines, family, form, first=self.size == len(block)) if form else []
            events += many or self._each(block, family, places)
            forms[family] = form if many else None
            size += sum(map(len, lines))
        known = [(family, form) for family, form in forms.items() if form]
        # a family that counts its lines comes last; amid other lines no block is of these forms alone
        alone = len(known) == len(forms) and 2 * size > len(block)
        self._forms = sorted(known, key=lambda item: _ORDER[item[0]]) if alone else []
        last = next((event for _, _, event in reversed(events) if isinstance(event, Start | Step | Steps)), None)
        if isinstance(last, Step | Steps):  # no later start prints its configuration
            self._configured, self._table = 0, None
        return events

    def _reader(self, family: str) -> Reader:
        if family not in self._readers:
            self._readers[family] = open_reader(family)
        return self._readers[family]

    def _tables(self, block: bytes) -> None:
        """Read the tables of a network test; the collective is named before the first one."""
        if self._table is None and TABLE in block:
            from chartgen.metrics.read.readers.nccl import TableReader

            self._table = TableReader()
            self._table.read(self._before)
        if self._table is not None:
            self.bandwidths += self._table.read(block)
        self._before = block

    def _usual(self, block: bytes) -> list[Found]:
        """Read a block with lines of the previous forms only, without a search for all marks; nothing for others."""
        if not self._forms or (self._own and self._own in block):
            return []
        matched = [(family, form, *form.match(block)) for family, form in self._forms]
        if sum(len(rows) for _, _, rows, _ in matched) != len(matched[0][2]) + matched[0][3]:
            return []
        events: list[Found] = []
        for family, form, rows, _ in matched:
            found = _read_rows(family, form, rows) if rows else []
            if rows and not found:
                return []
            events += found
        return events

    def _many(self, lines: list[bytes], family: str, form: Form, *, first: bool) -> list[Found]:
        """Read many lines at once; nothing when they must be read one by one."""
        if len(lines) < (_FEW if first else _FEWEST):
            return []
        text = b"".join(lines)
        rows, others = form.match(text)
        if (others or not rows) and form.learn(lines[0][:-1]):
            rows, others = form.match(text)
        return _read_rows(family, form, rows) if rows and not others else []

    def _each(self, block: bytes, family: str, places: list[tuple[int, int, str]]) -> Iterator[Found]:
        read = self._reader(family).read
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
                self.first_broken = self.first_broken or cut(line[: 2 * _SHOWN].decode(errors="replace"), _SHOWN)

    def _find(self, block: bytes) -> list[tuple[int, int, str]]:
        """Return start, end and family of the lines with a marker; the first matching family wins.

        Megatron-Bridge logs each step in two lines of two families. If no line opens a new configuration, and none has
        two markers, the lines are sorted by family, so that those of a family can be read at once.
        """
        found: dict[int, tuple[int, str]] = {}
        hits = 0
        known = self._markers
        if any(start in block for start in STARTS):
            self._configured = self.size + _REACH
            known = {**known, **STARTS}
        if self.size <= self._configured:
            known = {**known, **SETTINGS}
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


def _read_rows(family: str, form: Form, rows: Rows) -> list[Found]:
    try:
        rank, events = form.read_rows(rows)
    except _UNREADABLE:
        return []
    return [(family, rank, event) for event in events]


def _number(event: Event) -> int:
    """Return the step of an event; 0 for an event without one."""
    return event.number if isinstance(event, Step) else event.step if isinstance(event, Checkpoint | Mark) else 0


def _whole_line(block: bytes, start: int, end: int, family: str) -> bytes:
    """Return a line; of a notebook, the text inside the quotes."""
    if end - start > _LINE and family not in _LONG and b" in s: [" not in block[start:end]:
        return block[start : start + _LINE]
    line = block[start:end]
    if line[-1:] in (b'"', b",") and (text := line.strip(b" ,")).endswith(b'\\n"') and text.startswith(b'"'):
        return text[1:-3]
    return line
