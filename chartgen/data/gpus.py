"""GPU models: memory, speed and number formats of data/gpus.yaml, list prices of data/prices.yaml, with sources."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from chartgen.data import read_table


class Gpu(NamedTuple):
    """One GPU model."""

    model: str  # its name in targets, such as h100-80gb
    memory: float  # GB (10^9 bytes) that a program can use
    tflops: Mapping[str, float]  # peak of dense matrix multiplication in TFLOPS, by number format: bf16, fp8, fp4
    compute_capability: str  # CUDA compute capability, such as 9.0
    nvlink: int  # number of GPUs that NVLink connects; 1 = none
    precisions: tuple[str, ...]  # values of `precision` that it supports for training
    sources: tuple[str, ...]  # sources of the numbers


def find_gpu(model: str) -> Gpu | None:
    """Return a GPU model of data/gpus.yaml; None for another."""
    return all_gpus().get(model)


@lru_cache(maxsize=1)
def all_gpus() -> Mapping[str, Gpu]:
    """Read all GPU models."""
    return {model: gpu_of(model, row) for model, row in read_table("gpus.yaml")["gpus"].items()}


def gpu_of(model: str, row: dict[str, Any]) -> Gpu:
    """Return a GPU model from a row of data/gpus.yaml, or of a target's `gpus`."""
    return Gpu(
        model=model,
        memory=row["memory"],
        tflops=row["tflops"],
        compute_capability=row["computeCapability"],
        nvlink=row["nvlink"],
        precisions=tuple(row["precisions"]),
        sources=tuple(row["sources"]),
    )


class ListPrice(NamedTuple):
    """A list price."""

    price: float  # US dollars of one GPU for an hour, on demand
    date: str  # year and month
    source: str


def list_price(machine: str) -> ListPrice | None:
    """Return the list price of a machine type's GPU; None where no public page is known."""
    row = read_table("prices.yaml")["prices"].get(machine)
    return ListPrice(float(row["price"]), str(row["date"]), row["source"]) if row else None


def why_unpriced(machine: str) -> str:
    """Return why a machine type has no list price; empty where it has one, or is not listed."""
    return next(
        (reason for reason, machines in read_table("prices.yaml")["unpriced"].items() if machine in machines), ""
    )
