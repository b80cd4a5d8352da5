"""Training results: the loss, evaluations, and the score of a benchmark."""

from __future__ import annotations

from array import array
from itertools import repeat
from math import isfinite
from operator import mul, sub
from typing import NamedTuple

from chartgen.metrics.figures.window import Window
from chartgen.metrics.read.collect import Log
from chartgen.metrics.read.events import NEVER


class LossCourse(NamedTuple):
    """The course of the loss in the window.

    Args:
        first: The first finite value.
        last: The last finite value.
        lowest: The lowest value.
        slope: Change per 1,000 steps by linear regression (least squares).
    """

    first: float
    last: float
    lowest: float
    slope: float


class Score(NamedTuple):
    """The training time of a benchmark, and its outcome."""

    seconds: float
    status: str


class Evaluation(NamedTuple):
    """One evaluation of the model.

    Args:
        value: The result: a loss, or another metric of the benchmark.
        step: The step before it; -1 = unknown.
        samples: The number of samples before it; nan = unknown.
        when: Its time; nan = unknown.
        epoch: Its epoch, as the program counts; nan = unknown.
    """

    value: float
    step: int
    samples: float
    when: float
    epoch: float = NEVER


def loss_of(window: Window) -> LossCourse | None:
    """Return the course of the loss in a window; None when the log does not contain it."""
    numbers, values = window.pairs("loss")
    if not values:
        return None
    steps = array("d", map(sub, numbers, repeat(window.first)))
    # sums for the linear regression
    x, y, xx, xy = sum(steps), sum(values), sum(map(mul, steps, steps)), sum(map(mul, steps, values))
    spread = len(values) * xx - x * x
    slope = (len(values) * xy - x * y) / spread * 1000 if spread else 0.0
    return LossCourse(values[0], values[-1], min(values), slope)


def evaluations_of(log: Log) -> tuple[Evaluation, ...]:
    """Return the evaluations, first to last."""
    evaluations = [mark for mark in log.marks if mark.kind == "eval"]
    if evaluations:
        return tuple(
            Evaluation(float(mark.text), mark.step, mark.samples, mark.when, mark.epoch) for mark in evaluations
        )
    # some programs repeat the last one with each step
    track, column = log.track, log.track.column("validation") or ()
    changed = [at for at, value in enumerate(column) if isfinite(value) and (not at or column[at - 1] != value)]
    return tuple(Evaluation(column[at], track.numbers[at], NEVER, track.when[at]) for at in changed)


def score_of(log: Log) -> Score | None:
    """Return the score of a benchmark; None for any other log."""
    starts = [mark for mark in log.marks if mark.kind == "run_start"]
    stops = [mark for mark in log.marks if mark.kind == "run_stop"]
    return Score(stops[-1].when - starts[-1].when, stops[-1].text) if starts and stops else None
