"""Models and speeds that vendors have published, from data/published.yaml, with the source of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chartgen.data import read_table
from chartgen.errors import Problem, UsageError, did_you_mean
from chartgen.estimator import Run


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One published speed."""

    model: str
    gpu: str  # GPU model
    gpus: int = 0  # number of GPUs; 0 = not published
    precision: str  # precision
    sequence: int  # tokens of a sample
    tokens: float  # tokens/s per GPU
    tflops: float | None = None  # TFLOPS per GPU; None = not published
    attention: str = ""  # convention of `tflops`; empty without one
    container: str
    source: str
    batch: int = 0  # samples of a step; 0 = not published
    layout: Mapping[str, int] = field(default_factory=dict)  # parallel sizes above 1 and micro-batch; empty = not known

    def __str__(self) -> str:
        sizes = ", ".join(f"{name} {size}" for name, size in self.layout.items())
        run = f"{self.tokens:,.0f} tokens/s for each of {self.gpus} GPUs, {self.precision}, batch {self.batch}"
        return f"{run}: {sizes} ({self.source}, {self.container})"


def published_data() -> dict[str, Any]:
    """Return the file of published figures: its `models`, `figures` and `sources`."""
    return read_table("published.yaml")


def find_model(name: str) -> tuple[str, dict[str, Any]]:
    """Return a model's own name and its facts; raise UsageError for an unknown model."""
    models: Mapping[str, dict[str, Any]] = published_data()["models"]
    for model, facts in models.items():
        if name in (model, *facts.get("aliases", ())):
            return model, {key: value for key, value in facts.items() if key != "aliases"}
    hint = did_you_mean(name, model_names()) or "give -f values"
    raise UsageError(Problem(f"the model {name!r} is not known", hint=hint))


def model_names() -> list[str]:
    """Return the names of all models, and their other names."""
    models: Mapping[str, dict[str, Any]] = published_data()["models"]
    return [*models, *(alias for facts in models.values() for alias in facts.get("aliases", ()))]


def find_figure(model: str, wanted: Mapping[str, Any]) -> Figure:
    """Return the published speed of a model nearest to a run: by GPU, precision, then number of GPUs.

    Args:
        wanted: Facts of the run: gpu, precision, sequenceLength, gpus.

    Raises:
        UsageError: No figure was published for the model.
    """
    name, _ = find_model(model)
    rows = [_figure(row) for row in published_data()["figures"] if row["model"] == name]
    if not rows:
        published = sorted({row["model"] for row in published_data()["figures"]})
        raise UsageError(Problem(f"no speed of {name} is known", hint=f"known are {', '.join(published)}"))
    # the last of equals: newer releases are further down
    return min(reversed(rows), key=lambda row: _distance(row, wanted))


def published_layout(run: Run | str) -> Figure | None:
    """Return the published run of a model on a GPU, the nearest one whose layout is known; None without any."""
    if isinstance(run, str):
        return None
    wanted = {"precision": run.precision, "sequenceLength": run.sequence, "gpus": run.gpus}
    here = (run.model.name, run.hardware.gpu)
    rows = (row for row in reversed(published_data()["figures"]) if (row["model"], row["gpu"]) == here)
    return min((_figure(row) for row in rows if "layout" in row), key=lambda row: _distance(row, wanted), default=None)


def _distance(row: Figure, wanted: Mapping[str, Any]) -> tuple[bool, bool, bool, float]:
    gpus = wanted.get("gpus") or row.gpus
    ratio = max(gpus, row.gpus) / max(min(gpus, row.gpus), 1)
    other = [wanted.get(key) not in (None, value) for key, value in (("gpu", row.gpu), ("precision", row.precision))]
    return other[0], other[1], wanted.get("sequenceLength") not in (None, row.sequence), ratio


def _figure(row: Mapping[str, Any]) -> Figure:
    own = {"sequence": row["sequenceLength"], "source": published_data()["sources"][row["source"]]}
    return Figure(**{key: value for key, value in {**row, **own}.items() if key != "sequenceLength"})
