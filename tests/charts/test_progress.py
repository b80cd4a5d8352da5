"""Restarts without progress: three without a new checkpoint end the run of a JobSet with a final exit code."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from fake_torchrun import install
from pod_runner import TARGET, Machine
from rendered import NAMESPACE, RELEASE, Objects, one
from selection import cases
from userlib import composed, write

from chartgen.data.exits import exit_codes, final_exits
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values, merge_values

OWN = ("launcher=torchrun", "launchers.torchrun.image=example.com/own:1", "launchers.torchrun.program=/own.py")


def made(folder: Path, *sets: str, kind: str = "jobset", own: tuple[str, ...] = OWN, launchers: Any = None) -> Objects:
    target = TARGET.replace("workload: job\n", f"workload: {kind}\n").replace("[megatron-lm", "[nemo-rl, megatron-lm")
    target = target.replace("[nvidia", "[volcano-queue, nvidia") if kind == "volcano-job" else target
    write(folder, {"targets/lab.yaml": target if kind == "rayjob" else target.replace("nemo-rl, ", "")})
    values = load_values((), set_values=(*own, "nodes=1", "gpusPerNode=1", "storage.outputs.from=pvc://results", *sets))
    data = merge_values(values.data, {"launchers": {"torchrun": launchers or {}}})
    return objects(render(composed(folder, "lab"), RELEASE, NAMESPACE, data))


def of_kind(folder: Path, kind: str, *, saves: bool) -> Objects:
    own = ("launcher=nemo-rl", "launchers.nemo-rl.model=/data/model") if kind == "rayjob" else OWN
    return made(folder, f"checkpoint.enabled={str(saves).lower()}", kind=kind, own=own)


def value_at(found: Objects, path: str) -> Any:
    """Return the value at a path of an object; the restarts in a script, or in the variables of a master."""
    if path.startswith("--"):
        return re.findall(f"{path}([0-9]+)", str(found))[0]
    for each in found:
        value: Any = each
        for word in path.split("."):
            value = value[int(word)] if isinstance(value, list) else value.get(word)
            if value is None:
                break
        else:
            return value if isinstance(value, int) else {row["name"]: row.get("value") for row in value}["MPI_RESTARTS"]
    return None


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


def test_what_cannot_be_written_is_no_progress(attempt: Callable[[int], int], tmp_path: Path) -> None:
    assert attempt(0) == 1
    (record,) = tmp_path.rglob("starts")
    record.unlink()
    record.mkdir()
    assert [attempt(number) for number in (1, 2, 3)] == [1, 1, 93]
    record.rmdir()
    os.mkfifo(record)
    assert attempt(4) == 93


@pytest.mark.threat(19)
def test_what_another_tenant_left_neither_delays_a_start_nor_gets_its_record(
    attempt: Callable[[int], int], tmp_path: Path
) -> None:
    assert attempt(0) == 1
    (checkpoints,), (record,) = tmp_path.rglob("checkpoints"), tmp_path.rglob("starts")
    os.mkfifo(checkpoints / "latest")
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    record.unlink()
    record.symlink_to(victim)
    assert attempt(1) == 1
    assert victim.read_text() == "theirs"
    record.unlink()
    with record.open("w") as file:
        file.truncate(10 << 30)
        file.write("0" * (1 << 20))
    assert [attempt(number) for number in (1, 3)] == [1, 93], "it is not read"


@pytest.mark.threat(19)
@pytest.mark.parametrize("name", ["own", "checkpoints"])
def test_no_link_of_another_tenant_leads_out_of_the_storage(
    name: str, attempt: Callable[[int], int], tmp_path: Path
) -> None:
    assert attempt(0) == 1
    (checkpoints,), (record,) = tmp_path.rglob("checkpoints"), tmp_path.rglob("starts")
    linked = record.parent if name == "own" else checkpoints
    linked.rename(linked.with_name("inside"))
    linked.symlink_to("inside")
    assert attempt(1) == 1, "within the storage it may lead where its owner likes"
    linked.unlink()
    with TemporaryDirectory(dir=Path.home()) as others:
        linked.symlink_to(others)
        assert attempt(2) == 1
        assert not [*Path(others).iterdir()]
        if name == "own":  # where the other folder cannot be made, neither was checked
            checkpoints.rename(checkpoints.with_name("old"))
            checkpoints.touch()
            assert attempt(3) == 1
            assert not [*Path(others).iterdir()]


def test_few_restarts_are_counted_by_the_controller_alone(tmp_path: Path) -> None:
    found = made(tmp_path, "checkpoint.enabled=true", "run.maxRestarts=3")
    assert "RESTART_ATTEMPT" not in str(one("ConfigMap", found))


# What a run gets whose values name no restarts, by kind: the path to it, and its value with and without checkpoints.
CHOSEN: dict[str, tuple[str, Any, Any]] = {
    "job": ("spec.backoffLimit", 0, 0),
    "jobset": ("spec.failurePolicy.maxRestarts", 101, 0),
    "trainjob": ("spec.template.spec.failurePolicy.maxRestarts", 101, 0),
    "volcano-job": ("spec.maxRetry", 102, 1),
    "mpijob": ("spec.mpiReplicaSpecs.Launcher.template.spec.containers.0.env", "101", "0"),
    "pytorchjob": ("--max-restarts=", "101", "0"),
    "rayjob": ("spec.backoffLimit", 3, 0),
}


@pytest.mark.parametrize("kind", CHOSEN)
def test_a_run_that_saves_restarts_without_a_value_as_its_kind_can(tmp_path: Path, kind: str) -> None:
    path, saving, other = CHOSEN[kind]
    for saves, expected in ((True, saving), (False, other)):
        found = of_kind(tmp_path / str(saves), kind, saves=saves)
        assert value_at(found, path) == expected
        scripts = str([each.get("data") for each in found])
        assert ("exit 93" in scripts) == (saves and kind not in ("job", "rayjob"))


@pytest.mark.parametrize("kind", CHOSEN)
def test_final_exit_codes_are_those_of_the_table_in_every_kind_that_has_rules(tmp_path: Path, kind: str) -> None:
    """KubeRay restarts whatever the exit code was (ray-operator v1.6.2, rayjob_controller.go)."""
    found, codes = of_kind(tmp_path, kind, saves=True), final_exits()
    assert codes == [17, 78, 93]
    words = " ".join(map(str, codes))
    text = str(found)
    shown = {
        "volcano-job": [f"{{'exitCode': {code}, 'action': 'TerminateJob'}}" for code in codes],
        "mpijob": [f'" 0 {words} "'],
        "pytorchjob": [f'" {words} "'],
        "rayjob": [],
    }.get(kind, [f"'operator': 'In', 'values': {codes}"])
    assert all(each in text for each in shown), text


# Appends a line for each start, and then fails with a code.
FAILS = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).open('a').write('x'); sys.exit(int(sys.argv[2]))"


def restarted(folder: Path, code: int, *sets: str) -> tuple[int, int]:
    """Run a PyTorchJob's machine, whose program fails with a code; return its exit code and the program's starts."""
    install(folder)
    starts = folder / "program-starts"
    given = {"program": "/etc/chartgen/own.py", "files": {"own.py": FAILS}, "args": [str(starts), str(code)]}
    own = (*OWN[:2], "rendezvous.backend=c10d")
    found = made(folder / "lab", "checkpoint.enabled=true", *sets, kind="pytorchjob", own=own, launchers=given)
    machine = Machine(folder, {"PYTHONPATH": str(folder / "modules")})
    done, _ = machine.finish(found)
    return done, len(starts.read_text())


def test_a_machine_that_is_not_fit_any_more_ends_instead_of_its_next_start(tmp_path: Path) -> None:
    report = Path(__file__).parents[1] / "data/nvidia-smi/h100.xml"
    body = f"print(open({str(report)!r}).read())\nsys.exit(os.path.exists({str(tmp_path / 'program-starts')!r}))"
    Machine(tmp_path).program("nvidia-smi", body)
    assert restarted(tmp_path, 3, "nodes=2", "network.transportCheck=off") == (69, 1)


@pytest.mark.parametrize("code", cases(exit_codes(), {137, 17}))
def test_torchrun_starts_again_after_every_code_that_is_not_final_until_there_is_no_progress(
    tmp_path: Path, code: int
) -> None:
    assert restarted(tmp_path, code, "run.hangMinutes=5") == ((code, 1) if code in final_exits() else (93, 3))
