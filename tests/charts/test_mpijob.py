"""An MPIJob: what the operator and Kueue count on, and a master that starts the machines' processes again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import userlib
from rendered import Objects, one, rendered

from chartgen.data.exits import exit_codes, final_exits
from chartgen.errors import ChartgenError
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values

# Every machine answers, and a SIGTERM to its programs ends mpirun; that ends as the list of exit codes says, one line
# for each start.
SSH = '#!/bin/sh\ncase "$*" in *kill*) kill "$(cat "$FOLDER/pid")" ;; esac\n'
MPIRUN = """#!/bin/sh
echo "$OMPI_MCA_orte_default_hostfile $*" >>"$FOLDER/starts"
code=$(sed -n "$(wc -l <"$FOLDER/starts")p" "$FOLDER/codes")
echo "$$" >"$FOLDER/pid"
[ "$code" = wait ] && exec sleep 60
exit "$code"
"""


def mpijob(*sets: str) -> Objects:
    return rendered(
        "nodes=2", "queue.name=lab", "network.interface=tcp", *sets, files=(), workload="mpijob", name="onprem-p8000"
    )


def specs(found: Objects) -> dict[str, Any]:
    return dict(one("MPIJob", found)["spec"]["mpiReplicaSpecs"])


def test_what_the_operator_and_kueue_count_on() -> None:
    found = mpijob("topology.mode=required")
    run = one("MPIJob", found)
    name, policy = run["metadata"]["name"], run["spec"]["runPolicy"]
    assert run["apiVersion"] == "kubeflow.org/v2beta1"
    assert run["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "lab"
    assert policy == {"cleanPodPolicy": "Running", "backoffLimit": 0}, "`suspend` is Kueue's"
    assert (run["spec"]["slotsPerWorker"], run["spec"]["launcherCreationPolicy"]) == (8, "WaitForWorkersReady")
    launcher, worker = specs(found)["Launcher"], specs(found)["Worker"]
    assert (launcher["replicas"], worker["replicas"]) == (1, 2)
    assert all("restartPolicy" not in each["template"]["spec"] for each in (launcher, worker))
    topology = "kueue.x-k8s.io/podset-required-topology"
    assert topology in worker["template"]["metadata"]["annotations"]
    assert topology not in launcher["template"]["metadata"]["annotations"], "its machine need not be a neighbour"
    (program,) = worker["template"]["spec"]["containers"]
    env = {each["name"]: each for each in program["env"]}
    assert env["MASTER_ADDR"]["value"] == f"{name}-worker-0.{name}"
    assert "training.kubeflow.org/replica-index" in env["NODE_RANK"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert "SYS_CHROOT" in program["securityContext"]["capabilities"]["add"]


def test_the_master_gets_what_every_pod_gets(tmp_path: Path) -> None:
    """Not what only pods with GPUs or storage get."""
    slots = {f"{name}/{slot}.yaml": f"example.com/{name}: {{{{ .Release.Name | quote }}}}\n"
             for name in ("every", "gpus") for slot in ("podLabels", "podAnnotations")}  # fmt: skip
    ours = userlib.library(tmp_path, slots, "every", "gpus", gpu_only=("gpus",))
    values = load_values(set_values=["podLabels.team=a", "podAnnotations.note=b"])
    chart = userlib.composed(ours, workload="mpijob")
    found = specs(objects(render(chart, "my-run", "default", values.data)))
    for kind, names in (("Launcher", {"example.com/every"}), ("Worker", {"example.com/every", "example.com/gpus"})):
        for given, told in (("labels", "team"), ("annotations", "note")):
            keys = set(found[kind]["template"]["metadata"][given])
            assert {key for key in keys if key.startswith("example.com/")} == names
            assert told in keys


def test_workers_start_again_where_the_run_does() -> None:
    policies = [specs(mpijob(f"run.maxRestarts={count}"))["Worker"]["restartPolicy"] for count in (0, 2)]
    assert policies == ["Never", "OnFailure"]


@pytest.mark.parametrize(
    ("flags", "key"), [("run.ttlSecondsAfterFinished=60", "run.ttl"), ("mpi.sshPort=22", "mpi.sshPort")]
)
def test_refusals(flags: str, key: str) -> None:
    with pytest.raises(ChartgenError, match=key):
        mpijob(flags)


def master(folder: Path, restarts: int, codes: list[str]) -> subprocess.Popen[str]:
    """Start the master's script with an ssh and an mpirun that record."""
    found = mpijob(f"run.maxRestarts={restarts}")
    (text,) = (item["data"]["master.sh"] for item in found if "master.sh" in item.get("data", {}))
    script = folder / "master.sh"
    script.write_text(
        text.replace("/run/chartgen", str(folder / "run"))
        .replace("/etc/mpi", str(folder))
        .replace("/root/.ssh", str(folder))
    )
    (folder / "id_rsa.pub").write_text("ssh-rsa key\n")
    (folder / "hostfile").write_text("a-0.a.ml.svc slots=8\na-1.a.ml.svc slots=8\n")
    (folder / "codes").write_text("".join(f"{code}\n" for code in codes))
    for name, body in {"ssh": SSH, "mpirun": MPIRUN}.items():
        (folder / name).write_text(body)
        (folder / name).chmod(0o755)
    (container,) = specs(found)["Launcher"]["template"]["spec"]["containers"]
    env = {each["name"]: each["value"] for each in container["env"]}
    of_operator = {"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile", "FOLDER": str(folder)}
    path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.Popen(["bash", str(script)], env={**env, **of_operator, "PATH": path}, stderr=-1, text=True)


def starts(folder: Path) -> list[str]:
    file = folder / "starts"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize(
    ("restarts", "codes", "end", "count"),
    [
        pytest.param(2, [7, 7, 0], 0, 3, id="recovers"),
        pytest.param(0, [7], 7, 1, id="has none"),
        *(pytest.param(2, [code] * 4, code, 1 if code in final_exits() else 3, id=str(code)) for code in exit_codes()),
    ],
)
def test_the_master_starts_the_processes_again(
    tmp_path: Path, restarts: int, codes: list[int], end: int, count: int
) -> None:
    run = master(tmp_path, restarts, [str(code) for code in codes])
    _, err = run.communicate(timeout=180)
    assert (run.returncode, len(starts(tmp_path))) == (end, count), err
    assert err.count("the machines start again") == count - 1
    assert (tmp_path / "run" / "hosts").read_text() == "a-0.a.ml.svc slots=8\na-1.a.ml.svc slots=8\n"
    assert all(line.startswith(" ") for line in starts(tmp_path)), "one host file, which is ours"


def test_a_run_that_is_stopped_does_not_start_again(tmp_path: Path) -> None:
    run = master(tmp_path, 2, ["wait", "0"])
    while not (tmp_path / "pid").exists():
        time.sleep(0.05)
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=180)
    assert (run.returncode, len(starts(tmp_path))) == (143, 1)
