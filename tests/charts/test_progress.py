"""Restarts without progress: three without a new checkpoint end the run of a JobSet with a final exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pod_runner import TARGET, Machine
from rendered import NAMESPACE, RELEASE, Objects, one
from userlib import composed, write

from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values

OWN = ("launcher=torchrun", "launchers.torchrun.image=example.com/own:1", "launchers.torchrun.program=/own.py")


def made(folder: Path, *sets: str) -> Objects:
    write(folder, {"targets/lab.yaml": TARGET.replace("workload: job\n", "workload: jobset\n")})
    values = load_values((), set_values=(*OWN, "nodes=1", "gpusPerNode=1", "storage.outputs.from=pvc://results", *sets))
    return objects(render(composed(folder, "lab"), RELEASE, NAMESPACE, values.data))


@pytest.fixture
def attempt(tmp_path: Path) -> Callable[[int], int]:
    """Starts the run's machine as one of its attempts, in which the program fails, and returns the exit code."""
    found = made(tmp_path / "lab", "checkpoint.enabled=true", "run.maxRestarts=9")
    machine = Machine(tmp_path)
    machine.program("torchrun", "sys.exit(1)")
    return lambda number: machine.finish(found, {"RESTART_ATTEMPT": str(number)})[0]


def test_the_fourth_attempt_with_the_same_checkpoints_ends_the_run(attempt: Callable[[int], int]) -> None:
    assert [attempt(number) for number in (0, 1, 2, 3)] == [1, 1, 1, 93]


def test_an_attempt_that_was_preempted_counts_once(attempt: Callable[[int], int]) -> None:
    assert [attempt(number) for number in (0, 0, 0, 0, 1)] == [1] * 5


def test_a_new_checkpoint_is_progress(attempt: Callable[[int], int], tmp_path: Path) -> None:
    assert [attempt(number) for number in (0, 1, 2)] == [1] * 3
    (checkpoints,) = tmp_path.rglob("checkpoints")
    (checkpoints / "iter_0001000").mkdir()
    assert [attempt(number) for number in (3, 4, 5, 6)] == [1, 1, 1, 93]


def test_few_restarts_are_counted_by_the_controller_alone(tmp_path: Path) -> None:
    found = made(tmp_path, "checkpoint.enabled=true", "run.maxRestarts=3")
    assert "RESTART_ATTEMPT" not in str(one("ConfigMap", found))
