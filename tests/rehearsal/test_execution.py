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
from typing import Any

import pytest
from fake_torchrun import install
from nccllogs import TCP, efa
from process_helpers import command_lines, gone, mentioning
from rendered import NAMESPACE, rendered
from userlib import chartgen

from chartgen.errors import ChartgenError, UsageError
from chartgen.rehearsal.local_pod import plan_execution, prepare_pod, run, start_process


@dataclass
class Machine:
    """`chartgen exec` of one pod, with its output in a file."""

    process: subprocess.Popen[bytes]
    path: Path

    @property
    def log(self) -> str:
        return self.path.read_text()

    def wait_for(self, *texts: str) -> None:
        """Wait until its log has all texts; the time only ends a test that would never end."""
        deadline = time.monotonic() + 120
        while not all(text in self.log for text in texts):
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)

    def end(self) -> int:
        return self.process.wait(timeout=120)


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
            "checkpoint.enabled=true",
            "storage.outputs.from=pvc://results",
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


def trains(*ranks: int) -> list[str]:
    """What ranks log once they train, and so have a handler for SIGTERM."""
    return [f"rank {rank} iteration 2" for rank in ranks]


@pytest.fixture
def two(tmp_path: Path) -> Run:
    (tmp_path / "libnccl-net.so").touch()
    return Run(tmp_path, install(tmp_path))


@pytest.mark.helm
def test_machines_meet_compare_and_train(two: Run) -> None:
    machines = two.both("steps=2")
    assert [machine.end() for machine in machines] == [0, 0], machines[0].log
    for rank, machine in enumerate(machines):
        lines = machine.log.splitlines()
        assert lines.pop(1).startswith("examine: no nvidia-smi here")
        assert lines[:2] == [f"> mounts below {two.folder}", "transport: EFA as promised, 32 adapters"]
        expected = {f"rank {2 * rank + local} iteration {step}" for local in (0, 1) for step in (1, 2)}
        assert set(lines[2:]) == expected


@pytest.mark.helm
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


