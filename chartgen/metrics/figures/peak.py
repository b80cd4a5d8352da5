"""The peak of a GPU, the basis of model FLOPs utilization."""

from __future__ import annotations

from typing import NamedTuple

from chartgen.errors import Problem, UsageError, did_you_mean
from chartgen.metrics.figures.facts import Facts, FigureNote

# Value of `precision` -> number format of the GPU's peak. Both 16-bit formats have the same peak.
_FORMATS = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}
FORMATS = ("bf16", "fp8", "fp4")


class Peak(NamedTuple):
    """The peak speed of a GPU."""

    tflops: float  # dense TFLOPS
    name: str  # its name, such as `fp8 peak of h100-80gb`


def gpu_name(name: str) -> str:
    """Return a GPU's full name, such as h100-80gb for h100, H100 or NVIDIA H100.

    Raises:
        UsageError: The name matches no GPU, or several different ones.
    """
    from chartgen.data.gpus import all_gpus

    gpus = all_gpus()
    plain = "-".join(name.lower().replace("_", " ").replace("-", " ").split()).removeprefix("nvidia-")
    found = [model for model in gpus if model == plain or model.startswith(f"{plain}-")]
    if not found or any(gpus[model].tflops != gpus[found[0]].tflops for model in found):
        problem = f"the peak of the GPU {name!r} is not known"
        raise UsageError(Problem(problem, hint=did_you_mean(plain, gpus) or "give it in TFLOPS with --peak"))
    return found[0]


def find_peak(wanted: str, facts: Facts) -> Peak | FigureNote:
    """Find the peak for a run.

    Args:
        wanted: A number format, a number of TFLOPS, or empty for the run's training precision.
        facts: GPU and precision.

    Returns:
        The peak, or a notice with the reason why it is unknown.

    Raises:
        UsageError: `wanted` is invalid, or the GPU is unknown.
    """
    if wanted and wanted not in FORMATS:
        return Peak(_number(wanted), "the given peak")
    gpu, precision = facts.get("gpu"), facts.get("precision")
    if not gpu:
        return FigureNote("MFU is not known without the GPU", "give --gpu, or --peak in TFLOPS")
    form = wanted or _FORMATS.get(precision or "")
    if not form:
        return FigureNote("MFU is not known without the precision", "give --precision, or --peak")
    from chartgen.data.gpus import find_gpu

    model = find_gpu(gpu)
    if model is None or form not in model.tflops:
        return FigureNote(f"MFU is not known: no {form} peak of {gpu} is known", "give --peak in TFLOPS")
    return Peak(model.tflops[form], f"{form} peak of {gpu}")


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise UsageError(Problem(f"{text!r} is not a peak", hint=f"write TFLOPS of one GPU, or {', '.join(FORMATS)}"))
    return value
