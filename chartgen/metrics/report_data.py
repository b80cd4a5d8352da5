"""The readout of a run: all figures from its logs and facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from chartgen.errors import ChartgenError, Problem
from chartgen.metrics.choose_run import choose_run
from chartgen.metrics.figures.facts import Facts, FigureNote, facts_of, join_facts, target_of
from chartgen.metrics.figures.guard import clean, without_impossible
from chartgen.metrics.figures.peak import Peak, find_peak
from chartgen.metrics.figures.summary import (
    LINES,
    Derived,
    Evaluation,
    LossCourse,
    Score,
    Speed,
    Times,
    batch_of,
    derived_of,
    evaluations_of,
    gpus_of,
    loss_of,
    missing,
    score_of,
    speed_of,
    step_times,
)
from chartgen.metrics.figures.timeline import Cost, Timeline, cost_of, timeline_of
from chartgen.metrics.figures.window import Window, window_of
from chartgen.metrics.read.log import Log
from chartgen.metrics.read.track import kept_steps

if TYPE_CHECKING:
    from chartgen.checks.job import Job
    from chartgen.metrics.figures.flops import Attention


# Steps that show the speed of a run; the first ones do not count.
_ENOUGH = 20


class Wanted(NamedTuple):
    """The options of a readout."""

    window: str = ""  # FIRST:LAST in steps, `all`, or empty for all but the warm-up
    attention: Attention = "full"  # convention of the MFU
    peak: str = ""  # number format or TFLOPS for the MFU; empty = the run's precision
    price: float | None = None  # price per machine and hour; None = no cost
    facts: Sequence[tuple[str, Mapping[str, Any]]] = ()  # sources of facts besides the log, with their facts
    run: int | None = None  # number of the run in a log with several, from 1; None = the last
    gpu_price: float | None = None  # price per GPU and hour, instead of the machine's
    currency: str = ""  # currency of the price
    job: Job | None = None  # the job of the values, to compare its speed with the estimate; None = unknown


class RunFigures(NamedTuple):
    """The figures of a run; None when unknown."""

    log: Log
    facts: Facts  # model, batch and machines
    window: Window  # the steps for step time, speed and loss
    times: Times | None  # step times
    speed: Speed  # the speed that follows from them
    attention: str  # convention of the MFU; `given` when the FLOPs of a sample were given
    timeline: Timeline  # how the run used its time
    peak: Peak | None = None  # the peak that the MFU is a share of
    mfu: float | None = None  # model FLOPs utilization, 0 to 1
    logged_mfu: float | None = None  # the same as logged by the program, by its own peak
    loss: LossCourse | None = None  # the course of the loss
    # Skipped, nans -> number of steps, as the program counts them; empty when it does not
    totals: Mapping[str, int] = {}
    odd: Mapping[str, tuple[int, ...]] = {}  # name of a value -> steps where it is nan or infinite
    memory: float | None = None  # maximum memory of a GPU in GB (10^9 bytes)
    joules: float | None = None  # energy per GPU and step in J
    cost: Cost | None = None  # the cost of the run
    score: Score | None = None  # MLPerf's time to train in seconds, and its outcome
    derived: Derived | None = None  # a calculated step time, when the log does not contain one
    evaluations: Sequence[Evaluation] = ()  # the evaluations, first to last
    target: float | None = None  # the target of an evaluation; None = unknown
    notices: Sequence[FigureNote] = ()  # notices for the reader

    @property
    def left(self) -> float | None:
        """Return the seconds for the remaining planned steps, at the window's speed; None when unknown or done."""
        each = self.times.mean if self.times else self.derived.seconds if self.derived else None
        return self.steps_left * each if each and self.steps_left > 1 else None

    @property
    def steps_left(self) -> int:
        """Return the planned steps after the last one; 1 may remain for a program that counts from 0."""
        ends = [mark.step for mark in self.log.marks if mark.kind == "end"]
        return max(self.planned - max(self.log.track.numbers[-1], *ends[-1:], 0), 0)

    @property
    def planned(self) -> int:
        """Return the steps of the whole run; 0 when unknown, or when those known are of an epoch or a shorter run."""
        known = (self.log.track.planned, int(self.facts.get("steps") or 0))
        return next((steps for steps in known if steps >= self.log.track.numbers[-1]), 0)


