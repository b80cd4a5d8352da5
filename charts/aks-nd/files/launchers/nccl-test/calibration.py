"""What the GPUs of a machine reach, for estimates: matrix products, memory, launches of kernels, NVLink."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

from collectives import Bench

# Seconds of each figure, of which the later half counts: a GPU at full power becomes hot, and slower.
SECONDS = 8.0
# Rows of a matrix and bytes of a copy; where a processor stands for a GPU, few.
SIZES = {"cuda": (8192, 2 << 30), "cpu": (64, 1 << 16)}
# Launches in a row, fewer than the queue of a GPU takes before the processor has to wait.
LAUNCHES = 400
# The first GPUs with matrix products in FP8 (NVIDIA Ada, compute capability 8.9).
FP8_SINCE = (8, 9)


def calibrate(bench: Bench) -> dict[str, float]:
    """Return what the slowest GPU reaches: TFLOP/s by number format, GB/s of memory, launches of a millisecond.

    And GB/s of NVLink in one direction, if the run is on one machine, and has several GPUs there.
    """
    device = bench.device
    rows, copied = SIZES[device.type]
    found = {name: 2 * rows**3 / _sustained(bench, call) / 1e12 for name, call in _products(bench, rows)}
    source = bench.torch.empty(copied, dtype=bench.torch.int8, device=device)
    target = bench.torch.empty_like(source)
    found["memory"] = 2 * copied / _sustained(bench, lambda: target.copy_(source)) / 1e9
    found["launches"] = _launches(bench)
    if os.environ["WORLD_SIZE"] == os.environ["LOCAL_WORLD_SIZE"] != "1":
        found["nvlink"] = _exchanged(bench, copied) / 1e9
    slowest = bench.torch.tensor(list(found.values()), dtype=bench.torch.float64, device=device)
    bench.dist.all_reduce(slowest, bench.dist.ReduceOp.MIN)
    return dict(zip(found, slowest.tolist(), strict=True))


def values_of(machine: str, found: dict[str, float]) -> list[str]:
    """Write the values for a site file."""
    figures = ", ".join(f"{name}: {figure:.4g}" for name, figure in found.items())
    head = "chartgen: nccl-test: values with which estimates are of this machine:"
    return [head, "estimate:", f"  {machine}: " + "{" + figures + "}"]


def _products(bench: Bench, rows: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield a product of each number format; of numbers that vary, which cost more power than zeros."""
    torch, device = bench.torch, bench.device
    one, other = (torch.randn(rows, rows, device=device).to(torch.bfloat16) for _ in "ab")
    yield "bf16", lambda: one @ other
    if device.type == "cuda" and torch.cuda.get_device_capability() >= FP8_SINCE and hasattr(torch, "float8_e4m3fn"):
        scale = torch.ones((), device=device)
        left, right = one.to(torch.float8_e4m3fn), other.to(torch.float8_e4m3fn).t()
        kept = {"scale_a": scale, "scale_b": scale, "out_dtype": torch.bfloat16}
        yield "fp8", lambda: torch._scaled_mm(left, right, **kept)  # noqa: SLF001  PyTorch has no other name for it


def _sustained(bench: Bench, call: Callable[[], object]) -> float:
    """Return the seconds of one call in the later half of a sequence."""
    half = SECONDS / 2 if bench.device.type == "cuda" else 0.0
    _timed(bench, call, half)
    return _timed(bench, call, half)


def _timed(bench: Bench, call: Callable[[], object], seconds: float) -> float:
    calls, start = 0, time.perf_counter()
    while not calls or time.perf_counter() - start < seconds:
        for _ in range(20):
            call()
        _wait(bench)
        calls += 20
    return (time.perf_counter() - start) / calls


def _launches(bench: Bench) -> float:
    """Return how many small kernels the processor launches in a millisecond; the best of several tries."""
    small, spent = bench.torch.zeros(1, device=bench.device), []
    for _ in range(10):
        _wait(bench)
        start = time.perf_counter()
        for _ in range(LAUNCHES):
            small.add_(1)
        spent.append(time.perf_counter() - start)
    return LAUNCHES / min(spent) / 1e3


def _exchanged(bench: Bench, size: int) -> float:
    """Return the bytes of a second that a GPU sends to the others of its machine, each of them as much.

    Not those of an all-reduce: the switches of some machines add up, whose figure is not that of the links.
    """
    ranks = int(os.environ["WORLD_SIZE"])
    source = bench.torch.empty(size // ranks * ranks, dtype=bench.torch.int8, device=bench.device)
    target = bench.torch.empty_like(source)

    def spent(calls: int) -> float:  # ranks that count by the clock would wait for each other
        _wait(bench)
        start = time.perf_counter()
        for _ in range(calls):
            bench.dist.all_to_all_single(target, source)
        _wait(bench)
        return (time.perf_counter() - start) / calls

    spent(3)
    return size * (ranks - 1) / ranks / spent(30)


def _wait(bench: Bench) -> None:
    if bench.device.type == "cuda":
        bench.torch.cuda.synchronize()
