"""What the log of a training run says of its progress."""

from __future__ import annotations

import re
from collections.abc import Iterable

# ` iteration       10/     100 | ... elapsed time per iteration (ms): 1520.3 |` (NVIDIA/Megatron-LM core_v0.19.0,
# megatron/training/training.py).
# `Training epoch 0, iteration 97/99 | ... train_step_timing in s: 12.22` (NVIDIA/NeMo v2.4.0,
# nemo/lightning/pytorch/callbacks/progress_printer.py), which counts both numbers from 0.
_ITERATION = re.compile(r"(?P<epoch>Training epoch \d+, )?iteration\s+(?P<step>\d+)/\s*(?P<all>\d+)")
_MILLISECONDS = re.compile(r"elapsed time per iteration \(ms\): *([0-9.]+)")
_SECONDS = re.compile(r"train_step_timing in s: *([0-9.eE+-]+)")


def progress_of(lines: Iterable[str]) -> str:
    """Say how far a run is and how fast, from its last iteration line; empty when there is none."""
    said = ""
    for line in lines:
        if match := _ITERATION.search(line):
            first = 1 if match["epoch"] else 0
            said = f"iteration {int(match['step']) + first} of {int(match['all']) + first}{_speed(line)}"
    return said


def _speed(line: str) -> str:
    if match := _MILLISECONDS.search(line):
        return f", {float(match[1]) / 1000:.3g} s each"
    if match := _SECONDS.search(line):
        return f", {float(match[1]):.3g} s each"
    return ""
