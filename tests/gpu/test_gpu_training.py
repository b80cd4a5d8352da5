"""Real training by the start script of a rendered chart, on real GPUs: figures, speed, signals, failures."""

from __future__ import annotations

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from real_gpus import MODEL, TINY, Run, execute, launch, needs, ranks, show, values

CHART = "onprem-p8000"
CHARTGEN = (sys.executable, "-m", "chartgen")
MEASURED = 12  # the last iterations, after those that warm up
_MILLISECONDS = re.compile(r"elapsed time per iteration \(ms\): ([\d.]+)")


def pace(run: Run) -> float:
    """Median of the time of an iteration, in milliseconds."""
    return statistics.median([float(text) for text in _MILLISECONDS.findall(run.log)][-MEASURED:])


def readout(log: Path, file: Path) -> dict[str, object]:
    argv = [*CHARTGEN, "metrics", str(log), "--target", CHART, "-f", str(file)]
    done = subprocess.run([*argv, "--output", "json"], capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("count", [1, 2, 4])
def test_chart_trains_as_fast_as_plain_torchrun(tmp_path: Path, count: int) -> None:
    needs(count)
    file = values(tmp_path, MODEL, {"nodes": 1, "gpusPerNode": count, "steps": 16, "checkpoint": {"enabled": False}})
    chart = execute(CHART, file, tmp_path / "root", tmp_path / "chart.log")
    assert chart.end() == 0, chart.log[-3000:]
    found = readout(chart.path, file)
    assert found["steps"] == {"logged": 16, "counted": 16, "last": 16, "planned": 16}
    ours, theirs = found["tflopsPerGpu"]["causal"], found["loggedTflopsPerGpu"]  # type: ignore[index]
    assert ours == pytest.approx(theirs, rel=0.01)
    shown = subprocess.run(
        [*CHARTGEN, "exec", CHART, "-f", str(file), "--root", str(tmp_path / "root"), "--dry-run", "--output", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    planned = json.loads(shown.stdout)
    argv = ["torchrun", "--standalone", f"--nproc-per-node={count}", *planned["argv"][2:]]
    plain = launch(argv, tmp_path / "plain.log", CUDA_DEVICE_MAX_CONNECTIONS="1")
    assert plain.end() == 0, plain.log[-3000:]
    ratio = pace(chart) / pace(plain)
    show(f"GPUs {count}: chart {pace(chart)} ms, torchrun {pace(plain)} ms, ratio {ratio:.4f}, TFLOPS {ours} {theirs}")
    assert ratio == pytest.approx(1.0, abs=0.01)


def test_sigterm_saves_and_a_second_start_resumes(tmp_path: Path) -> None:
    needs(1)
    sizes = {"nodes": 1, "gpusPerNode": 1, "steps": 3000, "checkpoint": {"enabled": True, "interval": 100000}}
    # torch's own Adam, which is used without Apex and Transformer Engine, cannot be loaded into a distributed optimizer
    file = values(tmp_path, TINY, sizes, {"parallelism": {"distributedOptimizer": False}})
    first = execute(CHART, file, tmp_path / "root", tmp_path / "first.log")
    first.wait_for(lambda: len(first.losses) > 30)
    first.process.send_signal(signal.SIGTERM)
    stopped = time.monotonic()
    assert first.end(60) == 143, first.log[-3000:]
    show(f"ended {time.monotonic() - stopped:.1f} s after SIGTERM")
    assert "exiting program after receiving SIGTERM" in first.log
    (saved,) = re.findall(r"successfully saved checkpoint from iteration +(\d+)", first.log)
    assert int(saved) == max(first.losses)

    second = execute(CHART, file, tmp_path / "root", tmp_path / "second.log")
    second.wait_for(lambda: len(second.losses) > 30)
    second.process.send_signal(signal.SIGTERM)
    assert second.end(60) == 143
    assert min(second.losses) == int(saved) + 1
    last = statistics.mean([*first.losses.values()][-10:])
    assert statistics.mean([*second.losses.values()][:10]) == pytest.approx(last, abs=0.3)


def test_a_killed_rank_ends_the_run_and_is_named_last(tmp_path: Path) -> None:
    needs(2)
    file = values(tmp_path, TINY, {"nodes": 1, "gpusPerNode": 2, "steps": 100000, "checkpoint": {"enabled": False}})
    run = execute(CHART, file, tmp_path / "root", tmp_path / "log")
    run.wait_for(lambda: len(run.losses) > 3)
    os.kill(ranks(tmp_path / "root")[1], signal.SIGKILL)
    killed = time.monotonic()
    assert run.end(60) == 1
    show(f"ended {time.monotonic() - killed:.1f} s after the kill", *run.log.splitlines()[-12:])
    last = "\n".join(run.log.splitlines()[-8:])
    assert re.search(r"rank +: 1 \(local_rank: 1\)\n +exitcode +: -9", last)


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ({"data": {"name": "absent"}}, r"absent_text_document"),
        ({"tokenizer": {"kind": "huggingface", "path": "/data/absent"}}, r"/data/absent"),
    ],
    ids=["data", "tokenizer"],
)
def test_missing_files_end_the_run_and_are_named(tmp_path: Path, part: dict[str, object], line: str) -> None:
    needs(1)
    sizes = {"nodes": 1, "gpusPerNode": 1, "steps": 5, "checkpoint": {"enabled": False}}
    run = execute(CHART, values(tmp_path, TINY, sizes, part), tmp_path / "root", tmp_path / "log")
    assert run.end(120) == 1
    show(*run.log.splitlines()[-60:])
    assert re.search(rf"Error.*{line}", run.log)


def test_a_gpu_without_memory_ends_the_run_and_says_so(tmp_path: Path) -> None:
    needs(1)
    import torch  # type: ignore[import-not-found]

    free, _ = torch.cuda.mem_get_info(0)
    taken = torch.empty(free - 1_500_000_000, dtype=torch.uint8, device="cuda:0")
    sizes = {"nodes": 1, "gpusPerNode": 1, "steps": 5, "checkpoint": {"enabled": False}}
    run = execute(CHART, values(tmp_path, MODEL, sizes), tmp_path / "root", tmp_path / "log")
    code = run.end(120)
    del taken
    torch.cuda.empty_cache()
    assert code == 1
    show(*run.log.splitlines()[-40:])
    assert re.search(r"OutOfMemoryError: CUDA out of memory", run.log)
