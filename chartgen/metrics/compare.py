"""A run beside an earlier one, or beside what a vendor has published."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.errors import ChartgenError, Problem
from chartgen.metrics.log import read_logs
from chartgen.metrics.readout import Readout, Wanted, read_out
from chartgen.metrics.shapes import FORM, as_dict

_PUBLISHED = "published:"


@dataclass(frozen=True)
class Comparison:
    """How a run compares with a baseline.

    Args:
        change: Relative difference of the speed: -0.019 is 1.9 % below.
        what: What was compared: tokens/s/GPU, TFLOPS/GPU or steps/s.
        sentence: The same in words, with the baseline's convention.
        notes: What differs between the two beside speed.
    """

    change: float
    what: str
    sentence: str
    notes: tuple[str, ...]


def compare(found: Readout, baseline: str, wanted: Wanted) -> Comparison:
    """Compare a run with a baseline.

    Args:
        found: The run.
        baseline: An earlier run's log, its `--output json`, or `published:MODEL`.
        wanted: What was asked of the run; an earlier log is read the same way.

    Raises:
        UsageError: The published model is not known.
        ChartgenError: The file cannot be read, or the two have no speed in common.
    """
    if baseline.startswith(_PUBLISHED):
        return _with_published(found, baseline.removeprefix(_PUBLISHED))
    return _with_run(as_dict(found), _earlier(baseline, wanted), baseline)


def _with_published(found: Readout, model: str) -> Comparison:
    from chartgen.metrics.published import find_figure

    facts, speed = found.facts, found.speed
    row = find_figure(model, facts.known)
    notes = [f"{name}: {ours}, there {theirs}" for name, ours, theirs in (
        ("GPU", facts.get("gpu"), row.gpu),
        ("precision", facts.get("precision"), row.precision),
        ("sequence length", facts.get("sequenceLength"), row.sequence),
        ("GPUs", facts.get("gpus"), row.gpus),
    ) if ours and theirs and ours != theirs]  # fmt: skip
    whose = f"NVIDIA's {row.container} figure"
    own = (speed.tflops or {}).get(row.attention)
    if row.tflops and own:
        published = f"{row.tflops:,.0f} TFLOPS/GPU, {row.attention} attention"
        change, what = own / row.tflops - 1, "TFLOPS/GPU"
        sentence = f"{own:,.1f} TFLOPS/GPU are {_percent(change)} {whose} ({published}), same convention"
        return Comparison(change, what, sentence, tuple(notes))
    if speed.tokens_per_gpu is None:
        raise ChartgenError(Problem("the run has no tokens/s to compare", hint="give --batch, --sequence and --gpus"))
    change = speed.tokens_per_gpu / row.tokens - 1
    sentence = f"{speed.tokens_per_gpu:,.1f} tokens/s/GPU are {_percent(change)} {whose} ({row.tokens:,.0f})"
    return Comparison(change, "tokens/s/GPU", sentence, tuple(notes))


def _with_run(ours: dict[str, Any], theirs: dict[str, Any], name: str) -> Comparison:
    conventions = ours["attention"], theirs["attention"]
    if conventions[0] != conventions[1] and ours["tokensPerGpu"] is None:
        raise ChartgenError(Problem(f"one counts {conventions[0]} attention, the other {conventions[1]}", name))
    keys = ("batch", "sequenceLength", "gpus", "gpu", "precision")
    pairs = [(key, ours["facts"].get(key), theirs["facts"].get(key)) for key in keys]
    notes = tuple(f"{key}: {own}, there {other}" for key, own, other in pairs if own and other and own != other)
    if ours["tokensPerGpu"] and theirs["tokensPerGpu"]:
        own, other, what = ours["tokensPerGpu"], theirs["tokensPerGpu"], "tokens/s/GPU"
    elif ours["stepSeconds"] and theirs["stepSeconds"]:
        own, other, what = 1 / ours["stepSeconds"]["mean"], 1 / theirs["stepSeconds"]["mean"], "steps/s"
    else:
        raise ChartgenError(Problem("has no speed to compare with", name))
    change = own / other - 1
    return Comparison(change, what, f"{own:,.4g} {what} are {_percent(change)} {name} ({other:,.4g})", notes)


def _percent(change: float) -> str:
    if abs(change) < 0.0005:
        return "as fast as"
    return f"{abs(change) * 100:.1f} % {'below' if change < 0 else 'above'}"


def _earlier(baseline: str, wanted: Wanted) -> dict[str, Any]:
    path = Path(baseline)
    if path.is_file() and path.suffix == ".json":
        try:
            data = json.loads(path.read_text())
        except ValueError:
            data = None  # DLLogger names its log so, too
        if isinstance(data, dict) and data.get("form") == FORM:
            return data
    return as_dict(read_out(read_logs([baseline]), wanted._replace(run=None)))
