"""Drop impossible figures: below zero, above the peak of the GPU, or in contradiction to the program's own."""

from __future__ import annotations

from itertools import filterfalse
from math import isnan, nan
from typing import TYPE_CHECKING

from chartgen.metrics.figures.facts import Facts, FigureNote
from chartgen.metrics.figures.summary import Speed
from chartgen.metrics.read.track import Track

if TYPE_CHECKING:
    from chartgen.metrics.figures.peak import Peak

# Above the dense peak of every GPU in the table, in any format: 15,000 TFLOPS of a B300 in nvfp4.
MOST_TFLOPS = 20_000.0
# More than the difference between two counts by conventions, padding and small terms.
DOUBT = 0.15
_ROUNDED = 0.1  # TFLOPS: programs log one decimal, which is much of the speed of a tiny model
# With full recomputation, programs count the forward pass twice: four passes in place of three
# (deepspeedai/Megatron-DeepSpeed, megatron/utils.py, throughput_calculator; EleutherAI/gpt-neox, megatron/logging.py).
_RECOMPUTED = 4 / 3
# Column -> its usual name; these are never below zero, and the first ones are never zero.
_POSITIVE = {"seconds": "step times", "batch": "batches", "sequence": "sequence lengths"}
_NOT_BELOW = {
    "tflops": "TFLOPS",
    "mfu": "MFU",
    "tokens": "tokens/s",
    "memory": "sizes of memory",
    "energy": "amounts of energy",
    "samples": "counts of samples",
}


def clean(track: Track) -> list[FigureNote]:
    """Remove impossible values from the steps; return a notice with the count for each column."""
    notices = []
    for name, words in {**_POSITIVE, **_NOT_BELOW}.items():
        column = track.columns.get(name)
        if column is None:
            continue
        # min() passes over any nan but the first
        least = min(column) if not isnan(column[0]) else min(filterfalse(isnan, column), default=1.0)
        if least > 0 or (least == 0 and name in _NOT_BELOW):
            continue
        wrong = [at for at, value in enumerate(column) if value < 0 or (value == 0 and name in _POSITIVE)]
        for at in wrong:
            column[at] = nan
        below = "zero or less" if name in _POSITIVE else "less than zero"
        notices.append(FigureNote(f"{len(wrong):,} of the {words} in the log are {below}; they are left out"))
    return notices


def without_impossible(speed: Speed, peak: Peak | None, facts: Facts) -> tuple[Speed, list[FigureNote]]:
    """Remove impossible figures from a speed.

    Args:
        peak: The peak of the GPU; None = unknown.
        facts: The facts that the speed is based on.

    Returns:
        The remaining figures, and a notice for each removed one; errors where facts and log contradict each other.
    """
    limit = peak.tflops if peak else MOST_TFLOPS
    whose = f"the {peak.name}" if peak else "the peak of every GPU"
    notices = []
    if speed.logged_tflops and speed.logged_tflops > limit:
        problem = f"the program logs {speed.logged_tflops:,.1f} TFLOPS/GPU, above {whose}, {limit:,g}; left out"
        notices.append(FigureNote(problem, "is it the sum of several GPUs, or another GPU?", "error"))
        speed = speed._replace(logged_tflops=None)
    if speed.tflops and min(speed.tflops.values()) > limit:
        highest = max(speed.tflops.values())
        problem = f"{highest:,.1f} TFLOPS/GPU are above {whose}, {limit:,g}: speed and TFLOPS are left out"
        notices.append(FigureNote(problem, f"one of {_named(facts)} is another run's", "error"))
        speed = Speed(samples=speed.samples, logged_tflops=speed.logged_tflops)
    elif speed.tflops and max(speed.tflops.values()) > limit:
        kept = {name: value for name, value in speed.tflops.items() if value <= limit}
        problem = f"TFLOPS of the other convention are above {whose}, {limit:,g}, and left out"
        notices.append(FigureNote(problem))
        speed = speed._replace(tflops=kept)
    return _contradicted(speed, facts, notices)


def _contradicted(speed: Speed, facts: Facts, notices: list[FigureNote]) -> tuple[Speed, list[FigureNote]]:
    """Compare a speed with the program's own logged figures."""
    own, each = speed.own_tokens, speed.tokens_per_gpu
    if own and each and abs(each / own - 1) > DOUBT:
        problem = f"tokens/s/GPU are {each:,.1f} by batch, sequence length and GPUs, {own:,.1f} by the log"
        hint = "name the right ones; figures that need them are left out"
        return Speed(speed.samples, logged_tflops=speed.logged_tflops), [*notices, FigureNote(problem, hint, "error")]
    logged, tflops = speed.logged_tflops, speed.tflops or {}
    factors = (1, _RECOMPUTED) if facts.get("recomputed") else (1,)
    counts = [value * factor for value in tflops.values() for factor in factors]
    if logged and counts and all(abs(count - logged) > max(DOUBT * logged, _ROUNDED) for count in counts):
        named = ", ".join(f"{value:,.1f}" for value in tflops.values())
        problem = f"the program counts {logged:,.1f} TFLOPS/GPU, which no convention gives: {named}"
        return speed, [*notices, FigureNote(problem, "are model, batch and GPUs this run's?")]
    return speed, notices


def _named(facts: Facts) -> str:
    known = {"batch": "batch", "sequenceLength": "sequence length", "gpus": "GPUs", "flops": "FLOPs per sample"}
    named = [f"{words} {facts.get(name):,}" for name, words in known.items() if facts.get(name)]
    return ", ".join([*named, "the model"])
