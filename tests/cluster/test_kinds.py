"""Every workload kind on the real control plane, through plain Helm: failure is failure, and nothing runs twice.

The table of exit codes has a file of its own, test_exit_table.py.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from facts import has
from kubelet import kubelet_of
from selection import HELMS

from chartgen.composer.assembly import compose
from chartgen.composer.node_pools import node_pool
from chartgen.composer.target import load_target
from chartgen.kube import JOB, JOBSET, MPIJOB, POD, PYTORCHJOB, TRAINJOB, VOLCANO_JOB, Kind, Object, wait_for
from chartgen.kube.workloads import gpus, outcome
from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import look, wait_for_verdict
from chartgen.releases.status.members import member
from chartgen.releases.status.readout import read_readout
from chartgen.releases.status.spares import Spares
from chartgen.releases.status.text import describe_readout

CHARTS = Path(__file__).parents[2] / "charts"
# Chart, or target and workload kind -> the kind of its runs.
KINDS = {
    "gke-a3high": JOB,
    "gke-a3mega": JOBSET,
    "eks-p5": PYTORCHJOB,
    "oke-h100": VOLCANO_JOB,
    "eks-p5 mpijob": MPIJOB,
    "eks-p5 trainjob": TRAINJOB,
}
INSTANCE = {"app.kubernetes.io/instance": "my-run"}

pytestmark = pytest.mark.engines


@dataclass(frozen=True)
class Release:
    """Release my-run of a chart, on 2 machines in a namespace of its own."""

    helm: Path
    plane: ControlPlane
    chart: Path
    kind: Kind

    @property
    def namespace(self) -> str:
        """Return its namespace, which has the chart's name."""
        return self.chart.name

    def do(self, command: str, *flags: str) -> None:
        """Install, upgrade or uninstall it, and wait until it runs."""
        chart = [] if command == "uninstall" else [str(self.chart), "--set", "nodes=2", *flags]
        place = ["--namespace", self.namespace, "--kubeconfig", str(self.plane.kubeconfig)]
        argv = [str(self.helm), command, "my-run", *chart, *place]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if chart:
            verdict = wait_for_verdict(self.plane.cluster, "my-run", namespace=self.namespace, timeout=180)
            assert verdict.ok, verdict.reasons

    def run(self) -> Object:
        """Return the one run that is not being deleted."""
        found = self.plane.cluster.list(self.kind, namespace=self.namespace, labels=INSTANCE)
        (item,) = [item for item in found if "deletionTimestamp" not in item["metadata"]]
        return item

    def pods(self) -> list[Object]:
        """Return the pods that hold GPUs."""
        found = self.plane.cluster.list(POD, namespace=self.namespace, labels=INSTANCE)
        return [pod for pod in found if gpus(pod) and pod["status"].get("phase") in ("Pending", "Running")]

    def masters(self) -> list[Object]:
        """Return the pods that only start the others."""
        found = self.plane.cluster.list(POD, namespace=self.namespace, labels=INSTANCE)
        return [pod for pod in found if not gpus(pod)]

    def end(self, pod: Object, phase: str, **status: Any) -> None:
        """Let a pod end: what a kubelet would report."""
        change = {"status": {"phase": phase, **status}}
        name = pod["metadata"]["name"]
        self.plane.cluster.patch(POD, name, change, namespace=self.namespace, subresource="status")


@pytest.fixture
def release(
    plane: ControlPlane,
    tmp_path: Path,
    built_engines: None,  # noqa: ARG001
) -> Iterator[Callable[..., Release]]:
    opened: list[Release] = []
    machines: list[str] = []

    def open_release(place: str, helm: str, *flags: str) -> Release:
        target, _, kind = place.partition(" ")
        chart = CHARTS / target
        if kind:
            made = compose(load_target(target), kind)
            chart = tmp_path / made.name
            made.write(chart)
        # room for two runs: only the chart itself keeps them apart
        machines.extend(create_machines(plane.cluster, [node_pool(load_target(target).default_machine, 4)]))
        plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": chart.name}}])
        opened.append(Release(engines.require(helm), plane, chart, KINDS[place]))
        opened[-1].do("install", *flags)
        return opened[-1]

    yield open_release
    for each in opened:
        each.do("uninstall")
        wait_for(lambda each=each: not each.pods(), what="that all pods are gone", timeout=180)  # type: ignore[misc]
    delete_machines(plane.cluster, machines)


def final_state(run: Object) -> str:
    """Return what a run's own controller says of its end; empty while it runs."""
    status = run.get("status", {})
    if "state" in status:
        return str(status["state"]["phase"])
    ended = [each["type"] for each in status.get("conditions", ()) if each["status"] == "True"]
    return "Failed" if "Failed" in ended else ""


@pytest.mark.parametrize("target", KINDS)
def test_a_machine_that_fails_fails_the_run_and_frees_the_others(release: Callable[..., Release], target: str) -> None:
    found = release(target, "helm")
    victims = found.pods()[-1:]
    if KINDS[target] is MPIJOB:  # whose operator leaves it to mpirun to notice
        victims += found.masters()
    for victim in victims:
        found.end(victim, "Failed")
    wait_for(lambda: final_state(found.run()) == "Failed", what="that the run has failed", timeout=180)
    wait_for(lambda: not found.pods(), what="that no pod holds GPUs", timeout=180)
    verdict = look(found.plane.cluster, "my-run", namespace=found.namespace)
    assert not verdict.ok
    assert "failed" in " ".join(verdict.reasons).lower()


