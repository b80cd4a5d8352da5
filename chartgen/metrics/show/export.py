"""A readout as plain data, for JSON, comparisons and CSV. NaN and infinity become null, and are listed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from chartgen.answers import Shape, plain
from chartgen.metrics.figures.cost import Cost
from chartgen.metrics.figures.derived import Derived
from chartgen.metrics.figures.facts import Notice
from chartgen.metrics.figures.peak import Peak
from chartgen.metrics.figures.results import Evaluation, Loss, Score
from chartgen.metrics.figures.summary import Times
from chartgen.metrics.figures.timeline import Timeline
from chartgen.metrics.report_data import Readout

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
    "loss": Loss | None,
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
    "notices": [Notice],
}


def as_dict(found: Readout) -> dict[str, Any]:
    """Return a readout as plain data, with seconds and numbers in full precision."""
    speed, timeline, window = found.speed, found.timeline, found.window
    facts: dict[str, Any] = {
        "logs": found.log.places,
        "format": found.log.track.family,
        "facts": found.facts.known,
        "steps": {
            "logged": len(found.log.track),
            "counted": timeline.steps,
            "last": found.log.track.numbers[-1],
            "planned": found.planned or None,
        },
        "window": {"first": window.first, "last": window.last, "lines": len(window), "warmUp": window.skipped},
        "stepSeconds": found.times,
        "derivedStepSeconds": found.derived,
        "samplesPerSecond": speed.samples,
        "tokensPerSecond": speed.tokens,
        "tokensPerSecondPerGpu": speed.tokens_per_gpu,
        "tflopsPerGpu": speed.tflops,
        "loggedTflopsPerGpu": speed.logged_tflops,
        "loggedTokensPerSecondPerGpu": speed.own_tokens,
        "attention": found.attention,
        "peak": found.peak,
        "mfu": found.mfu,
        "loggedMfu": found.logged_mfu,
        "loss": found.loss,
        "skippedSteps": found.totals.get("skipped"),
        "nanSteps": found.totals.get("nans"),
        "notNumbers": found.odd,
        "memoryGigabytes": found.memory,
        "joulesPerGpuAndStep": found.joules,
        "secondsLeft": found.left,
        "timeline": timeline,
        "cost": found.cost,
        "score": found.score,
        "evaluations": list(map(_evaluation, found.evaluations)),
        "target": found.target,
        "notices": found.notices,
    }
    return {name: plain(value) for name, value in facts.items()}


def _evaluation(each: Evaluation) -> dict[str, Any]:
    step = each.step if each.step >= 0 else None
    return {"value": each.value, "step": step, "samples": each.samples, "epoch": each.epoch, "unixSeconds": each.when}


def csv_lines(found: Readout) -> Iterator[str]:
    """Yield the steps as CSV: one row per line of the log, with its nan and inf."""
    track = found.log.track
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
