"""How a run used its time, and the cost: counted steps, starts, lost steps, and checkpoints."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from itertools import filterfalse, islice, pairwise
from operator import le
from typing import NamedTuple

from chartgen.metrics.figures.facts import Facts, FigureNote
from chartgen.metrics.figures.window import Window
from chartgen.metrics.read.events import Checkpoint
from chartgen.metrics.read.log import Log, later
from chartgen.metrics.read.track import kept_steps

# A line may be slightly late; if time goes back by more, the clock was set or the lines are out of order.
_SLACK = 1.0
# So many starts of fewer lines each are those of two runs in turn: a run that fails so often trains for longer.
_MIXED, _FEWEST = 10, 4


class Restart(NamedTuple):
    """A later start of a run."""

    step: int  # its first step
    lost: int  # number of repeated steps
    pause_seconds: float | None  # time from the last step before it to the end of its first one; None = unknown
    cause: str  # what `chartgen why` finds in the lines of that time; unknown
    detection_seconds: float | None  # time from the last step to the first line of a failure; None = unknown
    restart_seconds: float | None  # time from there to the end of the first step; None = unknown


class Checkpoints(NamedTuple):
    """The number and times of checkpoints."""

    saved: int  # number of started saves
    unfinished: int  # number of these without an end in the log
    save_seconds: float | None  # mean time from the first rank's start to the last rank's end; None = unknown
    blocking_seconds: float | None  # mean time that a save stops training; None = unknown
    loads: int  # number of loads
    load_seconds: float | None  # mean time of a load; None = unknown


class Timeline(NamedTuple):
    """How a run used its time."""

    # Time from the first line to the last step or checkpoint; None = the lines have no times
    wall_seconds: float | None
    first_step_seconds: float | None  # time from the first line to the end of the first step; None = unknown
    steps: int  # number of steps, each counted once
    restarts: tuple[Restart, ...]  # later starts
    goodput: float | None  # share of the wall time that these steps would take at their median time, 0 to 1
    lost: Mapping[str, float]  # cause -> share of the wall time that restarts for it took, with the repeated steps
    checkpoints: Checkpoints  # the number and times of checkpoints


def timeline_of(log: Log, window: Window, median: float | None) -> tuple[Timeline, list[FigureNote]]:
    """Return how a run used its time.

    Goodput counts useful steps at their median time, so that a slow step does not count more because it took long.
    Google's resiliency calculator does the same with a reference time from its user (AI-Hypercomputer/gpu-recipes
    @ 2e1fd5e, src/utils/resiliency_metrics/calculator.py).

    Args:
        median: Median time of a step in seconds; None = unknown.
    """
    track = log.track
    notices = _backwards(log)
    begun = _begun(log)
    wall = _positive(log.ended - begun) if not notices else None
    steps = sum(window.steps(step) for step in kept_steps(track))
    # rounding of equal step times may exceed the wall time slightly
    goodput = min(steps * median / wall, 1.0) if wall and median else None
    timed = math.isfinite(log.begun) and {"seconds", "loss"} & track.columns.keys()  # no evaluations alone
    first = _positive(track.when[0] - begun - _behind(window, median)) if timed else None
    restarts = _restarts(log, window.interval)
    if len(restarts) >= _MIXED and _FEWEST * len(restarts) > len(track):
        back = f"the steps go back {len(restarts)} times in {len(track):,} lines: several runs write at once"
        notices.append(FigureNote(back, "the figures mix them; give each run a log of its own"))
        restarts = ()
    lost = _lost(restarts, median, wall, window.interval) if wall and median else {}
    return Timeline(wall, first, steps, restarts, goodput, lost, checkpoints_of(log.checkpoints)), notices


def _begun(log: Log) -> float:
    """Return the start of a run: that of the log, or of the first step when it is earlier or another run preceded."""
    column, spans = log.track.column("seconds"), log.track.column("span")
    took = column[0] if column and math.isfinite(column[0]) else 0.0
    took *= spans[0] if spans is not None and math.isfinite(spans[0]) else 1.0
    first = log.track.when[0] - took
    return log.begun if log.begun <= first else first


def _behind(window: Window, median: float | None) -> float:
    """Return the time from the first step to the first line, which may cover several steps; inf = unknown."""
    spans, column = window.track.column("span"), window.track.column("seconds")
    seconds = column[0] if column and math.isfinite(column[0]) else median
    steps = spans[0] if spans is not None and math.isfinite(spans[0]) else window.interval
    if steps > 1 and seconds is None:
        return math.inf
    return max(steps - 1, 0) * (seconds or 0.0)


def _positive(seconds: float) -> float | None:
    return seconds if seconds > 0 and math.isfinite(seconds) else None


def _backwards(log: Log) -> list[FigureNote]:
    when, latest = log.track.when, -math.inf
    times = when if math.isfinite(sum(when)) else array("d", filterfalse(math.isnan, when))
    if all(map(le, times, islice(times, 1, None))):  # true for most logs, and takes a quarter of the time
        return []
    for index, time in enumerate(when):
        if time < latest - _SLACK:
            back = f"{latest - time:,.0f} s at step {log.track.numbers[index]:,}"
            hint = "wall time and goodput are left out; name the logs of one run, each once"
            return [FigureNote(f"the clock goes back by {back}", hint)]
        latest = max(latest, time)
    return []


def _restarts(log: Log, interval: int) -> tuple[Restart, ...]:
    track = log.track
    found = []
    for before, after in pairwise(track.attempts()):
        step, reached = track.numbers[after.begin], track.numbers[before.end - 1]
        begun = track.when[before.end - 1]
        pause = _positive(track.when[after.begin] - begun)
        cause, seen = log.causes.get(begun, ("unknown", None))
        detection = max(seen - begun, 0.0) if pause and seen is not None and seen <= begun + pause else None
        again = pause - detection if pause and detection is not None else None
        lost = max(reached - step + _covered(step, interval), 0)
        found.append(Restart(step, lost, pause, cause, detection, again))
    return tuple(found)


def _covered(step: int, interval: int) -> int:
    """Return the number of steps that a start's first line covers: checkpoints are at steps that are logged too."""
    return interval if step % interval == 0 else 1


