"""Figures that follow from a log without being in it: batch, step time, number of GPUs."""

from __future__ import annotations

from math import isfinite
from operator import sub, truediv
from typing import NamedTuple

from chartgen.metrics.figures.facts import Facts
from chartgen.metrics.figures.window import Window

# The time between two of their lines includes more than training.
_UNEVEN = ("mlperf",)
LINES = "the times of the lines"
# Tolerance of the logged speeds to a whole number of GPUs.
_WHOLE = 0.02


class Derived(NamedTuple):
    """A step time that the log does not contain.

    Args:
        seconds: The mean of the window.
        source: The basis of the calculation.
    """

    seconds: float
    source: str


def batch_of(window: Window) -> tuple[float | None, bool]:
    """Return the batch of the steps, and whether it changed."""
    batches = window.values("batch")
    if batches:
        return window.mean("batch"), min(batches) != max(batches)
    steps, samples = window.pairs("samples")
    each = {*map(truediv, map(sub, samples[1:], samples), map(sub, steps[1:], steps))}
    # some loggers round to a few digits, which makes the differences useless
    (batch,) = each if len(each) == 1 else (0.0,)
    return (batch, False) if batch > 0 and batch.is_integer() else (None, False)


def derived_of(window: Window, facts: Facts) -> Derived | None:
    """Return the step time of a log without one, from its tokens per second or the times of its lines."""
    speed, gpus = window.rate("tokens"), facts.get("gpus")
    batch, sequence = facts.get("batch"), facts.get("sequenceLength")
    if speed and gpus and batch and sequence:
        return Derived(batch * sequence / (speed * gpus), "tokens/s")
    if window.track.family in _UNEVEN:
        return None
    when, numbers = window.track.when, window.track.numbers
    passed = steps = 0.0
    for each in window.ranges:
        timed = [at for at in (each.start, each.stop - 1) if isfinite(when[at])]
        if len(timed) == 2 and when[timed[1]] > when[timed[0]]:
            passed += when[timed[1]] - when[timed[0]]
            steps += numbers[timed[1]] - numbers[timed[0]]
    return Derived(passed / steps, LINES) if steps else None


def gpus_of(window: Window, facts: Facts) -> dict[str, int]:
    """Return the number of GPUs of a log with tokens/s per GPU; nothing when it is not a whole number."""
    each, seconds = window.rate("tokens"), window.mean("seconds")
    batch, sequence = facts.get("batch"), facts.get("sequenceLength")
    if facts.get("gpus") or not (each and seconds and batch and sequence):
        return {}
    count = batch * sequence / (seconds * each)
    return {"gpus": round(count)} if count > 0.5 and abs(count / round(count) - 1) < _WHOLE else {}
