"""The scripts of `make bench` do not rot between its runs."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_finds_what_it_measures(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    assert runpy.run_path(str(script), run_name="imported")["__doc__"]


@pytest.mark.full
@pytest.mark.helm
def test_lint_and_commands_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    for name in ("CHARTGEN_HELM", "CHARTGEN_CACHE"):  # lint.py sets them
        monkeypatch.setenv(name, os.environ.get(name, ""))
    bench, lint = (runpy.run_path(str(FOLDER / name), run_name="imported") for name in ("bench.py", "lint.py"))
    rows = [*bench["measure_commands"](1), *bench["measure_compose"](1), *lint["measure"](1)]
    assert all(row.measured > 0 for row in rows)
