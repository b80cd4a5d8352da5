"""Values that NeMo and Automodel log under the same names in several formats."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from chartgen.metrics.read.events import Steps
from chartgen.metrics.read.readers.columns import scaled, steps_of

# Native names -> names in VALUES. Sources: NVIDIA/NeMo @ 8cfedd7, nemo/utils/exp_manager.py and
# nemo/lightning/pytorch/callbacks for times and memory, nemo/collections/nlp/models/language_modeling for the others;
# NVIDIA/Megatron-LM @ d98e8a6, megatron/training/training.py for TensorBoard's tags.
NAMES = {
    "train_step_timing in s": "seconds",
    "iteration-time": "seconds",
    "reduced_train_loss": "loss",
    "lm loss": "loss",
    "consumed_samples": "samples",
    "global_batch_size": "batch",
    "batch-size": "batch",
    "TFLOPS_per_GPU": "tflops",
    "throughput": "tflops",
    "throughput/tflops/device": "tflops",
    "tokens_per_sec_per_gpu": "tokens",
    "lr": "rate",
    "learning-rate": "rate",
    "val_loss": "validation",
    "lm loss validation": "validation",
    "grad_norm": "gradient",
    "grad-norm": "gradient",
    "peak_memory_usage": "memory",
    "mem-max-allocated-bytes": "memory",
    "mem-max-reserved-gigabytes": "memory",
    "iter-energy/gpu": "energy",
}
# Factors for values that are not in GB.
_UNITS = {"peak_memory_usage": 1e-9, "mem-max-allocated-bytes": 1e-9, "mem-max-reserved-gigabytes": 1024**3 / 1e9}


def values_of(pairs: Iterable[tuple[str, Any]]) -> dict[str, float]:
    """Translate native names and values; omit unknown names.

    Raises:
        ValueError: A value is not a number.
    """
    values = {}
    for name, value in pairs:
        known = NAMES.get(name)
        if known is not None:
            values[known] = number_of(value) * _UNITS[name] if name in _UNITS else number_of(value)
    return values


def number_of(value: Any) -> float:
    """Parse a number; a bar of NeMo 1 pads nan like a number, to `nan.0`.

    Raises:
        ValueError: The value is not a number.
    """
    return float(value[:-2] if isinstance(value, str) and value.endswith(("nan.0", "inf.0")) else value)


def steps_of_pairs(
    numbers: Sequence[bytes], when: Sequence[float] | None, columns: Mapping[str, Sequence[bytes]]
) -> Steps | None:
    """Join columns to steps; see columns.steps_of.

    Args:
        numbers: The steps.
        when: Time of each line; None = unknown.
        columns: Native name -> the values.
    """
    names = [NAMES[name] for name in columns]
    steps = steps_of(array("q", map(int, numbers)), when, names, [*columns.values()])
    if steps is not None:
        for name in _UNITS.keys() & columns.keys():
            steps.columns[NAMES[name]] = scaled(steps.columns[NAMES[name]], _UNITS[name])
    return steps
