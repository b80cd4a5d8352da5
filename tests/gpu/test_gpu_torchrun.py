"""A user's own program under launcher torchrun, on real GPUs: its speed, its stop by SIGTERM, its second start."""

from __future__ import annotations

import json
import re
import signal
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from real_gpus import Run, execute, launch, needs, show

CHART = "onprem-p8000"
FSDP = Path(__file__).parents[2] / "values" / "fsdp.yaml"
CHARTGEN = (sys.executable, "-m", "chartgen")
SITE = {"storage": {"data": {"from": "pvc://data"}, "outputs": {"from": "pvc://outputs"}}}
# Steps of a third of a second, so that the GPU sets the pace and not the host.
SIZE = {"batch": {"micro": 64, "global": "64/gpu"}, "sequenceLength": 2048}
STEP = re.compile(r"^step: (\d+) loss: ([\d.]+) seconds: ([\d.]+)", re.MULTILINE)


def values(folder: Path, gpus: int, **more: Any) -> Path:
    path = folder / "values.json"
    path.write_text(json.dumps({**SITE, **SIZE, "nodes": 1, "gpusPerNode": gpus, **more}))
    return path


def steps(run: Run) -> dict[int, float]:
    """Seconds of each step."""
    return {int(step): float(seconds) for step, _, seconds in STEP.findall(run.log)}


def pace(run: Run) -> float:
    """Median of the seconds of a step, without those that warm up."""
    return statistics.median([seconds for step, seconds in steps(run).items() if step > 20])


def output(*words: str | Path) -> Any:
    argv = [*CHARTGEN, *map(str, words), "--output", "json"]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("count", [1, 2])
def test_chart_trains_as_fast_as_plain_torchrun(tmp_path: Path, count: int) -> None:
    needs(count, with_megatron=False)
    file = values(tmp_path, count, steps=120, checkpoint={"enabled": False, "interval": 1000})
    given = ("-f", str(file))
    chart = execute(CHART, FSDP, tmp_path / "root", tmp_path / "chart.log", *given)
    assert chart.end() == 0, chart.log[-3000:]
    found = output("metrics", chart.path, "--target", CHART, "-f", FSDP, *given)
    assert found["steps"]["last"] == 120
    argv = output("exec", CHART, "-f", FSDP, *given, "--root", tmp_path / "root", "--dry-run")["argv"][2:]
    own = [f"--checkpoints={tmp_path}/plain" if each.startswith("--checkpoints=") else each for each in argv]
    own = ["--resume=false" if each.startswith("--resume=") else each for each in own]
    plain = launch(["torchrun", "--standalone", f"--nproc-per-node={count}", *own], tmp_path / "plain.log")
    assert plain.end() == 0, plain.log[-3000:]
    ratio = pace(chart) / pace(plain)
    show(f"GPUs {count}: chart {pace(chart)} s, torchrun {pace(plain)} s, ratio {ratio:.4f}")
    assert ratio == pytest.approx(1.0, abs=0.01)


def test_sigterm_saves_and_a_second_start_resumes(tmp_path: Path) -> None:
    needs(2, with_megatron=False)
    given = ("-f", str(values(tmp_path, 2, steps=100000, checkpoint={"enabled": True, "interval": 100000})))
    first = execute(CHART, FSDP, tmp_path / "root", tmp_path / "first.log", *given)
    first.wait_for(lambda: len(steps(first)) > 30)
    first.process.send_signal(signal.SIGTERM)
    assert first.end(60) == 143, first.log[-3000:]
    (saved,) = re.findall(r"^saved step (\d+)$", first.log, re.MULTILINE)
    assert int(saved) == max(steps(first))
    second = execute(CHART, FSDP, tmp_path / "root", tmp_path / "second.log", *given)
    second.wait_for(lambda: len(steps(second)) > 30)
    second.process.send_signal(signal.SIGTERM)
    assert second.end(60) == 143
    assert min(steps(second)) == int(saved) + 1
    show(f"stopped after step {saved}, and the second start began with step {min(steps(second))}")