@pytest.mark.helm
def test_sigterm_waits_for_a_long_save_and_the_next_start_goes_on(two: Run) -> None:
    # three times what the stand-in of torchrun would wait
    machines = two.both("steps=100000", SAVE_SECONDS="3")
    for number, machine in enumerate(machines):
        machine.wait_for(*trains(2 * number, 2 * number + 1))
        machine.process.send_signal(signal.SIGTERM)
    assert [machine.end() for machine in machines] == [143, 143]
    saved = [int(step) for machine in machines for step in re.findall(r"saved (\d+)", machine.log)]
    assert len(saved) == 4
    again = two.both(f"steps={max(saved) + 2}")
    assert [machine.end() for machine in again] == [0, 0]
    first = [int(re.findall(rf"rank {rank} iteration (\d+)", again[rank // 2].log)[0]) for rank in range(4)]
    assert sorted(first) == sorted(step + 1 for step in saved)


@pytest.mark.helm
@pytest.mark.parametrize(("seconds", "told"), [("0.5", False), ("60", True)])
def test_torchrun_may_wait_for_the_other_machines_but_not_for_long(two: Run, seconds: str, *, told: bool) -> None:
    machine = two.start(0, "steps=100000", "nodes=1", OTHERS_SECONDS=seconds)
    machine.wait_for(*trains(0, 1))
    machine.process.send_signal(signal.SIGTERM)
    # what torchrun ends with when it gets SIGTERM too, 1, tells nothing of the processes, which have saved
    assert machine.end() == 143
    assert ("torchrun got SIGTERM" in machine.log) is told
    assert "rank 1 saved" in machine.log


@pytest.mark.helm
def test_a_save_that_fails_is_no_stop(two: Run) -> None:
    machine = two.start(0, "steps=100000", "nodes=1", SAVE_SECONDS="nan")
    machine.wait_for(*trains(0, 1))
    machine.process.send_signal(signal.SIGTERM)
    assert machine.end() == 1
    assert "ValueError" in machine.log


@pytest.mark.helm
def test_after_the_grace_period_nothing_is_left(two: Run) -> None:
    machine = two.start(0, "steps=100000", "nodes=1", "run.gracePeriodSeconds=1", SAVE_SECONDS="600")
    machine.wait_for(*trains(0, 1))
    machine.process.send_signal(signal.SIGTERM)
    assert machine.end() == 137
    assert mentioning(str(two.trainer)) == []


@pytest.mark.helm
@pytest.mark.parametrize("nohup", [False, True])
def test_the_end_of_the_terminal_stops_the_program_unless_it_is_ignored(two: Run, *, nohup: bool) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if nohup else signal.SIG_DFL)  # programs inherit it
    try:
        machine = two.start(0, "steps=100000", "nodes=1")
    finally:
        signal.signal(signal.SIGHUP, before)
    machine.wait_for(*trains(0, 1))
    ignored = re.search(r"SigIgn:\s*(\w+)", Path(f"/proc/{machine.process.pid}/status").read_text())
    assert ignored
    assert bool(int(ignored[1], 16) & 1 << signal.SIGHUP - 1) is nohup
    machine.process.send_signal(signal.SIGTERM if nohup else signal.SIGHUP)
    assert machine.end() == 143
    assert "rank 1 saved" in machine.log
    assert mentioning(str(two.trainer)) == []


@pytest.mark.helm
def test_a_killed_rank_ends_the_run_and_is_named_last(two: Run) -> None:
    machine = two.start(0, "steps=100000", "nodes=1")
    machine.wait_for(*trains(0, 1))
    pids = {pid for pid, line in command_lines().items() if line[1:3] == ["-u", str(two.trainer)]}
    victim = next(pid for pid in pids if b"\0RANK=1\0" in b"\0" + Path(f"/proc/{pid}/environ").read_bytes())
    os.kill(victim, signal.SIGKILL)
    assert machine.end() == 128 + signal.SIGKILL
    assert gone(sorted(pids))
    assert re.search(
        r"\n  rank      : 1 \(local_rank: 1\)\n  exitcode  : 137 ", machine.log[machine.log.rindex("Root Cause") :]
    )


@pytest.mark.helm
def test_a_missing_data_set_ends_the_run_and_is_named(two: Run) -> None:
    machine = two.start(0, "steps=2", "nodes=1", "data.name=absent", "storage.data.from=pvc://data")
    assert machine.end() == 1
    assert f"FileNotFoundError: {two.folder}/data/absent_text_document.idx is missing" in machine.log


# -- what is planned


@pytest.mark.helm
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
    assert planned.grace_period_seconds == 120


@pytest.mark.helm
def test_secrets_come_from_the_environment_and_are_never_shown(two: Run) -> None:
    flags = ("--set", "secretEnv.HF_TOKEN.secretName=hf", "--set", "secretEnv.HF_TOKEN.key=token")
    result = chartgen("exec", "onprem-p8000", "--dry-run", *flags, env={"HF_TOKEN": "hf_very_secret"})
    assert "# HF_TOKEN comes from a Secret: set it in the environment\n" in result.output
    assert "hf_very_secret" not in result.output
    result = chartgen("exec", "onprem-p8000", "--root", two.folder, *flags, env={"HF_TOKEN": None})
    assert result.exit_code == 1
    line = "error: HF_TOKEN comes from a Secret, which this machine lacks; set it in the environment of this command"
    assert result.stderr.splitlines()[-1] == line


@pytest.mark.helm
def test_dry_run_makes_nothing_and_can_be_read_by_programs(tmp_path: Path) -> None:
    root = tmp_path / "root"
    shown = chartgen("exec", "onprem-p8000", "--root", root, "--dry-run", "--output", "json")
    facts = json.loads(shown.stdout)
    assert facts["argv"][:2] == ["bash", f"{root}/etc/chartgen/start.sh"]
    assert facts["folders"] == [str(root / name) for name in ("data", "outputs", "scratch")]
    assert sorted(facts["files"]) == [f"{root}/etc/chartgen/{name}" for name in ("rank.sh", "start.sh", "watch.py")]
    assert not root.exists()


@pytest.mark.helm
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("onprem-p8000", "--rank", "1"), "no rank 1; the run has 1 pod, counted from 0"),
        (("onprem-p8000", "--env", "A"), "--env A: give it as NAME=VALUE"),
        (
            ("oke-h100",),
            "mpirun starts the processes of a Volcano Job from another pod; only other kinds run here",
        ),
    ],
)
def test_what_cannot_run_is_refused(arguments: tuple[str, ...], message: str) -> None:
    result = chartgen("exec", *arguments, "--dry-run")
    assert (result.exit_code, result.stderr) == (2, f"error: {message}\n")


def plain(*command: str, **more: Any) -> list[dict[str, Any]]:
    """A Job of one pod, and a ConfigMap `own`; `spec` and `container` add to them."""
    container = {"name": "main", "command": list(command), **more.get("container", {})}
    pod = {"spec": {"containers": [container], **more.get("spec", {})}}
    own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}, "data": {"a": "1", "b": "2"}}
    return [own, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "run"}, "spec": {"template": pod}}]


def mounting(volume: dict[str, Any], **mount: str) -> list[dict[str, Any]]:
    mounts = [{"name": "v", "mountPath": "/m", **mount}]
    return plain("true", spec={"volumes": [{"name": "v", **volume}]}, container={"volumeMounts": mounts})


@pytest.mark.parametrize(
    ("volume", "mount", "files"),
    [
        ({"configMap": {"name": "own"}}, {}, {"m/a": "1", "m/b": "2"}),
        ({"configMap": {"name": "own"}}, {"subPath": "b"}, {"m": "2"}),
        ({"configMap": {"name": "own", "items": [{"key": "a", "path": "x/y"}]}}, {}, {"m/x/y": "1"}),
        ({"configMap": {"name": "site", "optional": True}}, {}, {}),
        ({"secret": {"secretName": "keys", "optional": True}}, {}, {}),
    ],
)
def test_files_of_the_charts_own_objects_are_written(
    tmp_path: Path, volume: dict[str, Any], mount: dict[str, str], files: dict[str, str]
) -> None:
    planned = plan_execution(mounting(volume, **mount), tmp_path)
    assert {str(path.relative_to(tmp_path)): text for path, text in planned.files.items()} == files
    assert not planned.lacking