def _lost(restarts: Sequence[Restart], median: float, wall: float, interval: int) -> dict[str, float]:
    """Return the share of the wall time that each cause took; the first line of a start counts or is a repeated one."""
    shares: dict[str, float] = {}
    for each in restarts:
        seconds = max((each.pause_seconds or 0.0) + (each.lost - _covered(each.step, interval)) * median, 0.0)
        shares[each.cause] = shares.get(each.cause, 0.0) + seconds / wall
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


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
        save_seconds=_mean([seconds for seconds in took if seconds >= 0]),
        blocking_seconds=_mean(list(blocked.values())),
        loads=len(loads),
        load_seconds=_mean([seconds for seconds in loads if not math.isnan(seconds)]),
    )


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


class Cost(NamedTuple):
    """The cost of a run, in the currency of the price."""

    total: float | None  # cost of the wall time; None = unknown
    per_billion_tokens: float | None  # cost at the speed of the window; None = unknown
    machines: int  # number of machines
    price: float  # price per machine and hour
    currency: str = ""  # its currency; empty = not stated


def cost_of(
    price: float, facts: Facts, wall: float | None, tokens: float | None, *, per_gpu: bool = False, currency: str = ""
) -> Cost | FigureNote:
    """Return the cost of a run.

    Args:
        price: Price per machine and hour.
        facts: The number of machines, and of GPUs.
        per_gpu: Whether it is the price of a GPU.
        wall: Wall time in seconds; None = unknown.
        tokens: Tokens per second; None = unknown.
    """
    machines = facts.get("machines")
    if not machines:
        return FigureNote("the cost is not known without the machines", "give --machines, or values with -f")
    if per_gpu:
        if not (gpus := facts.get("gpus")):
            return FigureNote("the cost is not known without the GPUs", "give --gpus, or values with -f")
        price = price * gpus / machines
    rate = price * machines / 3600
    return Cost(rate * wall if wall else None, rate / tokens * 1e9 if tokens else None, machines, price, currency)
