"""The steps of one process as columns of numbers: 8 bytes for each number, and attempts where a run began again."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from math import copysign, inf, isnan, nan
from typing import NamedTuple, overload

from chartgen.errors import ChartgenError, Problem
from chartgen.metrics.read.events import Step, Steps

# A run with one step per second takes four months for this number; memory stays below 1 GB.
_MOST = 10_000_000
# The largest float32, in which programs count; larger values are invalid, and their sums overflow.
_LARGEST = 3.4028235e38


class Attempt(NamedTuple):
    """The indices of the steps of one start of a run."""

    begin: int
    end: int
    section: int  # number of configurations printed before it
    before: int = 0  # steps that the start before it had planned; 0 = unknown


class Column(Sequence[float]):
    """The values of one name; as long as all are equal, as most of a configuration are, only one is kept."""

    def __init__(self, values: Sequence[float] = ()) -> None:
        self._values = array("d")
        self._size = 0
        self.put(0, values)

    def put(self, at: int, values: Sequence[float]) -> None:
        """Add values from an index on; those before it that are missing become nan."""
        if at > self._size:
            self.put(self._size, [nan] * (at - self._size))
        if self._size > 1 and self._is_whole:
            self._values.extend(values)
        else:
            added = array("d", values)
            first = self._values[:1] or added[:1]
            if added == first * len(added):
                self._values = first
            else:
                self._values = self[:] + added
        self._size += len(values)

    @property
    def _is_whole(self) -> bool:
        return len(self._values) == self._size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> float: ...
    @overload
    def __getitem__(self, at: slice) -> array[float]: ...
    def __getitem__(self, at: int | slice) -> float | array[float]:
        if self._is_whole:
            return self._values[at]
        places = range(self._size)[at]
        return self._values[0] if isinstance(places, int) else self._values * len(places)

    def __setitem__(self, at: int, value: float) -> None:
        if not self._is_whole:
            self._values = self[:]
        self._values[at] = value

    def __iter__(self) -> Iterator[float]:
        return iter(self[:])


class Track:
    """The steps of one process, in the order of its log."""

    def __init__(self, family: str) -> None:
        self.family = family
        #: The steps' numbers.
        self.numbers = array("q")
        #: Time of each; nan = unknown.
        self.when = array("d")
        #: The values of each; nan = unknown, or not a number, as `odd` records.
        self.columns: dict[str, Column] = {}
        #: Column -> indices of steps whose value is nan or infinite.
        self.odd: dict[str, array[int]] = {}
        #: Steps of the whole run; 0 = unknown.
        self.planned = 0
        self._starts: list[tuple[int, int, int]] = []

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, step: Step, section: int = 0) -> None:
        """Add a step, unless it repeats an earlier one: a bar drawn again, or another rank's equal line.

        Raises:
            ChartgenError: The log contains more steps than any run has.
        """
        numbers, number = self.numbers, step.number
        if not numbers:
            self._starts.append((0, section, 0))
        elif number <= numbers[-1]:
            at = self._known(step, section)
            if at is not None:
                self._fill(at, step)
                return
            self._starts.append((len(numbers), section, self.planned))
        elif section != self._starts[-1][1]:
            self._starts.append((len(numbers), section, self.planned))  # started again at its end: no step was lost
        if len(numbers) >= _MOST:
            raise ChartgenError(Problem(f"more than {_MOST:,} steps", hint="name the logs of one run"))
        numbers.append(number)
        self.when.append(step.when)
        self.planned = step.planned or self.planned
        self._put(len(numbers) - 1, {name: (value,) for name, value in step.values.items()})

    def add_many(self, steps: Steps, section: int = 0) -> None:
        """Add steps; those that directly follow the last one are added at once."""
        index = len(self.numbers)
        if not index or section != self._starts[-1][1] or steps.numbers[0] <= self.numbers[-1]:
            rows = zip(steps.numbers, steps.when, *steps.columns.values(), strict=True)
            for number, when, *values in rows:
                self.add(Step(number, when, dict(zip(steps.columns, values, strict=True)), steps.planned), section)
            return
        self.numbers.extend(steps.numbers)
        self.when.extend(steps.when)
        self.planned = steps.planned or self.planned
        self._put(index, steps.columns)

    def _put(self, index: int, columns: Mapping[str, Sequence[float]]) -> None:
        for name, values in columns.items():
            if name not in self.columns:
                self.columns[name] = Column()
            self.columns[name].put(index, values)
            if not -_LARGEST < sum(values) < _LARGEST:
                self._mark(name, [index + at for at, value in enumerate(values) if not abs(value) < _LARGEST])

    def _mark(self, name: str, indices: list[int]) -> None:
        """Record values that are nan or infinite; a value beyond the program's number format becomes infinite."""
        self.odd.setdefault(name, array("q")).extend(indices)
        column = self.columns[name]
        for at in indices:
            column[at] = nan if isnan(column[at]) else copysign(inf, column[at])

    def _known(self, step: Step, section: int) -> int | None:
        """Return the index of the same step of this start: its line time, step time and loss are equal where known."""
        begin, before, _ = self._starts[-1]
        at = bisect_left(self.numbers, step.number, begin)
        if section != before or at == len(self.numbers) or self.numbers[at] != step.number:
            return None
        given = ((self._value(name, at), step.values.get(name, nan)) for name in ("seconds", "loss"))
        pairs = ((self.when[at], step.when), *given)
        return at if all(one == other or isnan(one) or isnan(other) for one, other in pairs) else None

    def _value(self, name: str, at: int) -> float:
        return self.columns[name][at] if self._has_value(name, at) else nan

    def _fill(self, at: int, step: Step) -> None:
        """Add the missing values of the last step: some programs log a step in several lines."""
        if at == len(self.numbers) - 1:
            self._put(at, {name: (value,) for name, value in step.values.items() if not self._has_value(name, at)})

    def _has_value(self, name: str, at: int) -> bool:
        column = self.columns.get(name)
        return column is not None and at < len(column)

    def column(self, name: str) -> Column | None:
        """Return a column, as long as the track; None when the log does not contain it."""
        column = self.columns.get(name)
        if column is not None:
            column.put(len(self), ())
        return column

    def attempts(self) -> Iterator[Attempt]:
        """Yield the starts of the run, first to last."""
        ends = [start for start, *_ in self._starts[1:]] + [len(self)]
        for (begin, section, before), end in zip(self._starts, ends, strict=True):
            yield Attempt(begin, end, section, before)

    def extend(self, other: Track, sections: int) -> None:
        """Append the steps of a later log, before which a number of configurations were printed."""
        odd = {name: set(indices) for name, indices in other.odd.items()}
        columns = {name: column for name in other.columns if (column := other.column(name)) is not None}
        for attempt in other.attempts():
            self._starts.append((len(self), attempt.section + sections, attempt.before or self.planned))
            for index in range(attempt.begin, attempt.end):
                self.numbers.append(other.numbers[index])
                self.when.append(other.when[index])
                given = {name: column[index] for name, column in columns.items()}
                kept = {name: (v,) for name, v in given.items() if not isnan(v) or index in odd.get(name, ())}
                self._put(len(self) - 1, kept)
        self.planned = other.planned or self.planned

    def part(self, begin: int, end: int) -> Track:
        """Return the steps of some whole starts."""
        part = Track(self.family)
        part.numbers, part.when = self.numbers[begin:end], self.when[begin:end]
        # the planned steps of an earlier run are unknown
        part.planned = self.planned if end == len(self) else 0
        part.columns = {
            name: Column(column[begin:end]) for name in self.columns if (column := self.column(name)) is not None
        }
        for name, indices in self.odd.items():
            part.odd[name] = array("q", [at - begin for at in indices if begin <= at < end])
        part._starts = [(at - begin, section, before) for at, section, before in self._starts if begin <= at < end]
        return part


def kept_steps(track: Track) -> Iterator[range]:
    """Yield the indices of the steps that count: those that a later start repeated do not."""
    limit: float = inf
    ranges = []
    for attempt in reversed([*track.attempts()]):
        end = bisect_left(track.numbers, limit, attempt.begin, attempt.end)
        ranges.append(range(attempt.begin, end))
        limit = min(limit, track.numbers[attempt.begin])
    yield from reversed(ranges)
