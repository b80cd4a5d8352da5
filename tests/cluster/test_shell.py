"""`chartgen shell` and `stacks` reach the program's container of the right pod: kwok's server runs the command here."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import manifests
import pytest
from answers import answer
from kubelet import pod_names
from process_helpers import running
from userlib import chartgen

from chartgen.kube import NODE, wait_for
from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.processes import listens
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import wait_for_verdict

RANKS = 800_000  # no other program of this machine has such ranks
EXEC = {
    "apiVersion": "kwok.x-k8s.io/v1alpha1",
    "kind": "ClusterExec",
    "metadata": {"name": "here"},
    "spec": {"execs": [{"containers": ["train"], "local": {"envs": [{"name": "IN_THE_POD", "value": "yes"}]}}]},
}


@pytest.fixture(scope="module")
def pods(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The pods of a run on two machines that kwok runs commands for."""
    names = create_machines(plane.cluster, [manifests.pool("shell", 2)])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder, server = tmp_path_factory.mktemp("shell"), plane.folder / "apiserver"
    config = folder / "exec.json"
    config.write_text("\n---\n".join(map(json.dumps, [*engines.engine_objects("kwok", "stages.json"), EXEC])))
    argv = [
        str(engines.require("kwok")), f"--kubeconfig={plane.kubeconfig}", f"--config={config}",
        "--manage-nodes-with-label-selector=shell=none",  # the machines are the other kwok's
        f"--server-address=127.0.0.1:{port}",
        f"--tls-cert-file={server}/apiserver.crt", f"--tls-private-key-file={server}/apiserver.key",
    ]  # fmt: skip
    run = manifests.jobset("shell", 2, pool="shell")
    with (folder / "kwok.log").open("w") as log, running(argv, stderr=log):
        wait_for(lambda: listens(port), what="that kwok serves", timeout=180)
        plane.cluster.apply([run])
        assert wait_for_verdict(plane.cluster, "shell", timeout=180).ok
        for name in names:  # the other kwok has initialized them
            status = {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
            plane.cluster.patch(NODE, name, {"status": status}, subresource="status")
        yield pod_names(plane.cluster, "shell")
        plane.cluster.delete_object(run, namespace="default", foreground=True)
    delete_machines(plane.cluster, names)


@pytest.mark.engines
def test_a_command_runs_in_the_pod_of_the_rank(
    plane: ControlPlane, pods: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    env = {"KUBECONFIG": str(plane.kubeconfig)}
    done = chartgen("shell", "shell", "--rank", "11", "--", "sh", "-c", "echo $IN_THE_POD", env=env)
    assert (done.exit_code, capfd.readouterr().out) == (0, "yes\n")
    assert f"pod {pods[1]} on machine shell-" in done.stderr
    assert chartgen("shell", "shell", "--", "false", env=env).exit_code == 1
    assert chartgen("shell", "shell", "--rank", "16", env=env).exit_code == 2
    bare = {**env, "PATH": "/nowhere", "CHARTGEN_KUBECTL": None}
    done = chartgen("shell", "shell", env={**bare, "CHARTGEN_CACHE": "/nowhere"})
    assert (done.exit_code, "chartgen engines get kubectl" in done.stderr) == (3, True)


@pytest.mark.engines
@pytest.mark.usefixtures("pods")
def test_the_rank_that_has_not_reached_the_others_is_found_by_the_real_py_spy(plane: ControlPlane) -> None:
    with ExitStack() as stack:
        for rank, place in ((RANKS, "reduce"), (RANKS + 1, "load"), (RANKS + 2, "reduce")):
            program = f"import sys\ndef {place}():\n    print(flush=True)\n    sys.stdin.read()\n{place}()"
            env = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank - RANKS)}
            argv = [sys.executable, "-c", program]
            streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
            process = stack.enter_context(running(argv, env=env, text=True, **streams))
            assert process.stdout
            process.stdout.readline()
        done = chartgen("stacks", "shell", "--output", "json", env={"KUBECONFIG": str(plane.kubeconfig)})
    # each of the two pods sees all processes of this machine, and py-spy cannot stop one that the other's has stopped
    groups = [each for each in answer(done.stdout)["groups"] if each["frames"]]
    found = [each for each in groups if not {RANKS, RANKS + 1}.isdisjoint(each["ranks"])]
    assert [(each["ranks"], each["frames"][0].split()[0]) for each in found] == [
        ([RANKS, RANKS + 2], "reduce"),
        ([RANKS + 1], "load"),
    ]
