"""The transport contract on real GPUs: two machines of the TCPXO chart, each with one GPU of this machine."""

from __future__ import annotations

import re
import time
from pathlib import Path

import profiles
from real_gpus import TINY, Run, execute, needs, show, values


def machines(folder: Path, *options: str) -> list[Run]:
    """Start both machines of a run on this one, which has no fabric plugin."""
    # the batch of the chart's 16 GPUs, which are two here
    file = values(folder, TINY, {"nodes": 2, "steps": 5, "checkpoint": {"enabled": False}, "batch": {"global": 16}})
    root = folder / "root"
    profile = root / "usr/local/nccl-plugin/lib64/nccl-env-profile.sh"
    profile.parent.mkdir(parents=True)
    # all but the GPUs: each machine of this test has one
    lines = profiles.script().splitlines(keepends=True)
    profile.write_text("".join(line for line in lines if "CUDA_VISIBLE_DEVICES" not in line))
    ldconfig = root / "bin/ldconfig"
    ldconfig.parent.mkdir()
    ldconfig.write_text("#!/bin/sh\n")
    ldconfig.chmod(0o755)
    here = ("GPUS_PER_NODE=1", "NCCL_NVLS_ENABLE=0")
    common = [part for pair in here for part in ("--env", pair)]
    return [
        execute(
            "gke-a3mega",
            file,
            root,
            folder / f"{rank}.log",
            *("--rank", str(rank), "--env", f"CUDA_VISIBLE_DEVICES={rank}", *common, *options),
        )
        for rank in (0, 1)
    ]


def test_without_its_plugin_the_tcpxo_chart_stops_with_one_line(tmp_path: Path) -> None:
    needs(2)
    began = time.monotonic()
    runs = machines(tmp_path)
    assert [run.end(120) for run in runs] == [78, 78], runs[0].log[-3000:]
    show(f"both machines ended after {time.monotonic() - began:.1f} s", *(run.log for run in runs))
    for rank, run in enumerate(runs):
        log = tmp_path / "root/outputs/default/my-run"
        (said,) = log.glob(f"*/transport/machine-{rank}.log")
        assert run.log.splitlines()[-1] == (
            "transport: promised TCPXO (FasTrak), NCCL uses Socket on eth0: NET/Plugin not found: libnccl-net.so;"
            f" see {said}"
        )
        assert "Using network Socket" in said.read_text()


def test_with_warn_the_run_trains_and_its_log_is_marked(tmp_path: Path) -> None:
    needs(2)
    began = time.monotonic()
    runs = machines(tmp_path, "--set", "network.transportCheck=warn")
    assert [run.end(180) for run in runs] == [0, 0], runs[0].log[-3000:]
    show(f"both machines ended after {time.monotonic() - began:.1f} s")
    for run in runs:
        assert re.search(
            r"^transport: warning: promised TCPXO \(FasTrak\), NCCL uses Socket on eth0: ", run.log, re.MULTILINE
        )
    assert max(runs[1].losses) == 5
