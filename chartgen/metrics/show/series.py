"""A column of a run, reduced to a size that can be drawn: half a million steps become a few hundred bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from chartgen.metrics.read.track import kept_steps
from chartgen.metrics.report_data import RunFigures

_BLOCKS = "▁▂▃▄▅▆▇█"


class Bin(NamedTuple):
    """Some neighbouring steps, by the middle one: 90 of 100 are from low to high; nan when no value is finite."""

    step: float
    least: float
    low: float
    middle: float
    high: float
    most: float


def bins(steps: Sequence[int], values: Sequence[float], most: int) -> list[Bin]:
    """Return neighbouring steps in at most so many bins, with each bin's extremes so that outliers stay visible."""
    size = max(math.ceil(len(steps) / most), 1)
    return [_bin(steps[at : at + size], values[at : at + size]) for at in range(0, len(steps), size)]


def _bin(steps: Sequence[int], values: Sequence[float]) -> Bin:
    middle = (steps[0] + steps[-1]) / 2
    ordered = sorted([value for value in values if -math.inf < value < math.inf])
    if not ordered:
        return Bin(middle, *[math.nan] * 5)
    rank = (len(ordered) - 1) * 0.05
    low, high = ordered[math.ceil(rank)], ordered[-1 - math.ceil(rank)]
    return Bin(middle, ordered[0], min(low, high), ordered[len(ordered) // 2], max(low, high), ordered[-1])


def sparkline(figures: RunFigures, name: str, width: int = 60) -> str:
    """Draw a column over the window as one line of text; empty when it has too few values."""
    steps, values = figures.window.pairs(name)
    if len(steps) < 3:
        return ""
    cells = bins(steps, values, width)
    low, high = min(cell.middle for cell in cells), max(cell.middle for cell in cells)
    return "".join(_block(cell.middle, low, high) for cell in cells)


def _block(value: float, low: float, high: float) -> str:
    return _BLOCKS[round((value - low) / (high - low) * (len(_BLOCKS) - 1))] if high > low else _BLOCKS[0]


class Course(NamedTuple):
    """A column over the steps of one start."""

    bins: list[Bin]
    lost: bool  # whether a later start repeated these steps
    run: int = 0  # number of the baseline whose course it is; 0 for the run itself


def courses(figures: RunFigures, name: str, most: int) -> list[Course]:
    """Return a column in bins for each start, `most` in all; empty when the log does not contain it."""
    track = figures.log.track
    column = track.column(name)
    if column is None:
        return []
    size = math.ceil(len(track) / most)
    drawn = []
    for attempt, counted in zip(track.attempts(), kept_steps(track), strict=True):
        for part, lost in ((counted, False), (range(counted.stop, attempt.end), True)):
            if len(part):
                steps, values = track.numbers[part.start : part.stop], column[part.start : part.stop]
                drawn.append(Course(bins(steps, values, math.ceil(len(part) / size)), lost))
    return drawn
