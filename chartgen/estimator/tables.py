"""The constants, the speeds of GPUs and what was measured, from data/speed.yaml."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.data.gpus import Gpu
from chartgen.estimator.run import Hardware
from chartgen.helm.yaml import load_file, require_map

SPEED_FILE = Path(__file__).parent.parent / "data" / "speed.yaml"
# NeMo's container that months are counted from.
_FIRST = (25, 9)


@lru_cache(maxsize=1)
def speed_table() -> Mapping[str, Any]:
    """Read data/speed.yaml."""
    return require_map(load_file(SPEED_FILE), SPEED_FILE.name)


@lru_cache(maxsize=1)
def fitted_constants() -> Mapping[str, float]:
    """Return the constants of the formulas."""
    return {name: row["value"] for name, row in speed_table()["constants"].items()}


def hardware_of(gpu: Gpu, machine: str = "") -> Hardware | None:
    """Return what joins GPUs of a model, on a machine type; None where their speeds are not known."""
    row = speed_table()["gpus"].get(gpu.model)
    if row is None:
        return None
    network = speed_table()["networks"].get(machine, row["network"])
    return Hardware(gpu.model, gpu.tflops, gpu.nvlink, **{**row, "network": network})


def calibrated(hardware: Hardware, measured: Mapping[str, float]) -> Hardware:
    """Return hardware as fast as mode calibrate of nccl-test measured it, beside the GPU that is the reference.

    Args:
        hardware: What the data sheet promises.
        measured: TFLOP/s by number format, GB/s of memory, launches a millisecond; some of them.
    """
    usual = speed_table()["reference"].get(hardware.gpu, {})
    share = {name: measured[name] / figure for name, figure in usual.items() if name in measured}
    return replace(hardware, memory=hardware.memory * share.get("memory", 1.0), measured=share)


def months_of(container: str) -> float | None:
    """Return the months from NeMo's container 25.09 to another, such as 26.04.01; None where it names no month."""
    found = re.search(r"(?<!\d)(2\d)\.(\d\d)(\.\d+)?(?!\d)", container)
    if not found:
        return None
    year, month = int(found[1]), int(found[2])
    return (year - _FIRST[0]) * 12 + month - _FIRST[1] + (0.5 if found[3] else 0.0)
