"""A readout as text, for the terminal and the report's table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from itertools import chain, repeat, takewhile

from chartgen.metrics.figures.summary import Ordered, quantile
from chartgen.metrics.figures.timeline import Restart
from chartgen.metrics.read.readers import FAMILIES
from chartgen.metrics.report_data import RunFigures
from chartgen.visible import counted

# The last second of the year 9999, the end of Python's dates.
_LAST = 253402300799.0
_NAMES = {"loss": "the loss", "seconds": "the step time", "gradient": "the gradient norm", "tflops": "TFLOPS"}


_COLUMNS = ("run", "file", "program", "GPUs", "steps", "tokens/s", "MFU", "loss", "end")


def run_table(runs: Sequence[RunFigures]) -> Iterator[str]:
    """Yield a table of runs: file, program, GPUs, steps, speed, MFU, loss, and the time of the last line."""
    first, last = min(places := [run.log.places[0] for run in runs]), max(places)
    same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))])
    shared = first[:same].rpartition("/")[0]  # the folder of all
    rows = [_COLUMNS, *(_run_row(number, figures, shared) for number, figures in enumerate(runs, 1))]
    yield from aligned(rows)


def _run_row(number: int, run: RunFigures, shared: str) -> tuple[str, ...]:
    numbers, places, ended = run.log.track.numbers, run.log.places, run.log.ended
    file = places[0].removeprefix(f"{shared}/") + (f" and {len(places) - 1} more" if len(places) > 1 else "")
    return (
        *(str(number), file, FAMILIES[run.log.track.family], str(run.facts.get("gpus") or "-")),
        f"{min(numbers):,}-{max(numbers):,}",
        amount(run.speed.tokens) if run.speed.tokens else "-",
        f"{run.mfu * 100:.1f} %" if run.mfu is not None else "-",
        f"{run.loss.last:.4f}" if run.loss else "-",
        moment(ended) or "-",
    )


def moment(when: float) -> str:
    """Format a time of a log; empty for an invalid time."""
    if not 0 < when < _LAST:
        return ""
    return datetime.fromtimestamp(when, timezone.utc).strftime("%Y-%m-%d %H:%M")


def figure_rows(figures: RunFigures) -> Iterator[tuple[str, str]]:
    """Yield the known figures as label and text."""
    yield "log", _log(figures)
    yield "window", _window(figures)
    yield from _speed(figures)
    yield from _training(figures)
    yield from _time(figures)


def lines(figures: RunFigures, *, drawn: bool = True) -> Iterator[str]:
    """Yield the figures as lines; if `drawn`, sparklines of step time and loss follow theirs."""
    for label, text in figure_rows(figures):
        yield f"{label:<11} {text}"
        name = {"step time": "seconds", "loss": "loss"}.get(label)
        if drawn and name:
            from chartgen.metrics.show.series import sparkline

            yield from (f"{'':<11} {line}" for line in [sparkline(figures, name)] if line)


def _log(found: RunFigures) -> str:
    numbers, places = found.log.track.numbers, found.log.places
    name = places[0] if len(places) == 1 else f"{len(places)} files"
    count = len(found.log.track)
    steps = f"{count:,} {_kind(found)}{'' if count == 1 else 's'}, {min(numbers):,} to {numbers[-1]:,}"
    return f"{name}: {FAMILIES[found.log.track.family]}, {steps}{f' of {found.planned:,}' if found.planned else ''}"


def _kind(figures: RunFigures) -> str:
    """Return the name of a log's unit: an MLPerf log counts lines, not single steps, and others may only evaluate."""
    if not figures.log.track.columns.keys() - {"samples"}:
        return "evaluation"
    return "line" if figures.log.track.family == "mlperf" else "step"


def _window(figures: RunFigures) -> str:
    window = figures.window
    text = f"steps {window.first:,} to {window.last:,}"
    if window.skipped:
        first = "the first is" if window.skipped == 1 else f"the first {window.skipped} are"
        text += f"; {first} left out as warm-up"
    return text + (f"; logged every {window.interval} steps" if window.interval > 1 else "")


