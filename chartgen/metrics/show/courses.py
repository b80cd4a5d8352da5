"""A column of a run over its steps, in bins, separate for each start."""

from __future__ import annotations

import math
from typing import NamedTuple

from chartgen.metrics.read.track import kept_steps
from chartgen.metrics.report_data import RunFigures
from chartgen.metrics.show.series import Bin, bins


class Course(NamedTuple):
    """A column over the steps of one start.

    Args:
        bins: The steps, in bins.
        lost: Whether a later start repeated these steps.
    """

    bins: list[Bin]
    lost: bool


def courses(figures: RunFigures, name: str, most: int) -> list[Course]:
    """Return a column in bins, separate for each start of the run; empty when the log does not contain it.

    Args:
        most: Maximum number of bins of all starts together.
    """
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