@pytest.mark.parametrize(
    ("volume", "mount", "source"),
    [
        ({"configMap": {"name": "site"}}, {}, "ConfigMap site"),
        ({"configMap": {"name": "own"}}, {"subPath": "c"}, "key c of ConfigMap own"),
        ({"configMap": {"name": "own", "items": [{"key": "c", "path": "c"}]}}, {}, "key c of ConfigMap own"),
        ({"secret": {"secretName": "keys"}}, {}, "Secret keys"),
        ({"projected": {"sources": []}}, {}, "a projected volume"),
        ({"downwardAPI": {"items": []}}, {}, "the pod's own fields"),
    ],
)
def test_files_that_the_chart_does_not_make_are_asked_for(
    tmp_path: Path, volume: dict[str, Any], mount: dict[str, str], source: str
) -> None:
    planned = plan_execution(mounting(volume, **mount), tmp_path)
    assert planned.lacking == {tmp_path / "m": source}
    prepare_pod(planned)
    with pytest.raises(ChartgenError) as caught:
        start_process(planned, os.environ)
    [problem] = caught.value.problems
    assert problem.path == tmp_path / "m"
    assert source in problem.message
    (tmp_path / "m").mkdir()
    assert start_process(planned, os.environ).wait() == 0


@pytest.mark.helm
def test_a_config_map_of_the_cluster_is_named_in_one_line(two: Run) -> None:
    flags = [
        "extraVolumes[0].name=site,extraVolumes[0].configMap.name=site",
        "extraVolumeMounts[0].name=site,extraVolumeMounts[0].mountPath=/etc/site",
    ]
    sets = [part for flag in flags for part in ("--set", flag)]
    shown = chartgen("exec", "onprem-p8000", "--root", two.folder, "--dry-run", *sets)
    assert f"# {two.folder}/etc/site comes from ConfigMap site: put its files there" in shown.stdout.splitlines()
    result = chartgen("exec", "onprem-p8000", "--root", two.folder, *sets)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith(f"error: {two.folder}/etc/site: comes from ConfigMap site")


@pytest.mark.parametrize(
    ("source", "known", "outside"),
    [
        ({"configMapKeyRef": {"name": "own", "key": "a"}}, "1", None),
        ({"configMapKeyRef": {"name": "site", "key": "a"}}, None, "key a of ConfigMap site"),
        ({"configMapKeyRef": {"name": "site", "key": "a", "optional": True}}, None, None),
        ({"secretKeyRef": {"name": "keys", "key": "a"}}, None, "a Secret"),
        ({"secretKeyRef": {"name": "keys", "key": "a", "optional": True}}, None, None),
        ({"resourceFieldRef": {"resource": "limits.memory"}}, None, "limits.memory of the pod"),
        ({"fieldRef": {"fieldPath": "metadata.uid"}}, None, "metadata.uid of the pod"),
        ({"fieldRef": {"fieldPath": "spec.serviceAccountName"}}, "default", None),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "127.0.0.1", None),
    ],
)
def test_a_variable_is_known_or_said_to_come_from_elsewhere(
    tmp_path: Path, source: dict[str, Any], known: str | None, outside: str | None
) -> None:
    found = plain("true", container={"env": [{"name": "X", "valueFrom": source}]})
    planned = plan_execution(found, tmp_path)
    assert (planned.environment.get("X"), planned.outside.get("X")) == (known, outside)


def test_a_mount_without_its_volume_is_a_usage_error(tmp_path: Path) -> None:
    found = plain("true", container={"volumeMounts": [{"name": "gone", "mountPath": "/m"}]})
    with pytest.raises(UsageError, match="gone"):
        plan_execution(found, tmp_path)


def test_a_container_without_a_command_is_a_usage_error(tmp_path: Path) -> None:
    found = plain()
    del found[1]["spec"]["template"]["spec"]["containers"][0]["command"]
    with pytest.raises(UsageError, match="main has no command"):
        plan_execution(found, tmp_path)


def test_a_process_that_hides_its_origin_ends_too(tmp_path: Path) -> None:
    """Without its environment only its process group tells whose it is; macOS shows no environments at all."""
    planned = plan_execution(plain("sh", "-c", "env -i sleep 600 & echo $! > pid"), tmp_path)
    prepare_pod(planned)
    assert run(planned, os.environ) == 0
    assert gone([int((tmp_path / "pid").read_text())])


def test_a_setup_chart_runs_nothing() -> None:
    with pytest.raises(UsageError, match="the chart contains no job"):
        plan_execution([], Path("/nowhere"))