def _speed(figures: RunFigures) -> Iterator[tuple[str, str]]:
    times, speed = figures.times, figures.speed
    if times:
        spread = f"p5 {seconds(times.p5)}, p95 {seconds(times.p95)}, p99 {seconds(times.p99)}"
        yield "step time", f"{times.mean:.4f} s mean, {times.median:.4f} s median; {spread}"
        if times.outlying:
            far = ", ".join(f"{value:.4g} s at step {step:,}" for step, value in times.outliers[:3])
            yield "outliers", f"{times.outlying:,}: {far}{', ...' if times.outlying > 3 else ''}"
    if figures.derived:
        yield "step time", f"about {figures.derived.seconds:.4g} s mean, worked out from {figures.derived.source}"
    if speed.tokens and speed.tokens_per_gpu:
        yield "speed", f"{speed.tokens:,.0f} tokens/s, {speed.tokens_per_gpu:,.1f} tokens/s/GPU"
    elif speed.tokens_per_gpu:
        yield "speed", f"{speed.tokens_per_gpu:,.1f} tokens/s/GPU"
    elif speed.samples:
        yield "speed", f"{speed.samples:,.4g} samples/s"
    if speed.tflops:
        yield "TFLOPS/GPU", _conventions(speed.tflops)
    if speed.logged_tflops:
        mfu = f", MFU {figures.logged_mfu * 100:.1f} %" if figures.logged_mfu else ""
        yield "logged", f"{speed.logged_tflops:,.1f} TFLOPS/GPU{mfu} by the program's own count"
    if figures.mfu is not None and figures.peak:
        convention = "with the given FLOPs" if figures.attention == "given" else f"{figures.attention} attention"
        yield "MFU", f"{figures.mfu * 100:.1f} % of {figures.peak.tflops:,g} TFLOPS, {figures.peak.name}, {convention}"


def _conventions(tflops: dict[str, float]) -> str:
    words = {"given": "with the given FLOPs", "full": "full attention", "causal": "causal attention"}
    return ", ".join(f"{value:,.1f} {words[name]}" for name, value in tflops.items())


def _training(found: RunFigures) -> Iterator[tuple[str, str]]:
    if loss := found.loss:
        yield "loss", f"{loss.first:.4f} to {loss.last:.4f}, lowest {loss.lowest:.4f}{_slope(found)}"
    # programs that do not compute the norm write 0
    if any(values := found.window.values("gradient")):
        ordered = Ordered(values)
        yield "gradient", f"norm {quantile(ordered, 0.5):.4g} median, {ordered[-1]:.4g} at most"
    if len(values := found.window.values("rate")):
        yield "learning", f"rate {values[0]:.4g}{f' to {values[-1]:.4g}' if values[-1] != values[0] else ''}"
    if any(found.totals.values()):
        yield "skipped", f"{found.totals.get('skipped', 0):,} steps skipped, {found.totals.get('nans', 0):,} with nan"
    for name, steps in found.odd.items():
        where = ", ".join(f"{step:,}" for step in steps[:5]) + (", ..." if len(steps) > 5 else "")
        count = f"{len(steps):,} step{'' if len(steps) == 1 else 's'}"
        yield "no number", f"{_NAMES.get(name, name)} is nan or infinite at {count}: {where}"
    if found.memory is not None:
        yield "memory", f"{found.memory:.1f} GB of a GPU at most"
    if found.joules is not None:
        gpus = found.facts.get("gpus")
        text = f"{found.joules:,.1f} J a step and GPU"
        if found.times:
            text += f", {found.joules / found.times.mean:,.0f} W"
        if gpus:
            text += f"; {found.joules * gpus * found.timeline.steps / 3.6e6:,.1f} kWh for all steps"
        yield "energy", text


def _slope(figures: RunFigures) -> str:
    """Format the slope of the loss over the window's number of steps, rounded down to a power of ten."""
    steps = figures.window.last - figures.window.first
    if not figures.loss or steps < 10:
        return ""
    power = 10 ** min(int(math.log10(steps)), 3)
    return f", {figures.loss.slope * power / 1000:+.4g} in {power:,} steps"


