"""Values that NeMo and Automodel log under the same names in several formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# Native names and what they are called here. Sources: NVIDIA/NeMo @ 8cfedd7, nemo/utils/exp_manager.py and
# nemo/lightning/pytorch/callbacks for times and memory, nemo/collections/nlp/models/language_modeling for the others;
# NVIDIA/Megatron-LM @ d98e8a6, megatron/training/training.py for TensorBoard's tags.
_NAMES = {
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
    "grad_norm": "gradient",
    "grad-norm": "gradient",
    "peak_memory_usage": "memory",
    "mem-max-allocated-bytes": "memory",
    "mem-max-reserved-gigabytes": "memory",
    "iter-energy/gpu": "energy",
}
# What is not in GB yet.
_UNITS = {"peak_memory_usage": 1e-9, "mem-max-allocated-bytes": 1e-9, "mem-max-reserved-gigabytes": 1024**3 / 1e9}


def values_of(pairs: Iterable[tuple[str, Any]]) -> dict[str, float]:
    """Translate native names and values; names that mean nothing here are left out.

    Raises:
        ValueError: A value is no number.
    """
    values = {}
    for name, value in pairs:
        known = _NAMES.get(name)
        if known is not None:
            values[known] = float(value) * _UNITS[name] if name in _UNITS else float(value)
    return values
