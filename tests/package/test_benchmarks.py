"""The benchmarks on a control plane of their own run at small sizes; their budgets are for `make bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.engines
@pytest.mark.parametrize(
    ("name", "sizes"), [("install", {"ROUNDS": 1}), ("status", {"MACHINES": 4, "OTHERS": 1, "ROUNDS": 1})]
)
def test_a_benchmark_of_the_cluster_runs(name: str, sizes: dict[str, int]) -> None:
    code = f"import {name} as benchmark; vars(benchmark).update({sizes}); benchmark.main()"
    run = subprocess.run([sys.executable, "-c", code], cwd=FOLDER, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert f"chartgen {name}" in run.stdout
