"""Values that NeMo and Automodel log under the same names in several formats."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Any

# Native names -> names in VALUES. Sources: NVIDIA/NeMo @ 8cfedd7, nemo/utils/exp_manager.py and
# nemo/lightning/pytorch/callbacks for times and memory, nemo/collections/nlp/models/language_modeling for the others;
# NVIDIA/Megatron-LM @ d98e8a6, megatron/training/training.py, and torchtitan 0.3.0, torchtitan/components/metrics.py,
# for TensorBoard's tags; NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/BERT/run_pretraining.py.
NAMES = {
    "train_step_timing in s": "seconds",
    "iteration-time": "seconds",
    "reduced_train_loss": "loss",
    "lm loss": "loss",
    "average_loss": "loss",
    "step_loss": "loss",
    "loss_metrics/global_avg_loss": "loss",
    "consumed_samples": "samples",
    "global_batch_size": "batch",
    "batch-size": "batch",
    "TFLOPS_per_GPU": "tflops",
    "throughput": "tflops",
    "throughput/tflops/device": "tflops",
    "tflops": "tflops",
    "mfu(%)": "mfu",
    "tokens_per_sec_per_gpu": "tokens",
    "throughput(tps)": "tokens",
    "lr": "rate",
    "learning_rate": "rate",
    "learning-rate": "rate",
    "val_loss": "validation",
    "lm loss validation": "validation",
    "validation_metrics/loss": "validation",
    "grad_norm": "gradient",
    "grad-norm": "gradient",
    "peak_memory_usage": "memory",
    "mem-max-allocated-bytes": "memory",
    "mem-max-reserved-gigabytes": "memory",
    "memory/max_reserved(GiB)": "memory",
    "iter-energy/gpu": "energy",
}
# Factors for values that are not in GB.
_UNITS = {
    **dict.fromkeys(("peak_memory_usage", "mem-max-allocated-bytes"), 1e-9),
    **dict.fromkeys(("mem-max-reserved-gigabytes", "memory/max_reserved(GiB)"), 1024**3 / 1e9),
}


class Epochs:
    """Numbers steps over the epochs: some programs count from the beginning again in each."""

    def __init__(self) -> None:
        self._before: dict[int, int] = {}
        self._last = -1

    def number(self, epoch: int, step: int) -> int:
        """Return the step of the run for one as logged: of the run, or of the epoch, from 0 or 1."""
        if epoch not in self._before:
            is_repeated = self._before and step <= self._last
            self._before[epoch] = self._last + (step == 0) if is_repeated else 0
        number = self._before[epoch] + step
        self._last = max(self._last, number)
        return number


def translate_values(pairs: Iterable[tuple[str, Any]]) -> dict[str, float]:
    """Translate native names and values; omit unknown names. Raise ValueError if a value is not a number."""
    return {NAMES[name]: number_of(value) * _UNITS.get(name, 1) for name, value in pairs if name in NAMES}


def in_units(columns: Mapping[str, array[float]]) -> dict[str, array[float]]:
    """Translate columns with native names."""
    factors = {name: _UNITS.get(name, 1) for name in columns}
    return {
        NAMES[name]: column if factors[name] == 1 else array("d", [value * factors[name] for value in column])
        for name, column in columns.items()
    }


def number_of(value: Any) -> float:
    """Parse a number, else raise ValueError; a bar of NeMo 1 pads nan like a number, to `nan.0`."""
    text = str(value)
    return float(text[:-2] if text.endswith(("nan.0", "inf.0")) else text)
