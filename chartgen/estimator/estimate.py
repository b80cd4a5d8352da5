"""The estimate of a run: its step's time and speed, each with a range, from the constants in data/speed.yaml."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from chartgen.data import DATA, read_table
from chartgen.data.gpus import Gpu
from chartgen.estimator.run import Hardware, Run
from chartgen.estimator.step import TERA, StepTime, floor_of, step_of

SPEED_FILE = DATA / "speed.yaml"
# NeMo's container that months are counted from.
_FIRST = (25, 9)


@dataclass(frozen=True)
class Range:
    """A figure within which 80 % of the measured runs are."""

    low: float  # the least
    middle: float  # the most likely
    high: float  # the most

    def times(self, factor: float) -> Range:
        """Return the range in another unit."""
        return Range(self.low * factor, self.middle * factor, self.high * factor)

    def over(self, number: float) -> Range:
        """Return a number divided by the range, such as the tokens of a step by its seconds."""
        return Range(number / self.high, number / self.middle, number / self.low)


@dataclass(frozen=True)
class Estimate:
    """The estimated speed of a run.

    Args:
        step_seconds: Seconds of a step.
        tokens_per_second_per_gpu: Tokens that each GPU trains in a second.
        tflops_per_gpu: The model's own operations, without recomputation.
        mfu: That as a share of the peak in the run's precision.
        made: What the middle of a step's time is spent on.
        unmeasured: What of the run no measured one had: the range is wider for each.
    """

    step_seconds: Range
    tokens_per_second_per_gpu: Range
    tflops_per_gpu: Range
    mfu: Range
    made: StepTime
    unmeasured: tuple[str, ...]


def estimate_run(run: Run, constants: Mapping[str, float] | None = None) -> Estimate | None:
    """Estimate a run's speed; None where its GPU does not calculate in the run's precision, or no formula does."""
    peak = run.hardware.tflops.get(run.speed_format)
    if peak is None:
        return None
    made = step_of(run, constants or fitted_constants())
    foreign = dict(_unmeasured(run))
    factor = math.exp(width(run, foreign))
    seconds = Range(made.seconds / factor, made.seconds, made.seconds * factor)
    speed = seconds.over(run.global_batch * run.sequence / run.gpus)
    tflops = speed.times(run.model.operations(run.sequence) / TERA)
    return Estimate(seconds, speed, tflops, tflops.times(1 / peak), made, tuple(foreign.values()))


def seconds_of(run: Run) -> float | None:
    """Return the middle of a step's time alone."""
    return step_of(run, fitted_constants()).seconds if run.speed_format in run.hardware.tflops else None


def least_seconds(run: Run) -> Callable[[int, int], float] | None:
    """Return what a step takes at least, by pipeline stages and the chunks of each, for the run's other sizes."""
    return floor_of(run, fitted_constants()) if run.speed_format in run.hardware.tflops else None


def _unmeasured(run: Run) -> Iterator[tuple[str, str]]:
    """Yield what no measured run had, by its key in `spread`."""
    measured = speed_table()["measured"]
    newest = months_of(measured["software"][1])
    if run.model.name not in measured["models"]:
        yield "model", f"model {run.model.name}"
    if run.hardware.gpu not in measured["gpus"] and not run.hardware.measured:
        yield "gpu", f"GPU {run.hardware.gpu}"
    if run.precision not in measured["precisions"]:
        yield "precision", f"precision {run.precision}"
    if newest is not None and not 0 <= run.software <= newest:
        yield "software", "software that is older or newer than NeMo {} to {}".format(*measured["software"])
    if run.context > 1 or run.recomputed or run.expert_tensor > 1:
        yield "layout", "context parallelism, recomputed layers or shared experts"


def width(run: Run, foreign: Iterable[str]) -> float:
    """Return half the width of a range, as a logarithm; `foreign` are keys in `spread` of what no measured run had."""
    spread = speed_table()["spread"]
    return math.hypot(spread[kind_of(run)], *(spread[key] for key in foreign))


def kind_of(run: Run) -> str:
    """Return the key in `spread` of measured runs like it."""
    return ("separate" if run.hardware.separate else "experts") if run.model.experts else "dense"


def speed_table() -> Mapping[str, Any]:
    """Read data/speed.yaml."""
    return read_table(SPEED_FILE.name)


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
        measured: TFLOP/s by number format, GB/s of memory and NVLink, launches a millisecond; some of them.
    """
    usual = speed_table()["reference"].get(hardware.gpu, {})
    share = {name: measured[name] / figure for name, figure in usual.items() if name in measured}
    links = {name: getattr(hardware, name) * share.get(name, 1.0) for name in ("memory", "nvlink")}
    return replace(hardware, **links, measured=share)


def months_of(container: str) -> float | None:
    """Return the months from NeMo's container 25.09 to another, such as 26.04.01; None where it names no month."""
    found = re.search(r"(?<!\d)(2\d)\.(\d\d)(\.\d+)?(?!\d)", container)
    if not found:
        return None
    year, month = int(found[1]), int(found[2])
    return (year - _FIRST[0]) * 12 + month - _FIRST[1] + (0.5 if found[3] else 0.0)
