"""The window of steps for the figures."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from functools import cached_property
from itertools import compress
from operator import mul

from chartgen.errors import ChartgenError, Problem, UsageError
from chartgen.metrics.read.track import Track, kept_steps

# Warm-up steps: the program allocates memory, chooses kernels and fills caches. Google's recipes
# also omit the first ten (AI-Hypercomputer/gpu-recipes @ 2e1fd5e, src/utils/training_metrics).
_WARM_UP = 10
# Largest share of a short run.
_SHARE = 5


class Window:
    """Some steps of a track: ranges of indices, and how many were skipped as warm-up in all starts together."""

    def __init__(self, track: Track, ranges: tuple[range, ...], skipped: int = 0) -> None:
        self.track = track
        self.ranges = ranges
        self.skipped = skipped

    def __len__(self) -> int:
        return sum(map(len, self.ranges))

    @property
    def first(self) -> int:
        """The first step."""
        return int(self.track.numbers[self.ranges[0].start])

    @property
    def last(self) -> int:
        """The last step."""
        return int(self.track.numbers[self.ranges[-1].stop - 1])

    @cached_property
    def interval(self) -> int:
        """Return the usual number of steps per line."""
        return interval_of(self.track)

    def pairs(self, name: str) -> tuple[array[int], array[float]]:
        """Return step and value for each finite value."""
        steps, values = array("q"), self._column(name)
        for each in self.ranges if values else ():
            steps.extend(self.track.numbers[each.start : each.stop])
        if math.isfinite(sum(values)):
            return steps, values
        finite = [*map(math.isfinite, values)]
        return array("q", compress(steps, finite)), array("d", compress(values, finite))

    def values(self, name: str) -> array[float]:
        """Return the finite values."""
        values = self._column(name)
        return values if math.isfinite(sum(values)) else array("d", filter(math.isfinite, values))

    def rate(self, name: str) -> float | None:
        """Return the mean of a speed over the time of the steps, its harmonic mean; None without values."""
        seconds = array("d", (1 / value for value in self.values(name) if value > 0))
        return len(seconds) / math.fsum(seconds) if seconds else None

    def mean(self, name: str) -> float | None:
        """Return the mean of a column, weighted by the steps of each line; None without finite values."""
        if "span" in self.track.columns:
            return self._spanned(name)
        if self.interval == 1:
            values = self.values(name)
            return math.fsum(values) / len(values) if values else None
        total = weight = last = 0.0
        for step, value in zip(*self.pairs(name), strict=True):
            span = min(step - last, self.interval) if step > last and weight else self.interval
            total, weight, last = total + value * span, weight + span, step
        return total / weight if weight else None

    def _spanned(self, name: str) -> float | None:
        """Return the mean of a column whose lines report the number of their steps; other lines count as one step."""
        spans, values = self._column("span"), self._column(name)
        if not math.isfinite(sum(spans)):
            spans = array("d", (1.0 if math.isnan(span) else span for span in spans))
        if values and not math.isfinite(sum(values)):
            finite = [*map(math.isfinite, values)]
            spans, values = array("d", compress(spans, finite)), array("d", compress(values, finite))
        return math.fsum(map(mul, spans, values)) / math.fsum(spans) if values else None

    def _column(self, name: str) -> array[float]:
        column = self.track.column(name) or array("d")
        first, *others = self.ranges or (range(0),)
        values = column[first.start : first.stop]
        for each in others:
            values.extend(column[each.start : each.stop])
        return values

    def steps(self, indices: range) -> int:
        """Return the number of steps of some lines; each line covers the steps since the previous line."""
        if not len(indices):
            return 0
        numbers, spans = self.track.numbers, self.track.column("span")
        span: float = self.interval
        if spans is not None:
            span = next((spans[at] for at in indices if math.isfinite(spans[at])), 1)
        first = int(numbers[indices.start])
        # no line covers steps before the run, which begins with 0 or 1
        return int(numbers[indices.stop - 1]) - max(first - int(span), min(first, 1) - 1)


def interval_of(track: Track) -> int:
    """Return the number of steps per line of a log: the most frequent distance between neighbours."""
    numbers = track.numbers
    distances = sorted(numbers[at + 1] - numbers[at] for at in range(min(len(numbers) - 1, 1000)))
    return max(distances[len(distances) // 2], 1) if distances else 1


def steady(track: Track) -> Window:
    """Return all counted steps except the first of each start: ten, or a fifth of a short one."""
    ranges, skipped = [], 0
    for step in kept_steps(track):
        skip = min(_WARM_UP, len(step) // _SHARE)
        skipped += skip
        ranges.append(range(step.start + skip, step.stop))
    return Window(track, tuple(each for each in ranges if len(each)), skipped)


def between(track: Track, first: int, last: int) -> Window:
    """Return the steps from one number to another, both included; raise ChartgenError if the log has none of them."""
    ranges = []
    for step in kept_steps(track):
        start = bisect_left(track.numbers, first, step.start, step.stop)
        ranges.append(range(start, bisect_right(track.numbers, last, start, step.stop)))
    ranges = [each for each in ranges if len(each)]
    if not ranges:
        found = f"the log has {min(track.numbers)} to {max(track.numbers)}"
        raise ChartgenError(Problem(f"no steps between {first} and {last}: {found}", hint="give another --window"))
    return Window(track, tuple(ranges))


def window_of(track: Track, text: str) -> Window:
    """Read a window as users write it: FIRST:LAST in steps, both included, `all`, or nothing for the steady part.

    Raises:
        UsageError: It is not a window.
        ChartgenError: The log does not contain these steps.
    """
    if not text:
        return steady(track)
    if text == "all":
        return Window(track, tuple(step for step in kept_steps(track) if len(step)))
    first, colon, last = text.partition(":")
    if not (colon and (first or "0").isdecimal() and (last or "0").isdecimal()):
        raise UsageError(
            Problem(f"{text!r} is not a window of steps", hint="write FIRST:LAST in steps, both included, or all")
        )
    return between(track, int(first or 0), int(last) if last else 1 << 62)
