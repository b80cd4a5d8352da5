"""`chartgen exec`: a rendered pod's program on this machine; machines of one run, signals, failures, the next start."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from nccllogs import TCP, efa
from procs import gone, mentioning
from rendered import NAMESPACE, rendered
from standin import install
from userlib import chartgen

from chartgen.errors import UsageError
from chartgen.execution import plan_execution


@dataclass
class Machine:
    """`chartgen exec` of one pod, with its output in a file."""

    process: subprocess.Popen[bytes]
    path: Path

    @property
    def log(self) -> str:
        return self.path.read_text()

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 30
        while text not in self.log:
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)

    def end(self) -> int:
        return self.process.wait(timeout=40)


@dataclass
class Run:
    """Two machines of the EFA chart, with 2 processes each."""

    folder: Path
    trainer: Path

    def start(self, rank: int, *sets: str, said: str = efa(32), **variables: str) -> Machine:
        (self.folder / "said").write_text(said)
        given = {"GPUS_PER_NODE": "2", "CHARTGEN_NCCL_LOG": str(self.folder / "said"), **variables}
        argv = [sys.executable, "-m", "chartgen", "exec", "eks-p5", "--workload", "job", "--root", str(self.folder)]
        for text in (
            "nodes=2",
            f"launchers.megatron-lm.program={self.trainer}",
            f"network.plugin={self.folder}",
            *sets,
        ):
            argv += ["--set", text]
        for name, value in given.items():
            argv += ["--env", f"{name}={value}"]
        path = self.folder / f"machine-{rank}.log"
        with path.open("wb") as file:
            env = {**os.environ, "PYTHONPATH": str(self.folder / "modules")}
            process = subprocess.Popen([*argv, "--rank", str(rank)], env=env, stdout=file, stderr=subprocess.STDOUT)
        return Machine(process, path)

    def both(self, *sets: str, **options: str) -> list[Machine]:
        return [self.start(rank, *sets, **options) for rank in (0, 1)]


@pytest.fixture
def two(tmp_path: Path) -> Run:
    (tmp_path / "libnccl-net.so").touch()
    return Run(tmp_path, install(tmp_path))


def test_machines_meet_compare_and_train(two: Run) -> None:
    machines = two.both("steps=2", "checkpoint.enabled=true", "storage.outputs.from=pvc://results")
    assert [machine.end() for machine in machines] == [0, 0], machines[0].log
    for rank, machine in enumerate(machines):
        lines = machine.log.splitlines()
        assert lines[:2] == [f"> mounts below {two.folder}", "transport: EFA as promised, 32 adapters"]
        expected = {f"rank {2 * rank + local} iteration {step}" for local in (0, 1) for step in (1, 2)}
        assert set(lines[2:]) == expected


def test_no_program_starts_without_the_promised_network(two: Run) -> None:
    machines = two.both("steps=2", said=TCP)
    assert [machine.end() for machine in machines] == [78, 78]
    for rank, machine in enumerate(machines):
        found = re.fullmatch(
            r"transport: promised EFA, NCCL uses Socket on eth0: NET/Plugin not found: libnccl-net\.so; see (\S+)",
            machine.log.splitlines()[-1],
        )
        assert found
        assert found[1].startswith(f"{two.folder}/outputs/default/my-run/")
        assert found[1].endswith(f"/transport/machine-{rank}.log")
        assert Path(found[1]).read_text() == TCP
        assert "iteration" not in machine.log


def test_sigterm_waits_for_a_long_save_and_the_next_start_goes_on(two: Run) -> None:
    # three times what the stand-in of torchrun would wait
    machines = two.both("steps=100000", SAVE_SECONDS="3")
    for machine in machines:
        machine.wait_for("iteration 5")
        machine.process.send_signal(signal.SIGTERM)
    assert [machine.end() for machine in machines] == [143, 143]
    saved = [int(step) for machine in machines for step in re.findall(r"saved (\d+)", machine.log)]
    assert len(saved) == 4
    again = two.both(f"steps={max(saved) + 2}")
    assert [machine.end() for machine in again] == [0, 0]
    first = [int(re.findall(rf"rank {rank} iteration (\d+)", again[rank // 2].log)[0]) for rank in range(4)]
    assert sorted(first) == sorted(step + 1 for step in saved)


@pytest.mark.parametrize(("seconds", "told"), [("2", False), ("60", True)])
def test_torchrun_may_wait_for_the_other_machines_but_not_for_long(two: Run, seconds: str, *, told: bool) -> None:
    machine = two.start(0, "steps=100000", "nodes=1", OTHERS_SECONDS=seconds)
    machine.wait_for("iteration 2")
    machine.process.send_signal(signal.SIGTERM)
    # what torchrun ends with when it gets SIGTERM too, 1, tells nothing of the processes, which have saved
    assert machine.end() == 143
    assert ("torchrun got SIGTERM" in machine.log) is told
    assert "rank 1 saved" in machine.log


def test_a_save_that_fails_is_no_stop(two: Run) -> None:
    machine = two.start(0, "steps=100000", "nodes=1", SAVE_SECONDS="nan")
    machine.wait_for("iteration 2")
    machine.process.send_signal(signal.SIGTERM)
    assert machine.end() == 1
    assert "ValueError" in machine.log


def test_after_the_grace_period_nothing_is_left(two: Run) -> None:
    machine = two.start(0, "steps=100000", "nodes=1", "run.gracePeriodSeconds=1", SAVE_SECONDS="600")
    machine.wait_for("iteration 2")
    machine.process.send_signal(signal.SIGTERM)
    assert machine.end() == 137
    assert mentioning(str(two.trainer)) == []


def test_a_killed_rank_ends_the_run_and_is_named_last(two: Run) -> None:
    machine = two.start(0, "steps=100000", "nodes=1")
    machine.wait_for("rank 1 iteration 2")
    pids = {
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"python3\0-u\0" + str(two.trainer).encode() in path.read_bytes()
    }
    victim = next(pid for pid in pids if b"\0RANK=1\0" in b"\0" + Path(f"/proc/{pid}/environ").read_bytes())
    os.kill(victim, signal.SIGKILL)
    assert machine.end() == 1
    assert gone(sorted(pids))
    assert machine.log.splitlines()[-3:-1] == ["  rank      : 1 (local_rank: 1)", f"  exitcode  : -9 (pid: {victim})"]


def test_a_missing_data_set_ends_the_run_and_is_named(two: Run) -> None:
    machine = two.start(0, "steps=2", "nodes=1", "data.name=absent", "storage.data.from=pvc://data")
    assert machine.end() == 1
    assert f"FileNotFoundError: {two.folder}/data/absent_text_document.idx is missing" in machine.log


# -- what is planned


def test_what_a_pod_finds(tmp_path: Path) -> None:
    found = rendered("env.TEXT=$$HOME", "nodes=4", name="gke-a3high", files=())
    planned = plan_execution(found, tmp_path, rank=3, overrides={"NNODES": "2"})
    run = planned.environment["RUN_DIRECTORY"].rpartition("/")[2]
    assert planned.argv[:2] == ("bash", f"{tmp_path}/etc/chartgen/start.sh")
    assert {name: planned.environment[name] for name in ("NODE_RANK", "NNODES", "MASTER_ADDR", "TEXT")} == {
        "NODE_RANK": "3",
        "NNODES": "2",
        "MASTER_ADDR": "127.0.0.1",
        "TEXT": "$$HOME",
    }
    assert planned.environment["RUN_DIRECTORY"] == f"{tmp_path}/outputs/{NAMESPACE}/my-run/{run}"
    assert planned.folders == tuple(
        tmp_path / name for name in ("usr/local/tcpx", "run/tcpx", "data", "outputs", "scratch")
    )
    script = planned.files[tmp_path / "etc/chartgen/start.sh"]
    assert f"plugin={tmp_path}/usr/local/tcpx/lib64" in script
    assert f" bash {tmp_path}/etc/chartgen/rank.sh " in script
    assert planned.grace == 120


def test_secrets_come_from_the_environment_and_are_never_shown(two: Run) -> None:
    flags = ("--set", "secretEnv.HF_TOKEN.secretName=hf", "--set", "secretEnv.HF_TOKEN.key=token")
    result = chartgen("exec", "onprem-p8000", "--dry-run", *flags, env={"HF_TOKEN": "hf_very_secret"})
    assert "# HF_TOKEN comes from a Secret: set it in the environment\n" in result.output
    assert "hf_very_secret" not in result.output
    result = chartgen("exec", "onprem-p8000", "--root", two.folder, *flags, env={"HF_TOKEN": None})
    assert result.exit_code == 1
    line = "error: HF_TOKEN comes from a Secret, which this machine lacks; set it in the environment of this command"
    assert result.stderr.splitlines()[-1] == line


def test_dry_run_makes_nothing_and_can_be_read_by_programs(tmp_path: Path) -> None:
    root = tmp_path / "root"
    shown = chartgen("exec", "onprem-p8000", "--root", root, "--dry-run", "--output", "json")
    facts = json.loads(shown.stdout)
    assert facts["argv"][:2] == ["bash", f"{root}/etc/chartgen/start.sh"]
    assert facts["folders"] == [str(root / name) for name in ("data", "outputs", "scratch")]
    assert sorted(facts["files"]) == [f"{root}/etc/chartgen/{name}" for name in ("rank.sh", "start.sh")]
    assert not root.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("onprem-p8000", "--rank", "1"), "there is no rank 1; the run has 1 pods, counted from 0"),
        (("onprem-p8000", "--env", "A"), "--env A: give it as NAME=VALUE"),
        (
            ("oke-h100",),
            "mpirun starts the processes of a Volcano Job from another pod, by ssh; only other kinds run here",
        ),
    ],
)
def test_what_cannot_run_is_refused(arguments: tuple[str, ...], message: str) -> None:
    result = chartgen("exec", *arguments, "--dry-run")
    assert (result.exit_code, result.stderr) == (2, f"error: {message}\n")


def test_a_setup_chart_runs_nothing() -> None:
    with pytest.raises(UsageError, match="these objects start no program"):
        plan_execution([], Path("/nowhere"))
