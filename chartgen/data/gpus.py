"""GPU models: their memory, speed and number formats, from data/gpus.yaml, where each row has its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.helm.yaml import load_file, require_map

_FILE = Path(__file__).parent / "gpus.yaml"


@dataclass(frozen=True)
class Gpu:
    """One GPU model.

    Args:
        model: Its name in targets, such as h100-80gb.
        memory: GB (10^9 bytes) that a program can use.
        tflops: Peak of dense matrix multiplication in TFLOPS, by number format: bf16, fp8, fp4.
        compute_capability: CUDA compute capability, such as 9.0.
        nvlink: GPUs that NVLink joins; 1 = none.
        precisions: Values of `precision` that it can train in.
        sources: Where the numbers come from.
    """

    model: str
    memory: float
    tflops: Mapping[str, float]
    compute_capability: str
    nvlink: int
    precisions: tuple[str, ...]
    sources: tuple[str, ...]


def find_gpu(model: str) -> Gpu | None:
    """Return a GPU model; None for one that is not known here, as a target of the user's own may name."""
    return all_gpus().get(model)


@lru_cache(maxsize=1)
def all_gpus() -> Mapping[str, Gpu]:
    """Read all GPU models."""
    data: dict[str, Any] = require_map(load_file(_FILE), _FILE.name)
    return {model: _gpu(model, row) for model, row in data["gpus"].items()}


def _gpu(model: str, row: dict[str, Any]) -> Gpu:
    return Gpu(
        model=model,
        memory=row["memory"],
        tflops=row["tflops"],
        compute_capability=row["computeCapability"],
        nvlink=row["nvlink"],
        precisions=tuple(row["precisions"]),
        sources=tuple(row["sources"]),
    )
