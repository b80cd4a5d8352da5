"""Compare a run with an earlier one, or with a vendor's published figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from chartgen.errors import ChartgenError, Problem
from chartgen.helm.yaml import read_text
from chartgen.metrics.figures.facts import NAMES, same
from chartgen.metrics.read.log import Log, read_logs
from chartgen.metrics.report_data import RunFigures, Wanted, read_out
from chartgen.metrics.show.export import NAME, as_dict
from chartgen.metrics.show.text import amount

_PUBLISHED = "published:"
_RUN = "run:"
# Facts that must be equal for comparable speeds, and facts that define a model.
_SAME = ("batch", "sequenceLength", "gpus", "gpu", "precision")
_MODEL = (
    *("layers", "hiddenSize", "ffnHiddenSize", "attentionHeads", "queryGroups", "headSize", "vocabularySize"),
    *("experts", "expertsPerToken", "gated", "lora"),
)


@dataclass(frozen=True)
class Comparison:
    """The comparison of a run with a baseline."""

    change: float  # relative difference of the speed: -0.019 is 1.9 % below
    what: str  # the compared figure: tokens/s/GPU, TFLOPS/GPU or steps/s
    sentence: str  # the result as a sentence, with the baseline's convention
    notes: tuple[str, ...]  # differences besides speed
    other: tuple[str, ...] = ()  # different facts that affect the speed, by the names of facts.NAMES


class ComparedRun(NamedTuple):
    """A baseline of a run; its figures are None if only its speed is known."""

    name: str
    comparison: Comparison
    figures: RunFigures | None


def compare_runs(figures: RunFigures, baseline: str, wanted: Wanted, log: Log) -> ComparedRun:
    """Compare a run with a baseline.

    Args:
        baseline: An earlier run's log, its `--output json`, `run:N` of the same log, or `published:MODEL`.
        log: The log with all runs.

    Raises:
        UsageError: The published model is unknown.
        ChartgenError: The file is unreadable, or no speed is known for both.
    """
    if baseline.startswith(_PUBLISHED):
        return ComparedRun(baseline, _with_published(figures, baseline.removeprefix(_PUBLISHED)), None)
    number = baseline.removeprefix(_RUN)
    of_log = baseline.startswith(_RUN) and number.isdecimal()
    earlier = read_out(log, wanted._replace(run=int(number))) if of_log else _earlier(baseline, wanted)
    known = earlier if isinstance(earlier, RunFigures) else None
    theirs = as_dict(earlier) if isinstance(earlier, RunFigures) else earlier
    try:
        return ComparedRun(baseline, _with_run(as_dict(figures), theirs, baseline), known)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        if known:
            raise
        raise ChartgenError(Problem("is not what `chartgen metrics --output json` prints", baseline)) from None


def _with_published(figures: RunFigures, model: str) -> Comparison:
    from chartgen.checks.published import find_figure, find_model

    facts, speed = figures.facts, figures.speed
    row = find_figure(model, facts.known)
    theirs = {"gpu": row.gpu, "precision": row.precision, "sequenceLength": row.sequence, "gpus": row.gpus}
    refuse_other_model(facts.known, find_model(model)[1], f"{_PUBLISHED}{model}")
    differences = [
        (key, f"{NAMES[key]}: {facts.get(key)}, there {value}")
        for key, value in theirs.items()
        if facts.get(key) and value and facts.get(key) != value
    ]
    notes = tuple(text for _, text in differences)
    # speeds per GPU are published only for a few numbers of GPUs
    other = tuple(key for key, _ in differences if key != "gpus")
    whose = f"NVIDIA's {row.container} figure"
    own = (speed.tflops or {}).get(row.attention)
    if row.tflops and own:
        published = f"{row.tflops:,.0f} TFLOPS/GPU, {row.attention} attention"
        change, what = own / row.tflops - 1, "TFLOPS/GPU"
        sentence = f"{own:,.1f} TFLOPS/GPU are {_percent(change)} {whose} ({published}), same convention"
        return Comparison(change, what, sentence, notes, other)
    if speed.tokens_per_gpu is None:
        raise ChartgenError(Problem("the run has no tokens/s to compare", hint="give --batch, --sequence and --gpus"))
    change = speed.tokens_per_gpu / row.tokens - 1
    sentence = f"{speed.tokens_per_gpu:,.1f} tokens/s/GPU are {_percent(change)} {whose} ({row.tokens:,.0f})"
    return Comparison(change, "tokens/s/GPU", sentence, notes, other)


def _with_run(ours: dict[str, Any], theirs: dict[str, Any], name: str) -> Comparison:
    conventions = ours["attention"], theirs["attention"]
    if conventions[0] != conventions[1] and ours["tokensPerSecondPerGpu"] is None:
        raise ChartgenError(Problem(f"one counts {conventions[0]} attention, the other {conventions[1]}", name))
    refuse_other_model(ours["facts"], theirs["facts"], name)
    differences = tuple(differences_of(ours["facts"], theirs["facts"]))
    notes = tuple(text for _, text in differences)
    errors = [notice["message"] for notice in theirs.get("notices", ()) if notice["severity"] == "error"]
    notes += tuple(f"the baseline is in doubt: {text}" for text in errors)
    other = tuple(key for key, _ in differences if key in _SAME)
    if ours["tokensPerSecondPerGpu"] and theirs["tokensPerSecondPerGpu"]:
        own, base, what = ours["tokensPerSecondPerGpu"], theirs["tokensPerSecondPerGpu"], "tokens/s/GPU"
    elif ours["stepSeconds"] and theirs["stepSeconds"]:
        own, base, what = 1 / ours["stepSeconds"]["mean"], 1 / theirs["stepSeconds"]["mean"], "steps/s"
    else:
        raise ChartgenError(Problem("has no speed to compare with", name))
    if what == "steps/s" and {*other} & {"batch", "sequenceLength", "gpus"}:
        hint = "give what tokens/s need: --batch, --sequence and --gpus, or values"
        raise ChartgenError(Problem(f"steps of another size are not compared: {'; '.join(notes)}", name, hint=hint))
    change = own / base - 1
    sentence = f"{amount(own)} {what} are {_percent(change)} {Path(name).name} ({amount(base)})"  # as in the legend
    return Comparison(change, what, sentence, notes, other)


def refuse_other_model(ours: Mapping[str, Any], theirs: Mapping[str, Any], name: str) -> None:
    """Raise ChartgenError for two different models; it names each difference of their sizes."""
    pairs = [(key, ours.get(key), theirs.get(key)) for key in _MODEL]
    sizes = [(key, own, other) for key, own, other in pairs if None not in (own, other) and not same(key, own, other)]
    if sizes:
        differing = "; ".join(f"{NAMES[key]} {own}, there {other}" for key, own, other in sizes)
        raise ChartgenError(
            Problem(f"is of another model: {differing}", name, hint="name a baseline of the same model")
        )


def differences_of(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the differences besides the model, and the facts known for only one of both: fact and text."""
    for key in (*_SAME, "machines"):
        own, other = ours.get(key), theirs.get(key)
        if own and other and own != other:
            yield key, f"{NAMES[key]}: {own}, there {other}"
    unknown = [NAMES[key] for key in ("layers", *_SAME) if not (ours.get(key) and theirs.get(key))]
    if unknown:
        yield "", f"not known of both, so perhaps different: {', '.join(unknown)}"


def _percent(change: float) -> str:
    if abs(change) < 0.0005:
        return "as fast as"
    return f"{abs(change) * 100:.1f} % {'below' if change < 0 else 'above'}"


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _earlier(baseline: str, wanted: Wanted) -> dict[str, Any] | RunFigures:
    path = Path(baseline)
    if path.is_file() and path.suffix == ".json":
        try:
            data = json.loads(read_text(path), parse_constant=_refuse_constant)
        except (ValueError, RecursionError, ChartgenError):
            data = None  # DLLogger's logs have the same file ending and may have any size
        if isinstance(data, dict) and data.get("schema") == f"chartgen/{NAME}":
            return data
    log = read_logs([baseline])
    # its own facts take precedence over the options of the run
    own = read_out(log, wanted._replace(run=None, facts=())).facts.known
    rest = [(name, {key: value for key, value in facts.items() if key not in own}) for name, facts in wanted.facts]
    return read_out(log, wanted._replace(run=None, facts=rest))