SPARE = "launcher=megatron-lm,run.spares=1,launchers.megatron-lm.image=nvcr.io/nvidia/nemo:26.06"
WITH_SPARES = pytest.mark.parametrize("target", ["gke-a3high", pytest.param("gke-a3mega", marks=pytest.mark.full)])


@WITH_SPARES
def test_a_run_outlives_as_many_machines_as_it_has_spares(release: Callable[..., Release], target: str) -> None:
    found = release(target, "helm", "--set", SPARE)
    _, lost, other = found.pods()
    found.end(lost, "Failed")
    wait_for(lambda: len(found.pods()) == 2, what="that the machine is lost", timeout=180)
    assert final_state(found.run()) == ""
    found.end(other, "Failed")
    wait_for(lambda: final_state(found.run()) == "Failed", what="that the run has failed", timeout=180)


# Of nvidia-resiliency-ext v0.6.0, fault_tolerance/ft_rendezvous_barrier.py; the check of the network meets first.
MEETS = "The node 'a_1' attempts to join the next round of the rendezvous '{}'."
ASSIGNED = "Assigned active rank {} (round={})"
JOINED = "The node 'a_1' has joined the rendezvous '{}' as rank {} in a world of size 2."


def joins(name: str, rank: int, number: int) -> list[str]:
    """Return what ft_launcher logs when a machine begins to train in a round."""
    return [ASSIGNED.format(rank, number), JOINED.format(name, rank)]


@WITH_SPARES
def test_status_names_the_spare_and_whose_place_it_took(release: Callable[..., Release], target: str) -> None:
    found = release(target, "helm", "--set", SPARE)
    place = (found.plane.cluster, "my-run", found.namespace)
    pods = sorted(found.pods(), key=lambda pod: member(pod).index or 0)
    first, lost, spare = (pod["metadata"]["name"] for pod in pods)
    with kubelet_of(found.plane, [pod["spec"]["nodeName"] for pod in pods]) as kubelet:
        for rank, pod in enumerate((first, lost)):
            kubelet.write(pod, MEETS.format("run-transport"), *joins("run-transport", rank, 0))
        kubelet.write(spare, MEETS.format("run-transport"))
        assert read_readout(*place).spares == Spares(1, unknown=has("1 3"))
        for pod in (first, lost, spare):
            kubelet.write(pod, MEETS.format("run"))
        assert read_readout(*place).spares == Spares(1, unknown=has("meet"))
        for rank, pod in enumerate((first, lost)):
            kubelet.write(pod, *joins("run", rank, 0), "step")
        assert read_readout(*place).spares == Spares(1, (spare,))
        found.end(pods[1], "Failed")
        kubelet.write(first, MEETS.format("run"), *joins("run", 0, 1), *["step"] * 100)
        kubelet.write(spare, *joins("run", 1, 1), *["step"] * 100)
        wait_for(lambda: look(place[0], place[1], namespace=place[2]).running == 2, what="the loss", timeout=180)
        after = read_readout(*place)
        assert (after.phase, after.spares) == ("running", Spares(1, (), {spare: lost}))
        assert after.failure
        assert after.failure.pod == lost
        assert f"{spare} took the place of {lost}" in describe_readout(after)
        kubelet.close()
        assert read_readout(*place).spares == Spares(1, unknown=has(f"unknown log {first}"))


@WITH_SPARES
def test_a_run_that_lost_a_machine_is_complete_when_the_others_are(
    release: Callable[..., Release], target: str
) -> None:
    found = release(target, "helm", "--set", SPARE)
    _, lost, other = found.pods()
    found.end(lost, "Failed")
    found.end(other, "Succeeded")
    kind = {"kind": found.kind.name, "apiVersion": found.kind.api_version}
    wait_for(lambda: outcome({**kind, **found.run()}) == "finished", what="that the run is complete", timeout=180)


@pytest.mark.parametrize(
    ("target", "helm"),  # test_upgrade.py has Job and JobSet
    [
        *product(("eks-p5", "oke-h100"), HELMS[:1]),
        ("eks-p5 mpijob", "helm"),
        *(pytest.param(each, "helm3", marks=pytest.mark.full) for each in ("eks-p5", "oke-h100", "eks-p5 trainjob")),
    ],
)
def test_an_unchanged_upgrade_does_nothing_and_a_changed_one_replaces_the_run(
    release: Callable[..., Release], target: str, helm: str
) -> None:
    found = release(target, helm)
    before, pods = found.run()["metadata"], {pod["metadata"]["uid"] for pod in found.pods()}
    found.do("upgrade")
    time.sleep(1)
    after = found.run()["metadata"]
    assert (after["uid"], after["generation"]) == (before["uid"], before["generation"])
    assert {pod["metadata"]["uid"] for pod in found.pods()} == pods
    found.do("upgrade", "--set", "steps=60")
    wait_for(lambda: len(found.pods()) == 2, what="that the old run is gone", timeout=180)
    assert found.run()["metadata"]["name"] != before["name"]
    assert {pod["metadata"]["labels"]["run"] for pod in found.pods()} == {found.run()["metadata"]["name"]}
