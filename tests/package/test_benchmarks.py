"""The scripts of `make bench` do not rot between its runs."""

from __future__ import annotations

import os
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chartgen.rehearsal.controlplane import ControlPlane

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_benchmark_finds_what_it_measures(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    assert runpy.run_path(str(script), run_name="imported")["__doc__"]


def benchmark(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names of a script."""
    monkeypatch.syspath_prepend(FOLDER)
    for variable in ("CHARTGEN_HELM", "CHARTGEN_CACHE", "KUBECONFIG"):  # the scripts set them
        monkeypatch.setenv(variable, os.environ.get(variable, ""))
    return runpy.run_path(str(FOLDER / f"{name}.py"), run_name="imported")


@pytest.mark.full
def test_logs_are_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(row.measured > 0 for row in benchmark("metrics", monkeypatch)["measure"](tmp_path, 200_000))


@pytest.fixture
def empty_plane(built_engines: None) -> Iterator[ControlPlane]:  # noqa: ARG001
    """A control plane on which a script starts what it needs."""
    with ControlPlane() as running:
        yield running


@pytest.mark.full
@pytest.mark.engines
def test_installs_are_measured(empty_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(row.measured > 0 for row in benchmark("install", monkeypatch)["measure_on"](empty_plane, tmp_path, 1))


@pytest.mark.full
@pytest.mark.engines
def test_status_is_measured(empty_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    status = benchmark("status", monkeypatch)
    status["fill"](empty_plane, 4)
    assert all(row.measured > 0 for row in status["measure"](empty_plane, 1))


@pytest.mark.full
@pytest.mark.helm
def test_lint_and_commands_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, lint = benchmark("bench", monkeypatch), benchmark("lint", monkeypatch)
    rows = [*bench["measure_commands"](1), *bench["measure_compose"](1), *lint["measure"](1)]
    assert all(row.measured > 0 for row in rows)