def _time(figures: RunFigures) -> Iterator[tuple[str, str]]:
    line = figures.timeline
    if line.goodput is not None and line.wall_seconds:
        what = f"{line.steps:,} steps that count, in {duration(line.wall_seconds)}"
        yield "goodput", f"{line.goodput * 100:.1f} %: {what}"
    if line.first_step_seconds is not None:
        yield "first step", f"done after {duration(line.first_step_seconds)}"
    if (steps := figures.steps_left) > 1:
        speed = f"; {duration(figures.left)} at this speed" if figures.left else ""
        yield "left", f"{steps:,} of {figures.planned:,} steps: the log ends at step {figures.planned - steps:,}{speed}"
    yield from zip(chain(["restarts"], repeat("")), _restarts(line.restarts), strict=False)
    if line.lost:
        yield "lost", f"{', '.join(f'{cause} {share * 100:.1f} %' for cause, share in line.lost.items())} of the time"
    if line.checkpoints.saved or line.checkpoints.loads:
        yield "checkpoints", _checkpoints(figures)
    if figures.evaluations:
        yield "evaluation", _evaluations(figures)
    if figures.score:
        yield "MLPerf", f"{figures.score.seconds / 60:.3f} minutes to train, {figures.score.status}"
    if cost := figures.cost:
        unit = f" {cost.currency}" if cost.currency else ""
        parts = [f"{cost.total:,.2f}{unit} for the wall time"] if cost.total is not None else []
        parts += (
            [f"{cost.per_billion_tokens:,.2f}{unit} for a billion tokens"]
            if cost.per_billion_tokens is not None
            else []
        )
        yield (
            "cost",
            f"{', '.join(parts) or 'not known'}; {counted(cost.machines, 'machine')} at {cost.price:,g}{unit} an hour",
        )


def _restarts(restarts: Sequence[Restart]) -> Iterator[str]:
    """Yield a table of the first restarts, and how many more there are."""
    if not restarts:
        return
    rows: list[tuple[str, ...]] = [("at step", "steps lost", "pause", "detection", "restart", "cause")]
    for each in restarts[:5]:
        times = (each.pause_seconds, each.detection_seconds, each.restart_seconds)
        shown = ("-" if time is None else duration(time) for time in times)
        rows.append((f"{each.step:,}", f"{each.lost:,}", *shown, each.cause))
    yield from aligned(rows)
    if len(restarts) > 5:
        yield f"and {len(restarts) - 5} more, {sum(each.lost for each in restarts):,} steps lost in all"


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield rows with columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _evaluations(figures: RunFigures) -> str:
    first, last = figures.evaluations[0], figures.evaluations[-1]
    count = len(figures.evaluations)
    text = f"{count:,}: {first.value:.4f} to {last.value:.4f}" if count > 1 else f"{last.value:.4f}"
    if math.isfinite(last.samples):
        text += f" after {last.samples:,.0f} samples"
    elif math.isfinite(last.epoch):
        text += f" at epoch {last.epoch:.4g}"
    elif last.step >= 0:
        text += f" at step {last.step:,}"
    return text + (f"; target {figures.target:g}" if figures.target is not None else "")


def _checkpoints(figures: RunFigures) -> str:
    each = figures.timeline.checkpoints
    parts = [f"{each.saved:,} saved"] if each.saved else []
    parts += [f"{seconds(each.blocking_seconds)} of training each"] if each.blocking_seconds is not None else []
    parts += [f"{seconds(each.save_seconds)} each, until complete"] if each.save_seconds is not None else []
    parts += [f"{each.unfinished} not finished"] if each.unfinished else []
    parts += [f"{each.loads} loaded"] if each.loads else []
    parts += [f"{seconds(each.load_seconds)} each"] if each.load_seconds is not None else []
    return ", ".join(parts)


def amount(value: float) -> str:
    """Format a speed of any size in few digits: 0.1391, 1,140, 24.7 k, 3.2 M."""
    for least, size, unit in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(value) >= least:
            return f"{value / size:,.{1 if value < 100 * size else 0}f} {unit}"
    return f"{value:,.4g}"


def seconds(value: float) -> str:
    """Format a short time."""
    return f"{value:.4g} s"


def duration(value: float) -> str:
    """Format a time of any length: 47 s, 12 min 30 s, 3 h 20 min, 5 d 2 h."""
    for size, unit, smaller, name in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if value >= size:
            rest = int(value % size // smaller)
            return f"{int(value // size)} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{value:.3g} s"
