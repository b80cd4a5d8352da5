"""Figures of a run: its step times, its speed per GPU, and the facts that are missing for them."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice, repeat
from math import isfinite
from operator import mul, sub, truediv
from typing import NamedTuple

from chartgen.metrics.figures.facts import Facts, FigureNote, missing_sizes
from chartgen.metrics.figures.window import Window
from chartgen.metrics.read.events import NEVER
from chartgen.metrics.read.log import Log

# A modified z-score above this is an outlier (B. Iglewicz and D. Hoaglin, How to Detect and Handle Outliers, 1993).
_OUTLIER = 3.5
_MAD = 0.6745
# More of them are no outliers, but steps of another kind.
_RARE = 0.1
_PIECE = 1 << 16
# A deviation below this share of the median is not an outlier, even if the steps are almost equal.
_NOTABLE = 0.05


class Outlier(NamedTuple):
    """A step that took unusually long or short."""

    step: int
    seconds: float


class Times(NamedTuple):
    """Step times of the window, in seconds."""

    mean: float  # their mean, weighted by the number of steps per line
    median: float  # their median
    p5: float  # 5 of 100 are shorter
    p95: float  # 5 of 100 are longer
    p99: float  # 1 of 100 is longer
    shortest: float  # the shortest
    longest: float  # the longest
    outliers: tuple[Outlier, ...]  # the outliers, the farthest from the median first, at most ten
    outlying: int  # number of outliers


class Speed(NamedTuple):
    """The speed that follows from the mean step time; None where a fact is missing."""

    samples: float | None = None  # samples per second
    tokens: float | None = None  # tokens per second of all GPUs
    tokens_per_gpu: float | None = None  # tokens per second and GPU
    tflops: dict[str, float] | None = None  # convention of the attention -> TFLOPS per GPU
    logged_tflops: float | None = None  # TFLOPS per GPU as logged by the program, in its convention
    own_tokens: float | None = None  # tokens per second and GPU as logged by the program


def step_times(window: Window) -> Times | None:
    """Return the step times of a window; None when the log does not contain any."""
    mean = window.mean("seconds")
    if mean is None:
        return None
    values = window.values("seconds")
    ordered = Ordered(values)
    median = quantile(ordered, 0.5)
    far = _outliers(window, values, ordered, median)
    return Times(
        mean=mean,
        median=median,
        p5=quantile(ordered, 0.05),
        p95=quantile(ordered, 0.95),
        p99=quantile(ordered, 0.99),
        shortest=ordered[0],
        longest=ordered[-1],
        outliers=tuple(far[:10]),
        outlying=len(far),
    )


class Ordered:
    """Numbers in ascending order, sorted in pieces: as one list, half a million floats take 16 MB instead of 4."""

    def __init__(self, values: Iterable[float]) -> None:
        rest = iter(values)
        self._pieces = [*iter(lambda: array("d", sorted(islice(rest, _PIECE))), array("d"))]
        self._size = sum(map(len, self._pieces))

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: int) -> float:
        def count(value: float) -> int:
            return sum(bisect_right(piece, value) for piece in self._pieces)

        rank = range(self._size)[place]
        firsts = ((piece, bisect_right(piece, rank, key=count)) for piece in self._pieces)
        return min(piece[at] for piece, at in firsts if at < len(piece))


def quantile(ordered: Ordered | Sequence[float], share: float) -> float:
    """Return a quantile of ordered numbers, linear between two of them (type 7 of Hyndman and Fan, as numpy has it)."""
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _outliers(window: Window, values: array[float], ordered: Ordered, median: float) -> list[Outlier]:
    spread = quantile(Ordered(map(abs, map(sub, values, repeat(median)))), 0.5)
    if not spread:  # most printed times are equal to the last digit: no scale to measure outliers with
        return []
    most = max(_OUTLIER / _MAD * spread, _NOTABLE * median)
    if max(median - ordered[0], ordered[-1] - median) <= most:
        return []
    rows = zip(*window.pairs("seconds"), strict=True)
    far = [Outlier(step, seconds) for step, seconds in rows if abs(seconds - median) > most]
    if len(far) > max(_RARE * len(ordered), 1):
        return []
    return sorted(far, key=lambda outlier: -abs(outlier.seconds - median))


def speed_of(seconds: float | None, window: Window, facts: Facts) -> Speed:
    """Return the speed that follows from the mean time of a step; None when unknown."""
    batch, sequence, gpus = facts.get("batch"), facts.get("sequenceLength"), facts.get("gpus")
    logged = window.rate("tflops")
    own = window.rate("tokens")
    samples = batch / seconds if batch and seconds else None
    tokens = samples * sequence if samples and sequence else own * gpus if own and gpus else None
    each = tokens / gpus if tokens and gpus else own
    return Speed(samples, tokens, each, _tflops(each, samples, facts), logged, own)


def _tflops(tokens: float | None, samples: float | None, facts: Facts) -> dict[str, float] | None:
    given, shape, gpus = facts.get("flops"), facts.shape, facts.get("gpus")
    sequence = facts.get("sequenceLength")
    if given:
        return {"given": given * samples / gpus / 1e12} if samples and gpus else None
    if shape is None or tokens is None or not sequence or facts.get("dropped"):
        return None
    from chartgen.metrics.figures.flops import CONVENTIONS, sample_flops

    lora = bool(facts.get("lora"))
    return {each: sample_flops(shape, sequence, each, lora=lora) * tokens / sequence / 1e12 for each in CONVENTIONS}


def missing(speed: Speed, facts: Facts, *, timed: bool) -> list[FigureNote]:
    """Return notices on missing facts and the figures that need them."""
    wanted = [("batch", "--batch"), ("sequenceLength", "--sequence"), ("gpus", "--gpus")]
    options = [option for name, option in wanted if not facts.get(name)]
    if speed.tokens_per_gpu is None and options and timed:
        return [FigureNote("tokens/s and TFLOPS are not known", f"give {_listed(options)}, or values with -f")]
    if speed.tokens_per_gpu is None:
        why = "the log contains neither step times nor a speed that is read"
        return [FigureNote(f"tokens/s and TFLOPS are not known: {why}")]
    if speed.tflops is None and facts.get("dropped"):
        return [FigureNote("TFLOPS are not known, since layers drop tokens (reserve_length)")]
    if speed.tflops is None:
        sizes = ", ".join([*missing_sizes(facts.known), *(["sequence length"] if "--sequence" in options else [])])
        return [FigureNote(f"TFLOPS are not known without {sizes}", "give --model, or values with -f")]
    return []


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


# The time between two of their lines includes more than training.
_UNEVEN = ("mlperf",)
LINES = "the times of the lines"
# Tolerance of the logged speeds to a whole number of GPUs.
_WHOLE = 0.02


class Derived(NamedTuple):
    """A step time that the log does not contain."""

    seconds: float  # the mean of the window
    source: str  # the basis of the calculation


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


class LossCourse(NamedTuple):
    """The course of the loss in the window."""

    first: float  # the first finite value
    last: float  # the last finite value
    lowest: float  # the lowest value
    slope: float  # change per 1,000 steps by linear regression (least squares)


class Score(NamedTuple):
    """The training time of a benchmark, and its outcome."""

    seconds: float
    status: str


class Evaluation(NamedTuple):
    """One evaluation of the model."""

    value: float  # the result: a loss, or another metric of the benchmark
    step: int  # the step before it; -1 = unknown
    samples: float  # the number of samples before it; nan = unknown
    when: float  # its time; nan = unknown
    epoch: float = NEVER  # its epoch, as the program counts; nan = unknown


def loss_of(window: Window) -> LossCourse | None:
    """Return the course of the loss in a window; None when the log does not contain it."""
    numbers, values = window.pairs("loss")
    if not values:
        return None
    steps = partial(map, sub, numbers, repeat(window.first))
    # sums for the linear regression
    x, y, xx, xy = sum(steps()), sum(values), sum(map(mul, steps(), steps())), sum(map(mul, steps(), values))
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
