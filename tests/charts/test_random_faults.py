"""Random faults of a run whose machines start again as a JobSet's do: each resumes, or ends with its cause.

The start scripts are the chart's; the program is small, saves and resumes. /dev/full is a disk that is full.
"""

from __future__ import annotations

import json
import random
import re
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

import faulty_run
import pytest
from fake_torchrun import install
from pod_runner import TARGET, Machine
from rendered import NAMESPACE, RELEASE, Objects
from torches import spares_python
from userlib import composed, write

from chartgen.data.exits import final_exits
from chartgen.helm.manifests import objects, render
from chartgen.metrics.read.log import read_logs
from chartgen.metrics.read.pauses import name_causes, text_logs
from chartgen.metrics.report_data import Wanted, read_out
from chartgen.releases.why.explanation import explain_files, explain_lines

STEPS, INTERVAL = 30, 5
# What `metrics` names as the cause of a restart after steps.
CAUSES = {"kill": "killed", "stop": "no-step", "error": "another-rank"}
# The fault is one that happens once, or one that every start meets again.
PROGRAM = """\
import json, os, pathlib, signal, socket, sys
fault, at, folder = os.environ["FAULT"], int(os.environ["AT"]), pathlib.Path(os.environ["CHECKPOINT_DIRECTORY"])
struck = pathlib.Path(os.environ["RUN_DIRECTORY"], "struck")
if fault == "port":
    socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
saved = sorted(folder.glob("step-*"))
text = saved[-1].read_text() if saved else "0"
if not text:
    raise RuntimeError("PytorchStreamReader failed reading zip archive: failed finding central directory")
first = int(text)
for step in range(first + 1, 31):
    sys.stdout.write(f"step: {step} loss: 1.0 memory: 1.00GiB(1.25%)\\n")
    sys.stdout.flush()
    strikes = step == at and not struck.exists()
    if strikes:
        struck.touch()
    if strikes and fault in ("kill", "stop"):
        os.kill(os.getpid(), signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
    if strikes and fault == "error":
        raise RuntimeError("NCCL error: remote process exited or there was a network error")
    if strikes and fault == "corrupt":
        folder.joinpath("step-99").touch()
        sys.exit(1)
    if step == at and fault == "nan":
        sys.exit(17)
    if step % 5 == 0:
        full = fault == "disk" and struck.exists()
        pathlib.Path("/dev/full" if full else folder / f"step-{step:02}").write_text(str(step))
"""
# What becomes of each: the exit code of the run, and the cause that `why` finds; None = it resumes and completes.
ENDS: dict[str, tuple[int, str] | None] = {
    "kill": None,
    "stop": None,
    "error": None,
    "port": None,
    "disk": (93, "disk-full"),
    "corrupt": (93, "bad-checkpoint"),
    "nan": (17, "not-a-number"),
}


def made(folder: Path) -> Objects:
    write(folder, {"targets/lab.yaml": TARGET.replace("workload: job\n", "workload: jobset\n")})
    own = {"image": "example.com/own:1", "program": "/etc/chartgen/own.py", "files": {"own.py": PROGRAM}}
    values: dict[str, Any] = {
        "launcher": "torchrun", "nodes": 1, "gpusPerNode": 1, "launchers": {"torchrun": own},
        "storage": {"outputs": {"from": "pvc://results"}}, "checkpoint": {"enabled": True}, "run": {"hangMinutes": 3},
    }  # fmt: skip
    return objects(render(composed(folder, "lab"), RELEASE, NAMESPACE, values))


@pytest.fixture(scope="module")
def run_objects(tmp_path_factory: pytest.TempPathFactory) -> Objects:
    return made(tmp_path_factory.mktemp("lab"))


@dataclass(frozen=True)
class Outcome:
    """How a run ended: its exit code, the first and the last step of each attempt, and its logs."""

    code: int
    attempts: list[list[int]]
    logs: list[Path]


def stamped(machine: Machine, found: Objects, variables: dict[str, str]) -> tuple[int, str]:
    """Run a machine to its end; return its exit code, and its log as `kubectl logs --timestamps` shows it."""
    with machine.start(found, variables) as process:
        assert process.stdout
        log = "".join(f"{datetime.now(timezone.utc).isoformat()} {line}" for line in process.stdout)
    return process.returncode, log


def live(found: Objects, folder: Path, fault: str, source: random.Random) -> Outcome:
    """Run a machine until its run is completed or ends, as a JobSet does, which numbers the attempts."""
    install(folder)
    code, attempts, logs, at = 0, [], [], source.randint(6, STEPS - 1)
    machine = Machine(
        folder, {"PYTHONPATH": str(folder / "modules"), "FAULT": fault, "AT": str(at), "HANG_SECONDS": "1"}
    )
    with ExitStack() as taken:
        server = taken.enter_context(socket.create_server(("127.0.0.1", 0)))
        port, blocked = str(server.getsockname()[1]), source.randint(1, 2) if fault == "port" else 0
        for attempt in range(10):
            if attempt == blocked:
                server.close()
            code, log = stamped(machine, found, {"RESTART_ATTEMPT": str(attempt), "PORT": port})
            logs.append(folder / f"attempt-{attempt}.log")
            logs[-1].write_text(log)
            attempts.append([int(step) for step in re.findall(r"step: (\d+) ", log)])
            if code in (0, *final_exits()):
                break
    return Outcome(code, attempts, logs)


@pytest.mark.parametrize("seed", [*range(20), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(20, 120))])
def test_a_fault_is_resumed_or_ends_the_run_with_its_cause(run_objects: Objects, tmp_path: Path, seed: int) -> None:
    fault = list(ENDS)[seed % len(ENDS)]
    end = live(run_objects, tmp_path, fault, random.Random(seed))  # noqa: S311
    text = json.dumps([path.read_text()[-2000:] for path in end.logs])
    assert len(end.logs) <= 5, "a restart loop"
    if expected := ENDS[fault]:
        assert (end.code, explain_files(end.logs[:-1] or end.logs).cause) == expected, text
        return
    assert end.code == 0, text
    steps = [attempt for attempt in end.attempts if attempt]
    assert steps[-1][-1] == STEPS
    for before, after in pairwise(steps):
        assert before[-1] - INTERVAL <= after[0] <= before[-1] + 1, "more is lost than an interval"
    log = read_logs([*map(str, end.logs)])
    name_causes(log, text_logs([*map(str, end.logs)]), explain_lines)
    restarts = read_out(log, Wanted(window="all")).timeline.restarts
    assert [each.cause for each in restarts] == [CAUSES.get(fault)] * (len(steps) - 1)
    for each in restarts:
        assert each.lost <= INTERVAL
        assert each.detection_seconds is not None
        assert each.detection_seconds + (each.restart_seconds or 0) == pytest.approx(each.pause_seconds)


@pytest.mark.full
def test_eight_machines_and_a_spare_outlive_their_faults() -> None:
    """One fault of each kind but the taken port, which takes minutes; tests/programs/faults.py does more of them."""
    faults = [fault for fault in faulty_run.FAULTS if fault != "taken port"]
    found = faulty_run.live(faults, spares_python(), "sockets", random.Random(31), lambda _: None)  # noqa: S311
    assert [each for each in found if not each.is_right] == []
