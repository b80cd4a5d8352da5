"""A readout as plain data, for JSON, comparisons and CSV. NaN and infinity become null, and are listed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from chartgen.answers import Shape, plain
from chartgen.metrics.figures.cost import Cost
from chartgen.metrics.figures.facts import FigureNote
from chartgen.metrics.figures.peak import Peak
from chartgen.metrics.figures.results import Evaluation, LossCourse, Score
from chartgen.metrics.figures.summary import Derived, Times
from chartgen.metrics.figures.timeline import Timeline
from chartgen.metrics.report_data import RunFigures

NAME = "metrics/v1"
SHAPE: Shape = {
    "logs": [str],
    "format": str,
    "facts": dict[str, Any],
    "steps": {"logged": int, "counted": int, "last": int, "planned": int | None},
    "window": {"first": int, "last": int, "lines": int, "warmUp": int},
    "stepSeconds": Times | None,
    "derivedStepSeconds": Derived | None,
    "samplesPerSecond": float,
    "tokensPerSecond": float,
    "tokensPerSecondPerGpu": float,
    "tflopsPerGpu": dict[str, float] | None,
    "loggedTflopsPerGpu": float,
    "loggedTokensPerSecondPerGpu": float,
    "attention": str,
    "peak": Peak | None,
    "mfu": float,
    "loggedMfu": float,
    "loss": LossCourse | None,
    "skippedSteps": int | None,
    "nanSteps": int | None,
    "notNumbers": dict[str, list[int]],
    "memoryGigabytes": float,
    "joulesPerGpuAndStep": float,
    "secondsLeft": float,
    "timeline": Timeline,
    "cost": Cost | None,
    "score": Score | None,
    "evaluations": [{"value": float, "step": int | None, "samples": float, "epoch": float, "unixSeconds": float}],
    "target": float,
    "notices": [FigureNote],
}


def as_dict(figures: RunFigures) -> dict[str, Any]:
    """Return a readout as plain data, with seconds and numbers in full precision."""
    speed, timeline, window = figures.speed, figures.timeline, figures.window
    facts: dict[str, Any] = {
        "logs": figures.log.places,
        "format": figures.log.track.family,
        "facts": figures.facts.known,
        "steps": {
            "logged": len(figures.log.track),
            "counted": timeline.steps,
            "last": figures.log.track.numbers[-1],
            "planned": figures.planned or None,
        },
        "window": {"first": window.first, "last": window.last, "lines": len(window), "warmUp": window.skipped},
        "stepSeconds": figures.times,
        "derivedStepSeconds": figures.derived,
        "samplesPerSecond": speed.samples,
        "tokensPerSecond": speed.tokens,
        "tokensPerSecondPerGpu": speed.tokens_per_gpu,
        "tflopsPerGpu": speed.tflops,
        "loggedTflopsPerGpu": speed.logged_tflops,
        "loggedTokensPerSecondPerGpu": speed.own_tokens,
        "attention": figures.attention,
        "peak": figures.peak,
        "mfu": figures.mfu,
        "loggedMfu": figures.logged_mfu,
        "loss": figures.loss,
        "skippedSteps": figures.totals.get("skipped"),
        "nanSteps": figures.totals.get("nans"),
        "notNumbers": figures.odd,
        "memoryGigabytes": figures.memory,
        "joulesPerGpuAndStep": figures.joules,
        "secondsLeft": figures.left,
        "timeline": timeline,
        "cost": figures.cost,
        "score": figures.score,
        "evaluations": list(map(_evaluation, figures.evaluations)),
        "target": figures.target,
        "notices": figures.notices,
    }
    return {name: plain(value) for name, value in facts.items()}


def _evaluation(each: Evaluation) -> dict[str, Any]:
    step = each.step if each.step >= 0 else None
    return {"value": each.value, "step": step, "samples": each.samples, "epoch": each.epoch, "unixSeconds": each.when}


def csv_lines(figures: RunFigures) -> Iterator[str]:
    """Yield the steps as CSV: one row per line of the log, with its nan and inf."""
    track = figures.log.track
    columns = {name: column for name in sorted(track.columns) if (column := track.column(name)) is not None}
    odd = {name: set(track.odd.get(name, ())) for name in columns}
    yield ",".join(["step", "time", "start", *columns])
    for start, attempt in enumerate(track.attempts(), 1):
        for index in range(attempt.begin, attempt.end):
            cells = [_cell(column[index], known=index in odd[name]) for name, column in columns.items()]
            when = _cell(track.when[index], known=False)
            yield ",".join([str(track.numbers[index]), when, str(start), *cells])


def _cell(value: float, *, known: bool) -> str:
    if math.isnan(value) and not known:
        return ""
    return str(int(value)) if value.is_integer() else repr(value)
