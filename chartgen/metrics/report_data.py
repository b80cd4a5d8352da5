"""The readout of a run: everything that its logs and the facts beside them amount to."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isfinite
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple

from chartgen.errors import ChartgenError, Problem
from chartgen.metrics.choose_run import choose_run
from chartgen.metrics.figures.facts import Facts, Notice, agree
from chartgen.metrics.figures.guard import check, clean
from chartgen.metrics.figures.settings import facts_of, target_of
from chartgen.metrics.figures.summary import Speed, Times, missing, speed_of, times_of
from chartgen.metrics.figures.timeline import Timeline, timeline_of
from chartgen.metrics.figures.window import Window, window_of
from chartgen.metrics.read.events import NEVER
from chartgen.metrics.read.log import Log, kept

if TYPE_CHECKING:
    from chartgen.metrics.figures.cost import Cost
    from chartgen.metrics.figures.flops import Attention
    from chartgen.metrics.figures.peak import Peak
# Between two of their lines more than training passes.
_UNEVEN = ("mlperf",)
_LINES = "the times of the lines"
# How far from a whole number of GPUs the logged speeds may be.
_WHOLE = 0.02


class Wanted(NamedTuple):
    """What a user asks for.

    Args:
        window: FIRST:LAST in steps, `all`, or empty for all but the warm-up.
        attention: Convention of the MFU.
        peak: Number format or TFLOPS that the MFU is a share of; empty = the run's precision.
        price: Price of a machine for an hour; None = no cost.
        facts: What tells facts beside the log, and the facts.
        run: Which run of a log of several, from 1; None = the last.
    """

    window: str = ""
    attention: Attention = "full"
    peak: str = ""
    price: float | None = None
    facts: Sequence[tuple[str, Mapping[str, Any]]] = ()
    run: int | None = None


class Loss(NamedTuple):
    """How the loss went in the window.

    Args:
        first: The first that is a number.
        last: The last that is a number.
        lowest: The lowest.
        slope: Change in 1,000 steps by a straight line through all (least squares).
    """

    first: float
    last: float
    lowest: float
    slope: float


class Derived(NamedTuple):
    """A step time that the log does not tell.

    Args:
        seconds: The mean of the window.
        source: What it was worked out from.
    """

    seconds: float
    source: str


class Evaluation(NamedTuple):
    """One evaluation of the model.

    Args:
        value: What came out: a loss, or what else the benchmark measures.
        step: The step that it came after; -1 = not told.
        samples: The samples that it came after; nan = not told.
        when: When; nan = not told.
    """

    value: float
    step: int
    samples: float
    when: float


class Readout(NamedTuple):
    """The figures of a run; None where the log or a fact does not tell them.

    Args:
        log: What the logs tell of the run.
        facts: Model, batch and machines.
        window: The steps that step time, speed and loss are of.
        times: Step times.
        speed: What they amount to.
        attention: Convention of the MFU; `given` when the FLOPs of a sample were given.
        peak: What the MFU is a share of.
        mfu: Model FLOPs utilization, 0 to 1.
        loss: How the loss went.
        totals: skipped, nans -> steps, as the program counts them; empty when it does not.
        odd: Name of a value -> steps where it is nan or infinite.
        memory: Most memory of a GPU in GB (10^9 bytes).
        joules: Energy of a GPU and step in J.
        timeline: Where the time went.
        cost: What it cost.
        score: MLPerf's time to train in seconds, and how it ended.
        derived: A step time that was worked out, where the log tells none.
        evaluations: What evaluations came to, first to last.
        target: What an evaluation has to reach; None = not told.
        notices: What the reader has to know.
    """

    log: Log
    facts: Facts
    window: Window
    times: Times | None
    speed: Speed
    attention: str
    timeline: Timeline
    peak: Peak | None = None
    mfu: float | None = None
    loss: Loss | None = None
    totals: Mapping[str, int] = {}
    odd: Mapping[str, tuple[int, ...]] = {}
    memory: float | None = None
    joules: float | None = None
    cost: Cost | None = None
    score: tuple[float, str] | None = None
    derived: Derived | None = None
    evaluations: Sequence[Evaluation] = ()
    target: float | None = None
    notices: Sequence[Notice] = ()

    @property
    def left(self) -> float | None:
        """Seconds until the planned steps are done, at the speed of the window; None when they are, or nobody plans."""
        steps = self.planned - self.log.track.numbers[-1]
        each = self.times.mean if self.times else self.derived.seconds if self.derived else None
        return steps * each if each and steps > 1 else None

    @property
    def planned(self) -> int:
        """Steps of the whole run; 0 when nobody tells, or the values are of a shorter run."""
        told = int(self.facts.get("steps") or 0)
        return self.log.track.planned or (told if told >= self.log.track.numbers[-1] else 0)


def read_out(log: Log, wanted: Wanted) -> Readout:
    """Work out all figures of a run.

    Args:
        log: What its logs tell.
        wanted: What the user asks for.

    Raises:
        UsageError: The window, the peak or the GPU is none, or there is no such run.
        ChartgenError: The log or the window has no steps.
    """
    if not len(log.track):
        raise ChartgenError(Problem("has no training steps, but a test of the network", log.places[0]))
    log, section, notices = choose_run(log, wanted.run)
    if log.broken:
        notices.append(
            Notice(
                f"{log.broken:,} line{'' if log.broken == 1 else 's'} cannot be read, the first is: {log.first_broken}"
            )
        )
    notices += clean(log.track)
    window = window_of(log.track, wanted.window)
    batch, uneven = _batch(window)
    measured = {} if uneven or batch is None else {"batch": round(batch)}
    lengths = {*window.values("sequence")}
    measured |= {"sequenceLength": round(lengths.pop())} if len(lengths) == 1 else {}
    known = agree([*wanted.facts, ("the log", facts_of(section)), ("the steps of the log", measured)])
    notices = [*notices, *known.notices]
    if uneven:
        known = known._replace(known={**known.known, "batch": batch})
        notices.append(Notice(f"the batch grows within the window; figures are of its mean, {batch:,.1f} samples"))
    notices += [Notice(text) for text in log.remarks]
    known = known._replace(known={**_gpus(window, known), **known.known})
    return _figures(log, window, known, wanted, notices, section)


def _figures(
    log: Log, window: Window, facts: Facts, wanted: Wanted, notices: list[Notice], section: Mapping[str, str]
) -> Readout:
    times = times_of(window)
    derived = None if times else _derived(window, facts)
    seconds = times.mean if times else derived.seconds if derived else None
    speed = speed_of(seconds, window, facts)
    # times of lines would be compared with themselves
    useful = None if derived and derived.source == _LINES else seconds
    timeline, backwards = timeline_of(log, window, times.median if times else useful)
    peak = _peak(wanted.peak, facts) if speed.tflops else None
    speed, doubts = check(speed, None if isinstance(peak, Notice) else peak, facts)
    conventions = speed.tflops or {}
    attention = "given" if "given" in conventions else wanted.attention
    cost = _cost(wanted.price, facts, timeline, speed) if wanted.price is not None else None
    absent = [each for each in (peak, cost) if isinstance(each, Notice)]
    peak = None if isinstance(peak, Notice) else peak
    return Readout(
        log=log,
        facts=facts,
        window=window,
        times=times,
        speed=speed,
        attention=attention,
        timeline=timeline,
        peak=peak,
        derived=derived,
        mfu=conventions[attention] / peak.tflops if peak and attention in conventions else None,
        loss=_loss(window),
        totals={name: round(sum(_run(log, name))) for name in ("skipped", "nans") if name in log.track.columns},
        odd=_odd(log),
        memory=max(_run(log, "memory"), default=None),
        joules=window.mean("energy"),
        cost=None if isinstance(cost, Notice) else cost,
        score=_score(log),
        evaluations=_evaluations(log),
        target=target_of(section),
        notices=[
            *notices,
            *backwards,
            *doubts,
            *([] if doubts else missing(speed, facts, timed=seconds is not None)),
            *absent,
        ],
    )


def _peak(wanted: str, facts: Facts) -> Peak | Notice:
    from chartgen.metrics.figures.peak import find_peak

    return find_peak(wanted, facts)


def _cost(price: float, facts: Facts, timeline: Timeline, speed: Speed) -> Cost | Notice:
    from chartgen.metrics.figures.cost import cost_of

    return cost_of(price, facts, timeline.wall, speed.tokens)


def _batch(window: Window) -> tuple[float | None, bool]:
    """Return the batch that the steps had, and whether it was not always the same."""
    told = window.values("batch")
    if told:
        return window.mean("batch"), min(told) != max(told)
    pairs = pairwise(window.rows("samples"))
    each = {(value - last) / (step - before) for (before, last), (step, value) in pairs if step > before}
    # some loggers round to a few digits, and then the differences tell nothing
    (batch,) = each if len(each) == 1 else (0.0,)
    return (batch, False) if batch > 0 and batch.is_integer() else (None, False)


def _derived(window: Window, facts: Facts) -> Derived | None:
    """Work out the step time of a log that does not tell it: from its tokens a second, or from when it was written."""
    speed, gpus = window.rate("tokens"), facts.get("gpus")
    batch, sequence = facts.get("batch"), facts.get("sequenceLength")
    if speed and gpus and batch and sequence:
        return Derived(batch * sequence / (speed * gpus), "tokens/s")
    if window.track.family in _UNEVEN:
        return None
    when, numbers = window.track.when, window.track.numbers
    passed = steps = 0.0
    for each in window.ranges:
        told = [at for at in (each.start, each.stop - 1) if isfinite(when[at])]
        if len(told) == 2 and when[told[1]] > when[told[0]]:
            passed += when[told[1]] - when[told[0]]
            steps += numbers[told[1]] - numbers[told[0]]
    return Derived(passed / steps, _LINES) if steps else None


def _gpus(window: Window, facts: Facts) -> dict[str, int]:
    """Work out the GPUs of a log that tells the tokens/s of one of them; nothing when that is no whole number."""
    each, seconds = window.rate("tokens"), window.mean("seconds")
    batch, sequence = facts.get("batch"), facts.get("sequenceLength")
    if facts.get("gpus") or not (each and seconds and batch and sequence):
        return {}
    count = batch * sequence / (seconds * each)
    return {"gpus": round(count)} if count > 0.5 and abs(count / round(count) - 1) < _WHOLE else {}


def _loss(window: Window) -> Loss | None:
    values = window.values("loss")
    if not values:
        return None
    first = window.first
    steps = array("d", [step - first for step, _ in window.rows("loss")])
    # sums of a straight line
    x, y, xx, xy = sum(steps), sum(values), sum(map(mul, steps, steps)), sum(map(mul, steps, values))
    spread = len(values) * xx - x * x
    slope = (len(values) * xy - x * y) / spread * 1000 if spread else 0.0
    return Loss(values[0], values[-1], min(values), slope)


def _run(log: Log, name: str) -> array[float]:
    """Return a column over the steps that count in the end, without what is no number."""
    return Window(log.track, tuple(kept(log.track))).values(name)


def _odd(log: Log) -> dict[str, tuple[int, ...]]:
    numbers = log.track.numbers
    return {name: tuple(numbers[at] for at in indices) for name, indices in log.track.odd.items() if indices}


def _evaluations(log: Log) -> tuple[Evaluation, ...]:
    told = [mark for mark in log.marks if mark.kind == "eval"]
    if told:
        return tuple(Evaluation(float(mark.text), mark.step, mark.samples, mark.when) for mark in told)
    # some programs repeat the last one with each step
    track, column = log.track, log.track.column("validation") or ()
    changed = [at for at, value in enumerate(column) if isfinite(value) and (not at or column[at - 1] != value)]
    return tuple(Evaluation(column[at], track.numbers[at], NEVER, track.when[at]) for at in changed)


def _score(log: Log) -> tuple[float, str] | None:
    starts = [mark for mark in log.marks if mark.kind == "run_start"]
    stops = [mark for mark in log.marks if mark.kind == "run_stop"]
    return (stops[-1].when - starts[-1].when, stops[-1].text) if starts and stops else None
