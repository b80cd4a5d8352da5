"""The program of launcher nccl-test on real GPUs: right results, and the speed that a plain loop of PyTorch has.

Needs PyTorch and two NVIDIA GPUs, and neither Helm nor chartgen's own dependencies:

    python3 -m pytest --noconftest -c /dev/null tests/gpu/test_nccl.py
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "chartgen" / "library" / "launchers" / "nccl-test" / "program.py"
# What anybody would write to measure all_reduce: events around a loop, no checks.
LOOP = """
import json, os, torch, torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
for size in SIZES:
    message = torch.ones(size // 4, device="cuda")
    for _ in range(5):
        dist.all_reduce(message)
    torch.cuda.synchronize()
    dist.barrier()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in "se")
    start.record()
    for _ in range(20):
        dist.all_reduce(message)
    end.record()
    torch.cuda.synchronize()
    if rank == 0:
        print(json.dumps([size, start.elapsed_time(end) / 20 * 1000]), flush=True)
dist.destroy_process_group()
"""


def gpus() -> int:
    """GPUs that this machine has, without importing PyTorch."""
    if find_spec("torch") is None or not shutil.which("nvidia-smi"):
        return 0
    told = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False).stdout
    return sum(line.startswith("GPU ") for line in told.splitlines())


pytestmark = pytest.mark.skipif(gpus() < 2, reason="needs PyTorch and two NVIDIA GPUs")


def torchrun(folder: Path, *argv: str, nodes: int = 1, node: int = 0, port: int = 0) -> subprocess.Popen[str]:
    """Start a program with torchrun: a process for each GPU, or on one of several machines of one GPU each."""
    variables = {"NCCL_NVLS_ENABLE": "0", "RUN_DIRECTORY": str(folder), "NODE_NAME": f"node-{node}"}
    meeting = ["--standalone", f"--nproc-per-node={gpus()}"]
    if nodes > 1:
        variables["CUDA_VISIBLE_DEVICES"] = str(node)
        meeting = [f"--nnodes={nodes}", f"--node-rank={node}", "--nproc-per-node=1", f"--master-port={port}"]
    command = [sys.executable, "-m", "torch.distributed.run", *meeting, *argv]
    return subprocess.Popen(command, env={**os.environ, **variables}, text=True, stdout=subprocess.PIPE)


def measured(folder: Path, *argv: str) -> tuple[int, str, list[dict[str, Any]]]:
    """Run the program on all GPUs; give exit code, log and the rows of its record."""
    with torchrun(folder, str(PROGRAM), *argv) as process:
        log, _ = process.communicate(timeout=300)
    rows = [json.loads(line) for line in (folder / "nccl-test.jsonl").read_text().splitlines()]
    return process.returncode, log, rows[1:]


@pytest.mark.parametrize("kind", ["float", "half", "bfloat16"])
def test_every_collective_is_right_from_small_to_large(kind: str, tmp_path: Path) -> None:
    code, log, rows = measured(tmp_path, "--sizes", "8", "256Mi", "--factor", "4", "--type", kind)
    assert code == 0, log
    assert {row["wrong"] for row in rows} == {0}
    assert {(row["operation"], row["place"]) for row in rows} == {
        ("all_reduce", "in"),
        *((operation, place) for operation in ("all_gather", "reduce_scatter") for place in ("out", "in")),
        ("alltoall", "out"),
    }


def test_all_reduce_is_as_fast_as_a_plain_loop(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    sizes = [64 << 20, 256 << 20, 1 << 30, 4 << 30]
    script = tmp_path / "loop.py"
    script.write_text(LOOP.replace("SIZES", repr(sizes)))
    argv = ("--operations", "all_reduce", "--sizes", "64Mi", "4Gi", "--factor", "4")
    ours, plain = [], []
    for _ in range(2):
        ours.append({row["bytes"]: row["time"] for row in measured(tmp_path, *argv)[2]})
        with torchrun(tmp_path, str(script)) as process:
            plain.append(dict(json.loads(line) for line in process.communicate(timeout=300)[0].splitlines()))
    for size in sizes:
        mine, other = (min(each[size] for each in runs) for runs in (ours, plain))
        figures = f"nccl-test {mine:.1f} us, loop {other:.1f} us, ratio {mine / other:.4f}"
        record_property(f"all_reduce of {size >> 20} MiB", figures)
        assert mine == pytest.approx(other, rel=0.03)


def test_below_a_floor_the_program_fails_and_says_by_how_much(tmp_path: Path) -> None:
    floor = ("--floor", "all_reduce", "100000", "0", "a test")
    code, log, rows = measured(tmp_path, "--operations", "all_reduce", "--sizes", "64Mi", "64Mi", *floor)
    (line,) = (line for line in log.splitlines() if line.startswith("chartgen: "))
    below = f"{1 - rows[0]['busbw'] / 100000:.1%} below the floor of 100000 GB/s (a test)"
    assert line == f"chartgen: nccl-test: all_reduce reaches {rows[0]['busbw']:.2f} GB/s at 64 MiB, {below}"
    assert code == 1


def test_machines_of_one_gpu_each_meet_in_pairs(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = (str(PROGRAM), "--mode", "pairs", "--operations", "all_reduce", "--sizes", "8", "256Mi")
    running = [torchrun(tmp_path, *argv, nodes=2, node=node, port=port) for node in range(2)]
    logs = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0], logs
    _, pair = (json.loads(line) for line in (tmp_path / "nccl-test.jsonl").read_text().splitlines())
    assert pair["pair"] == ["node-0", "node-1"]
    assert pair["busbw"] > 1
