"""Values that NeMo and Automodel log under the same names in several formats."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Any

# Factors for values that are not in GB.
_UNITS = {
    **dict.fromkeys(("peak_memory_usage", "mem-max-allocated-bytes"), 1e-9),
    **dict.fromkeys(("mem-max-reserved-gigabytes", "memory/max_reserved(GiB)"), 1024**3 / 1e9),
}
# Names in VALUES -> native names. Sources: NVIDIA/NeMo @ 8cfedd7, nemo/utils/exp_manager.py and
# nemo/lightning/pytorch/callbacks for times and memory, nemo/collections/nlp/models/language_modeling for the others;
# NVIDIA/Megatron-LM @ d98e8a6, megatron/training/training.py, and torchtitan 0.3.0, torchtitan/components/metrics.py,
# and microsoft/Megatron-DeepSpeed @ f4157be, megatron/training.py, for TensorBoard's tags;
# NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/BERT/run_pretraining.py.
_NATIVE: dict[str, Iterable[str]] = {
    "seconds": ("train_step_timing in s", "iteration-time", "iteration-time/iteration-time"),
    "loss": ("reduced_train_loss", "lm loss", "average_loss", "step_loss", "loss_metrics/global_avg_loss"),
    "samples": ("consumed_samples",),
    "batch": ("global_batch_size", "batch-size", "batch-size/batch-size"),
    "sequence": ("seqlen/actual_seq_length",),
    "tflops": ("TFLOPS_per_GPU", "throughput", "throughput/tflops/device", "tflops"),
    "mfu": ("mfu(%)",),
    "tokens": ("tokens_per_sec_per_gpu", "throughput(tps)"),
    "rate": ("lr", "learning_rate", "learning-rate", "learning-rate/learning-rate"),
    "validation": ("val_loss", "lm loss validation", "validation_metrics/loss"),
    "gradient": ("grad_norm", "grad-norm", "grad-norm/grad-norm"),
    "memory": _UNITS,
    "energy": ("iter-energy/gpu",),
}
NAMES = {native: name for name, natives in _NATIVE.items() for native in natives}
NAMES |= {"lm-loss-training/lm loss": "loss", "lm-loss-validation/lm loss validation": "validation"}


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
