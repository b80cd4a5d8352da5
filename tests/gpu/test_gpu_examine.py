"""A GPU that another program keeps busy is found slow before the run starts, and no other one is."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from real_gpus import gpus, needs, show

from chartgen.library.workloads.common.files.examine import find_slow, find_torch, multiply

LOADED, QUIET = (int(os.environ.get(name, few)) for name, few in (("CHARTGEN_LOADED", "6"), ("CHARTGEN_QUIET", "6")))
WORK = {"products": "torch.mm(left, left, out=other)", "copies": "other.copy_(left)"}
LOAD = """
import torch
left, other = (torch.ones(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
for turn in range(10 ** 9):
    {work}
    if turn % 100 == 0:
        torch.cuda.synchronize()
    if turn == 300:
        print("busy", flush=True)
"""


@contextlib.contextmanager
def kept_busy(gpu: int, work: str) -> Iterator[None]:
    """Keep a GPU busy with another process."""
    argv, visible = [sys.executable, "-c", LOAD.format(work=WORK[work])], {"CUDA_VISIBLE_DEVICES": str(gpu)}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env={**os.environ, **visible}) as other:
        try:
            assert other.stdout
            assert other.stdout.readline() == b"busy\n"
            yield
        finally:
            other.kill()


def slow_gpus(torch: Any) -> tuple[list[str], list[float]]:
    """Return the lines of the examination on slow GPUs of this machine, and the TFLOP/s of each."""
    rates = multiply(torch, gpus(), lambda: None)
    own: dict[str, Any] = {"pod": "here", "tflops": rates, "written": 1.0, "summed": 1.0}
    return [*find_slow({0: own}, 0, 1)], rates


def test_a_gpu_that_is_slowed_by_another_program_is_found() -> None:
    needs(2, with_megatron=False)
    torch, choose = find_torch(gpus()), random.Random(5)  # noqa: S311
    slow_gpus(torch)  # starts CUDA
    rates: list[float] = []
    for _ in range(QUIET):
        lines, each = slow_gpus(torch)
        assert lines == []
        rates += [rate / max(each) for rate in each]
    shares: dict[str, list[float]] = {work: [] for work in WORK}
    for _ in range(LOADED):
        gpu, work = choose.randrange(gpus()), choose.choice([*WORK])
        with kept_busy(gpu, work):
            lines, each = slow_gpus(torch)
        assert [line.split(" of ")[0] for line in lines] == [f"GPU {gpu}"], (work, each)
        shares[work].append(round(each[gpu] / max(each), 2))
    show(
        f"{torch.cuda.get_device_name()}: {QUIET} examinations without a load, lowest share {min(rates):.3f}",
        f"{LOADED} with one: shares of the loaded GPU {shares}",
    )
