"""Plain `helm install` and `helm upgrade` of the A3 Mega chart, with Helm 4 and 3, on the real control plane.

A run is never started twice, nor two at once, by the chart itself: for people who never use chartgen.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rendered import GPT3, chart, target
from selection import HELMS

from chartgen.composer.assembly import compose_setup
from chartgen.composer.node_pools import node_pool
from chartgen.kube import JOB, JOBSET, POD, Kind, wait_for
from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import wait_for_verdict

pytestmark = pytest.mark.engines

# Room for two runs of 4 machines at once: only the chart itself keeps them apart.
MACHINES = 8
INSTANCE = {"app.kubernetes.io/instance": "my-run"}
SMALL = ("--set", "nodes=4", "--set", "setup.quota.nodes=8")


@dataclass(frozen=True)
class Shell:
    """A user's shell: one Helm, one namespace, and the repository's values files."""

    helm: Path
    plane: ControlPlane
    namespace: str
    charts: Path

    def run(self, *arguments: str) -> str:
        files = [part for file in GPT3 for part in ("-f", str(file))]
        values = [*files, *SMALL] if arguments[0] in ("install", "upgrade") else []
        place = ["--namespace", self.namespace, "--kubeconfig", str(self.plane.kubeconfig)]
        done = subprocess.run(
            [self.helm, *arguments, *values, *place], cwd=self.charts, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def only(self, kind: Kind) -> dict[str, Any]:
        (item,) = self.plane.cluster.list(kind, namespace=self.namespace, labels=INSTANCE)
        return item

    def pods(self) -> list[dict[str, Any]]:
        return self.plane.cluster.list(POD, namespace=self.namespace, labels=INSTANCE)

    def wait_until_running(self) -> None:
        verdict = wait_for_verdict(self.plane.cluster, "my-run", namespace=self.namespace, timeout=180)
        assert verdict.ok, verdict.reasons


@pytest.fixture(scope="module")
def charts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("charts")
    setup = compose_setup(target())
    assert setup
    for one in (chart(), chart("job"), setup):
        one.write(folder / one.name)
    return folder


@pytest.fixture(scope="module")
def machines(plane: ControlPlane, charts: Path) -> Iterator[ControlPlane]:
    """The machines and the cluster's half of the setup, as a platform team installs it once."""
    names = create_machines(plane.cluster, [node_pool(target().default_machine, MACHINES)])
    shell = Shell(engines.require("helm"), plane, "default", charts)
    shell.run("install", "platform", "gke-a3mega-setup", "--set", "setup.namespace=false")
    yield plane
    shell.run("uninstall", "platform")
    delete_machines(plane.cluster, names)


@pytest.fixture(params=HELMS)
def shell(request: pytest.FixtureRequest, machines: ControlPlane, charts: Path) -> Iterator[Shell]:
    namespace = f"upgrade-{request.param}-{len(request.node.name)}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    machines.cluster.apply([body])
    found = Shell(engines.require(request.param), machines, namespace, charts)
    found.run("install", "setup", "gke-a3mega-setup", "--set", "setup.cluster=false")
    yield found
    found.run("uninstall", "my-run")
    wait_for(lambda: not found.pods(), what="that all pods are gone", timeout=180)
    found.run("uninstall", "setup")
    machines.cluster.delete_object(body)


@pytest.mark.parametrize(("name", "kind"), [("gke-a3mega", JOBSET), ("gke-a3mega-job", JOB)])
def test_unchanged_upgrade_does_nothing_and_a_changed_one_replaces_the_run(shell: Shell, name: str, kind: Kind) -> None:
    shell.run("install", "my-run", name)
    shell.wait_until_running()
    before, pods = shell.only(kind)["metadata"], {pod["metadata"]["uid"] for pod in shell.pods()}

    shell.run("upgrade", "my-run", name)
    time.sleep(1)
    after = shell.only(kind)["metadata"]
    assert (after["uid"], after["generation"]) == (before["uid"], before["generation"])
    assert {pod["metadata"]["uid"] for pod in shell.pods()} == pods

    shell.run("upgrade", "my-run", name, "--set", "steps=60")
    overlap = watch_overlap(shell, before["name"])
    new = shell.only(kind)["metadata"]
    assert new["name"] != before["name"]
    assert overlap == [], "a pod of the new run was placed while the old run still had pods"
    assert {pod["metadata"]["labels"]["run"] for pod in shell.pods()} == {new["name"]}


def watch_overlap(shell: Shell, old: str) -> list[str]:
    """Follow the replacement until the new run runs; give the new pods that were placed beside old ones."""
    overlap: list[str] = []
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        pods = shell.pods()
        new = [pod for pod in pods if pod["metadata"]["labels"]["run"] != old]
        placed = [pod["metadata"]["name"] for pod in new if pod["spec"].get("nodeName")]
        # a pod that has ended occupies no GPU and writes nothing, however long its object stays
        if any(pod["status"]["phase"] in ("Pending", "Running") for pod in pods if pod not in new):
            overlap += placed
        elif len(pods) == len(placed) == 4 and all(pod["status"]["phase"] == "Running" for pod in new):
            return overlap
        time.sleep(0.05)
    raise AssertionError("the new run did not start within 180 s")


def test_finished_run_is_not_started_again_by_an_unchanged_upgrade(shell: Shell) -> None:
    delay = "podAnnotations.pod-complete\\.stage\\.kwok\\.x-k8s\\.io/delay=1s"
    quick = ("--set", delay, "--set", "run.ttlSecondsAfterFinished=1")
    shell.run("install", "my-run", "gke-a3mega", *quick)
    wait_for(lambda: _finished(shell) or None, what="that the run has finished", timeout=180)
    wait_for(lambda: not shell.pods() or None, what="that its pods are removed", timeout=180)
    before = shell.only(JOBSET)["metadata"]
    shell.run("upgrade", "my-run", "gke-a3mega", *quick)
    time.sleep(2)
    assert shell.only(JOBSET)["metadata"]["uid"] == before["uid"]
    assert shell.pods() == []
    shell.run("upgrade", "my-run", "gke-a3mega", *quick, "--set", "run.again=once-more")
    assert shell.only(JOBSET)["metadata"]["uid"] != before["uid"]


def _finished(shell: Shell) -> bool:
    conditions = shell.only(JOBSET).get("status", {}).get("conditions", ())
    return any(condition["type"] == "Completed" and condition["status"] == "True" for condition in conditions)