def read_out(log: Log, wanted: Wanted) -> RunFigures:
    """Return all figures of a run.

    Raises:
        UsageError: The window, the peak or the GPU is invalid, or the run does not exist.
        ChartgenError: The log or the window does not contain steps.
    """
    if not len(log.track):
        raise ChartgenError(Problem("has no training steps, but a test of the network", log.places[0]))
    log, section, notices = choose_run(log, wanted.run)
    if log.broken:
        notices.append(
            FigureNote(
                f"{log.broken:,} line{'' if log.broken == 1 else 's'} cannot be read, the first is: {log.first_broken}"
            )
        )
    notices += clean(log.track)
    window = window_of(log.track, wanted.window)
    batch, uneven = batch_of(window)
    measured = {} if uneven or batch is None else {"batch": round(batch)}
    lengths = {*window.values("sequence")}
    measured |= {"sequenceLength": round(lengths.pop())} if len(lengths) == 1 else {}
    known = join_facts([*wanted.facts, ("the log", facts_of(section)), ("the steps of the log", measured)])
    notices = [*notices, *known.notices]
    if uneven:
        known = known._replace(known={**known.known, "batch": batch})
        notices.append(
            FigureNote(f"the batch changes within the window; figures are of its mean, {batch:,.1f} samples")
        )
    notices += [FigureNote(text) for text in log.remarks]
    dropped = any(kept < (known.get("sequenceLength") or 0) for kept in window.values("kept"))
    known = known._replace(known={**gpus_of(window, known), **known.known, **({"dropped": True} if dropped else {})})
    return _figures(log, window, known, wanted, notices, section)


def _figures(
    log: Log, window: Window, facts: Facts, wanted: Wanted, notices: list[FigureNote], section: Mapping[str, str]
) -> RunFigures:
    times = step_times(window)
    derived = None if times else derived_of(window, facts)
    seconds = times.mean if times else derived.seconds if derived else None
    speed = speed_of(seconds, window, facts)
    # otherwise times of lines would be compared with themselves
    useful = None if derived and derived.source == LINES else seconds
    timeline, backwards = timeline_of(log, window, times.median if times else useful)
    peak = find_peak(wanted.peak, facts) if speed.tflops else None
    speed, doubts = without_impossible(speed, None if isinstance(peak, FigureNote) else peak, facts)
    conventions = speed.tflops or {}
    attention = "given" if "given" in conventions else wanted.attention
    price, per_gpu = (wanted.price, False) if wanted.gpu_price is None else (wanted.gpu_price, True)
    cost = None
    if price is not None:
        wall = timeline.wall_seconds
        cost = cost_of(price, facts, wall, speed.tokens, per_gpu=per_gpu, currency=wanted.currency)
    counted = Window(log.track, tuple(kept_steps(log.track)))
    absent = [each for each in (peak, cost) if isinstance(each, FigureNote)]
    peak = None if isinstance(peak, FigureNote) else peak
    return RunFigures(
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
        logged_mfu=mfu / 100 if (mfu := window.rate("mfu")) else None,
        loss=loss_of(window),
        totals={name: round(sum(counted.values(name))) for name in ("skipped", "nans") if name in log.track.columns},
        odd={name: tuple(log.track.numbers[at] for at in places) for name, places in log.track.odd.items() if places},
        memory=max(counted.values("memory"), default=None),
        joules=window.mean("energy"),
        cost=None if isinstance(cost, FigureNote) else cost,
        score=score_of(log),
        evaluations=evaluations_of(log),
        target=target_of(section),
        notices=[
            *notices,
            *backwards,
            *doubts,
            *([] if doubts else missing(speed, facts, timed=seconds is not None)),
            *(_slow(wanted.job, facts, window, times) if times and not doubts else []),
            *absent,
        ],
    )


def _slow(job: Job | None, facts: Facts, window: Window, times: Times) -> list[FigureNote]:
    """Return that the run is far slower than estimated, unless it is too short, or not the one of the values."""
    if job is None or len(window) < _ENOUGH or (facts.get("gpus"), facts.get("batch")) != (job.world, job.global_batch):
        return []
    from chartgen.checks.speed import why_slow

    found = why_slow(job, times.median)
    return [FigureNote(found.message, found.hint)] if found else []
