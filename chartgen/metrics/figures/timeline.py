"""Where the time of a run went: steps that count, starts, lost steps, checkpoints, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import filterfalse, pairwise
from operator import le
from typing import NamedTuple

from chartgen.metrics.figures.facts import Notice
from chartgen.metrics.figures.window import Window
from chartgen.metrics.read.events import Checkpoint
from chartgen.metrics.read.log import Log, kept, later

# A line may be written a little late; a clock that goes back by more was set, or the lines are out of order.
_SLACK = 1.0


class Restart(NamedTuple):
    """A start of a run that had trained before.

    Args:
        step: Its first step.
        lost: Repeated steps.
        pause: Seconds from the last step before it to the end of its first one; None = not told.
    """

    step: int
    lost: int
    pause: float | None


class Checkpoints(NamedTuple):
    """What checkpoints took.

    Args:
        saved: How many were saved, or began to be.
        unfinished: How many of these did not end within the log.
        seconds: Mean time from the first rank's start to the last rank's end; None = not told.
        blocking: Mean time that training stood still for one; None = not told.
        loads: How many were loaded.
        loading: Mean time of loading one; None = not told.
    """

    saved: int
    unfinished: int
    seconds: float | None
    blocking: float | None
    loads: int
    loading: float | None


class Timeline(NamedTuple):
    """Where the time of a run went.

    Args:
        wall: Seconds from the first line to the last step or checkpoint; None = the lines have no times.
        first_step: Seconds from the first line to the end of the first step; None = not told.
        steps: Steps that count in the end.
        restarts: Later starts.
        goodput: Share of the wall time that the steps which count would take at their median time, 0 to 1.
        checkpoints: What checkpoints took.
    """

    wall: float | None
    first_step: float | None
    steps: int
    restarts: tuple[Restart, ...]
    goodput: float | None
    checkpoints: Checkpoints


def timeline_of(log: Log, window: Window, median: float | None) -> tuple[Timeline, list[Notice]]:
    """Work out where the time of a run went.

    Goodput counts useful steps at their median time, so that a slow step is not useful only because it took long.
    Google's resiliency calculator does the same with a reference time that its user gives (AI-Hypercomputer/gpu-recipes
    @ 2e1fd5e, src/utils/resiliency_metrics/calculator.py).

    Args:
        log: What the logs tell.
        window: The steps that the median is of.
        median: Median time of a step in seconds; None when it is not told.
    """
    track = log.track
    notices = _backwards(log)
    begun = _begun(log)
    wall = _positive(log.ended - begun) if not notices else None
    steps = sum(window.steps(each) for each in kept(track))
    # steps of one time to the last digit may come out a little above the wall time
    goodput = min(steps * median / wall, 1.0) if wall and median else None
    first = _positive(track.when[0] - begun - _behind(window, median)) if math.isfinite(log.begun) else None
    found = Timeline(wall, first, steps, _restarts(log), goodput, checkpoints_of(log.checkpoints))
    return found, notices


def _begun(log: Log) -> float:
    """Return when a run began: with the log, but not after its first step; with that when another run came before."""
    column, spans = log.track.column("seconds"), log.track.column("span")
    took = column[0] if column and math.isfinite(column[0]) else 0.0
    took *= spans[0] if spans is not None and math.isfinite(spans[0]) else 1.0
    first = log.track.when[0] - took
    return log.begun if log.begun <= first else first


def _behind(window: Window, median: float | None) -> float:
    """Return how long after its first step the first line was written: it may stand for several; inf = unknown."""
    spans, column = window.track.column("span"), window.track.column("seconds")
    seconds = column[0] if column and math.isfinite(column[0]) else median
    steps = spans[0] if spans is not None and math.isfinite(spans[0]) else window.interval
    if steps > 1 and seconds is None:
        return math.inf
    return max(steps - 1, 0) * (seconds or 0.0)


def _positive(seconds: float) -> float | None:
    return seconds if seconds > 0 and math.isfinite(seconds) else None


def _backwards(log: Log) -> list[Notice]:
    when, latest = log.track.when, -math.inf
    told = [*filterfalse(math.isnan, when)]
    if all(map(le, told, told[1:])):  # as most logs are: told in a quarter of the time
        return []
    for index, time in enumerate(when):
        if time < latest - _SLACK:
            back = f"{latest - time:,.0f} s at step {log.track.numbers[index]:,}"
            hint = "wall time and goodput are left out; name the logs of one run, each once"
            return [Notice(f"the clock goes back by {back}", hint)]
        latest = max(latest, time)
    return []


def _restarts(log: Log) -> tuple[Restart, ...]:
    track = log.track
    found = []
    for before, after in pairwise(track.attempts()):
        step, reached = track.numbers[after.begin], track.numbers[before.end - 1]
        pause = _positive(track.when[after.begin] - track.when[before.end - 1])
        found.append(Restart(step, max(reached - step + 1, 0), pause))
    return tuple(found)


def checkpoints_of(signs: Sequence[Checkpoint]) -> Checkpoints:
    """Join the signs of checkpoints of all ranks: the first start and the last end of each step."""
    begun, ended, blocked = dict[int, float](), dict[int, float](), dict[int, float]()
    started = False
    for sign in signs:
        if sign.sign == "end":
            ended[sign.step] = later(ended.get(sign.step, math.nan), sign.when)
        elif sign.sign != "load":
            begun[sign.step] = -later(-begun.get(sign.step, math.nan), -sign.when)
            started = started or sign.sign == "start"
        if sign.sign == "saved":
            blocked[sign.step] = later(blocked.get(sign.step, math.nan), sign.seconds)
    loads = [sign.seconds for sign in signs if sign.sign == "load"]
    took = [ended[step] - begun[step] for step in ended if step in begun]
    return Checkpoints(
        saved=len({*begun, *ended}),
        unfinished=len(begun.keys() - ended.keys()) if started or ended else 0,
        seconds=_mean([seconds for seconds in took if seconds >= 0]),
        blocking=_mean(list(blocked.values())),
        loads=len(loads),
        loading=_mean([seconds for seconds in loads if not math.isnan(seconds)]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
