"""A readout as plain data, for JSON, comparisons and CSV. Numbers that are not numbers become null, and are listed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from chartgen.metrics.report_data import Evaluation, Readout

FORM = "chartgen metrics 1"


def as_dict(found: Readout) -> dict[str, Any]:
    """Return a readout as plain data, seconds and numbers in full precision."""
    times, speed, timeline, window = found.times, found.speed, found.timeline, found.window
    data = {
        "form": FORM,
        "logs": list(found.log.places),
        "format": found.log.track.family,
        "facts": dict(found.facts.known),
        "steps": {
            "logged": len(found.log.track),
            "counted": timeline.steps,
            "last": found.log.track.numbers[-1],
            "planned": found.planned or None,
        },
        "window": {"first": window.first, "last": window.last, "lines": len(window), "warmUp": window.skipped},
        "stepSeconds": plain(times) if times else None,
        "derivedStepSeconds": plain(found.derived) if found.derived else None,
        "samplesPerSecond": speed.samples,
        "tokensPerSecond": speed.tokens,
        "tokensPerGpu": speed.tokens_per_gpu,
        "tflopsPerGpu": speed.tflops,
        "loggedTflopsPerGpu": speed.logged_tflops,
        "loggedTokensPerGpu": speed.own_tokens,
        "attention": found.attention,
        "peak": plain(found.peak) if found.peak else None,
        "mfu": found.mfu,
        "loss": plain(found.loss) if found.loss else None,
        "skippedSteps": found.totals.get("skipped"),
        "nanSteps": found.totals.get("nans"),
        "notNumbers": {name: list(steps) for name, steps in found.odd.items()},
        "memoryGB": found.memory,
        "joulesPerGpuAndStep": found.joules,
        "secondsLeft": found.left,
        "timeline": plain(timeline),
        "cost": plain(found.cost) if found.cost else None,
        "score": {"seconds": found.score[0], "status": found.score[1]} if found.score else None,
        "evaluations": [_evaluation(each) for each in found.evaluations],
        "target": found.target,
        "notices": [{"severity": each.severity, "message": each.message, "hint": each.hint} for each in found.notices],
    }
    return {name: finite(value) for name, value in data.items()}


def finite(value: Any) -> Any:
    """Return data with null for what is no number, however deep it is: JSON has no word for it."""
    if isinstance(value, dict):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [finite(each) for each in value]
    return _number(value) if isinstance(value, float) else value


def _evaluation(each: Evaluation) -> dict[str, Any]:
    return {
        "value": each.value,
        "step": each.step if each.step >= 0 else None,
        "samples": each.samples,
        "time": each.when,
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Turn records into maps, also within records."""
    if isinstance(value, tuple):
        items = value._asdict().items() if hasattr(value, "_asdict") else None
        return [plain(each) for each in value] if items is None else {name: plain(each) for name, each in items}
    return value


def csv_lines(found: Readout) -> Iterator[str]:
    """Return the steps as CSV: one row for each line of the log, with nan and inf as the log has them."""
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
