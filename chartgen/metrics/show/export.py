"""A readout as plain data, for JSON, comparisons and CSV. NaN and infinity become null, and are listed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from chartgen.answers import plain
from chartgen.metrics.figures.facts import FigureNote
from chartgen.metrics.figures.peak import Peak
from chartgen.metrics.figures.summary import Derived, Evaluation, LossCourse, Score, Times
from chartgen.metrics.figures.timeline import Cost, Timeline
from chartgen.metrics.report_data import RunFigures


def _steps(run: RunFigures) -> dict[str, Any]:
    track, counted = run.log.track, run.timeline.steps
    return {"logged": len(track), "counted": counted, "last": track.numbers[-1], "planned": run.planned or None}


def _window(run: RunFigures) -> dict[str, int]:
    window = run.window
    return {"first": window.first, "last": window.last, "lines": len(window), "warmUp": window.skipped}


def _evaluation(each: Evaluation) -> dict[str, Any]:
    step = each.step if each.step >= 0 else None
    return {"value": each.value, "step": step, "samples": each.samples, "epoch": each.epoch, "unixSeconds": each.when}


NAME = "metrics/v1"
_EVALUATION = {"value": float, "step": int | None, "samples": float, "epoch": float, "unixSeconds": float}
# Key -> its shape for the published schema, and its value from the figures.
_KEYS: dict[str, tuple[Any, Callable[[RunFigures], Any]]] = {
    "logs": ([str], lambda run: run.log.places),
    "format": (str, lambda run: run.log.track.family),
    "facts": (dict[str, Any], lambda run: run.facts.known),
    "steps": ({"logged": int, "counted": int, "last": int, "planned": int | None}, _steps),
    "window": ({"first": int, "last": int, "lines": int, "warmUp": int}, _window),
    "stepSeconds": (Times | None, lambda run: run.times),
    "derivedStepSeconds": (Derived | None, lambda run: run.derived),
    "samplesPerSecond": (float, lambda run: run.speed.samples),
    "tokensPerSecond": (float, lambda run: run.speed.tokens),
    "tokensPerSecondPerGpu": (float, lambda run: run.speed.tokens_per_gpu),
    "tflopsPerGpu": (dict[str, float] | None, lambda run: run.speed.tflops),
    "loggedTflopsPerGpu": (float, lambda run: run.speed.logged_tflops),
    "loggedTokensPerSecondPerGpu": (float, lambda run: run.speed.own_tokens),
    "attention": (str, lambda run: run.attention),
    "peak": (Peak | None, lambda run: run.peak),
    "mfu": (float, lambda run: run.mfu),
    "loggedMfu": (float, lambda run: run.logged_mfu),
    "loss": (LossCourse | None, lambda run: run.loss),
    "skippedSteps": (int | None, lambda run: run.totals.get("skipped")),
    "nanSteps": (int | None, lambda run: run.totals.get("nans")),
    "notNumbers": (dict[str, list[int]], lambda run: run.odd),
    "memoryGigabytes": (float, lambda run: run.memory),
    "joulesPerGpuAndStep": (float, lambda run: run.joules),
    "secondsLeft": (float, lambda run: run.left),
    "timeline": (Timeline, lambda run: run.timeline),
    "cost": (Cost | None, lambda run: run.cost),
    "score": (Score | None, lambda run: run.score),
    "evaluations": ([_EVALUATION], lambda run: list(map(_evaluation, run.evaluations))),
    "target": (float, lambda run: run.target),
    "notices": ([FigureNote], lambda run: run.notices),
}
SHAPE = {key: shape for key, (shape, _) in _KEYS.items()}


def as_dict(figures: RunFigures) -> dict[str, Any]:
    """Return a readout as plain data, with seconds and numbers in full precision."""
    return {key: plain(value(figures)) for key, (_, value) in _KEYS.items()}


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


def exposition(figures: RunFigures, labels: Mapping[str, str]) -> str:
    """Return all known figures as gauges, each with labels, such as release and namespace."""
    return "".join(_family(name, help_text, samples, labels) for name, help_text, samples in _families(figures))


def _families(figures: RunFigures) -> Iterator[tuple[str, str, list[tuple[dict[str, str], float]]]]:
    speed, line = figures.speed, figures.timeline
    yield "step", "The last step.", [({}, float(figures.log.track.numbers[-1]))]
    if figures.planned:
        yield "steps_planned", "Steps of the whole run.", [({}, float(figures.planned))]
    if times := figures.times:
        shares = {"0.05": times.p5, "0.5": times.median, "0.95": times.p95, "0.99": times.p99}
        yield "step_seconds", "Step time in the window.", [({"quantile": key}, value) for key, value in shares.items()]
        yield "step_mean_seconds", "Mean step time in the window.", [({}, times.mean)]
    plain = {
        "tokens_per_second": ("Tokens a second, all GPUs.", speed.tokens),
        "tokens_per_second_per_gpu": ("Tokens a second and GPU.", speed.tokens_per_gpu),
        "mfu_ratio": ("Model FLOPs utilization.", figures.mfu),
        "goodput_ratio": ("Share of the wall time that counts.", line.goodput),
        "wall_seconds": ("Time since the first line.", line.wall_seconds),
        "restarts": ("Later starts.", float(len(line.restarts))),
        "lost_steps": ("Repeated steps.", float(sum(restart.lost for restart in line.restarts))),
        "loss": ("The last loss.", figures.loss.last if figures.loss else None),
        "memory_bytes": ("Most memory of a GPU.", figures.memory * 1e9 if figures.memory else None),
        "cost": ("Cost of the wall time, in the currency of the price.", figures.cost.total if figures.cost else None),
    }
    for name, (text, value) in plain.items():
        if value is not None:
            yield name, text, [({}, value)]
    if speed.tflops:
        samples = [({"attention": convention}, value * 1e12) for convention, value in speed.tflops.items()]
        yield "flops_per_gpu", "Floating point operations a second and GPU.", samples
    yield (
        "not_numbers",
        "Logged values that are nan or infinite.",
        [({"value": name}, float(len(figures.odd.get(name, ())))) for name in ("loss", "gradient", "seconds")],
    )


def _family(name: str, text: str, samples: list[tuple[dict[str, str], float]], labels: Mapping[str, str]) -> str:
    head = f"# HELP chartgen_{name} {text}\n# TYPE chartgen_{name} gauge\n"
    return head + "".join(f"chartgen_{name}{_labels({**labels, **own})} {value!r}\n" for own, value in samples)


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
