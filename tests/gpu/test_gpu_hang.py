"""A rank of two that never reaches an operation of NCCL, on real GPUs: `stacks` and run.hangMinutes find it.

The machine needs PyTorch and py-spy (`pip download -d wheels --no-deps py-spy==0.4.3` brings it). On two H200 with
PyTorch 2.11 (2026-11-23) the run ended 61 s after its last step, with the stacks of both ranks in its log.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from real_gpus import execute, needs, show

from chartgen.releases.status import pod_stacks

CHART = "onprem-p8000"
PROGRAM = """
import os, time
import torch
import torch.distributed as dist

def train(step, total):
    dist.all_reduce(total)
    return total.item()

def load_data_for_ever():
    while True:
        time.sleep(1)

rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
for step in range(1, 1000):
    if step == 20 and rank == 1:
        load_data_for_ever()
    train(step, torch.ones(1, device="cuda"))
    if rank == 0:
        print(f"step: {step} loss: 1.0", flush=True)
"""


def dump() -> dict[int, list[str]]:
    """Return the names of the calls of each rank, innermost first, as `chartgen stacks` reads them in a pod."""
    argv = [sys.executable, pod_stacks.__file__]
    found = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    assert not found["missing"], "py-spy is not installed"
    return {each["rank"]: [frame["name"] for frame in main(each)["frames"]] for each in found["ranks"]}


def main(rank: dict[str, Any]) -> Any:
    return next(each for each in rank["threads"] if each["thread_name"] == "MainThread")


def test_a_rank_that_does_not_come_is_seen_and_its_run_ended(tmp_path: Path) -> None:
    needs(2, with_megatron=False)
    values = {
        "launcher": "torchrun",
        "nodes": 1,
        "gpusPerNode": 2,
        "storage": {"data": {"from": "pvc://data"}, "outputs": {"from": "pvc://outputs"}},
        "run": {"hangMinutes": 1},
        "launchers": {"torchrun": {"program": "/etc/chartgen/deadlock.py", "files": {"deadlock.py": PROGRAM.lstrip()}}},
    }
    file = tmp_path / "values.json"
    file.write_text(json.dumps(values))
    run = execute(CHART, file, tmp_path / "root", tmp_path / "hang.log")
    run.wait_for(lambda: "step: 19 " in run.log)
    time.sleep(3)
    stacks = dump()
    assert "train" in stacks[0]
    assert "load_data_for_ever" in stacks[1]
    began = time.monotonic()
    assert run.end(150) == 75, run.log[-3000:]
    after = time.monotonic() - began
    assert "no step for 1 min" in run.log
    for name in ("in train", "in load_data_for_ever"):
        assert name in run.log, run.log[-3000:]
    dumps = sorted((tmp_path / "root").rglob("blackbox/nccl_trace_rank_*"))
    assert [dump.name[-1] for dump in dumps] == ["0", "1"]
    argv = [sys.executable, "-m", "chartgen", "why", *map(str, dumps), "--output", "json"]
    verdict = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    show(json.dumps(verdict)[:1500])
    assert verdict["rank"] == 1
    show(f"ended {after + 3:.0f} s after its last step; py-spy: {stacks}")
