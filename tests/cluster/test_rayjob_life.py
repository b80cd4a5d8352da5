"""The life of a RayJob under the real KubeRay and Kueue: queued, admitted, a cluster and its submitter, replaced.

Simulated machines run no Ray, so its dashboard does not answer: KubeRay never sees the job. What follows the start of
the submitter is not tried here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from answers import answer
from click.testing import Result
from userlib import chartgen

from chartgen.composer.assembly import compose, compose_setup
from chartgen.composer.node_pools import node_pool
from chartgen.composer.target import load_target
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values
from chartgen.kube import NAMESPACE, POD, Kind, Object, wait_for
from chartgen.kube.run_kinds import kind_of
from chartgen.kube.workloads import find_pods, find_runs, outcome
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.rehearse import assumptions, rehearse
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import look
from chartgen.releases.helm_release import Place, install, uninstall, upgrade
from chartgen.releases.plan import plan_release
from chartgen.releases.status.logs import find_sources
from chartgen.releases.status.members import each_member
from chartgen.releases.status.readout import read_readout

pytestmark = pytest.mark.engines
NS = "ray-life"
RAYCLUSTER = Kind("ray.io/v1", "RayCluster", "rayclusters")
WORKLOADS = Kind("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
JOB = Kind("batch/v1", "Job", "jobs")
SETS = ["queue.name=ray", "nodes=2", "network.interface=infiniband", "run.maxRestarts=1", "topology.mode=unconstrained"]


def release(plane: ControlPlane, command: Callable[..., object], *sets: str) -> None:
    """Install or upgrade the release."""
    values = load_values(set_values=[*SETS, *sets]).data
    command(compose(load_target("onprem-p8000"), "rayjob"), "my-run", values, Place(NS, plane.kubeconfig))


def command(plane: ControlPlane, name: str, *flags: str) -> Result:
    """Run a command of chartgen's for the release."""
    sets = [part for each in SETS for part in ("--set", each)]
    argv = (name, "onprem-p8000", "my-run", "--workload", "rayjob", *sets, "-n", NS, *flags)
    return chartgen(*argv, env={"KUBECONFIG": str(plane.kubeconfig)})


@pytest.fixture(scope="module")
def queue(plane: ControlPlane) -> Iterator[list[Object]]:
    """A queue with room for two machines, whose machines do not exist yet."""
    target = load_target("onprem-p8000")
    setup = compose_setup(target, "rayjob")
    assert setup is not None
    found = objects(render(setup, "setup", NS, load_values(set_values=SETS).data))
    plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}])
    plane.cluster.apply(found, namespace=NS)
    yield found
    plane.cluster.delete(NAMESPACE, NS)
    for item in found:
        plane.cluster.delete_object(item, namespace=NS)


def run_of(plane: ControlPlane) -> dict[str, Any]:
    (run,) = find_runs(plane.cluster, "my-run", NS)
    return run


def test_a_rayjob_is_queued_admitted_placed_and_removed(plane: ControlPlane, queue: list[Object]) -> None:  # noqa: ARG001
    cluster = plane.cluster
    release(plane, install)
    # Kueue's webhook suspends it, and without machines its topology does not fit
    wait_for(lambda: cluster.list(WORKLOADS, namespace=NS), what="Kueue's workload", timeout=180)
    assert run_of(plane)["spec"]["suspend"] is True
    (workload,) = cluster.list(WORKLOADS, namespace=NS)
    sets = {each["name"]: each["count"] for each in workload["spec"]["podSets"]}
    assert sets == {"head": 1, "workload": 2, "submitter": 1}
    assert cluster.list(RAYCLUSTER, namespace=NS) == []
    assert read_readout(cluster, "my-run", NS).phase == "queued"

    machines = create_machines(cluster, [node_pool(load_target("onprem-p8000").default_machine, 2)])
    try:
        wait_for(lambda: look(cluster, "my-run", namespace=NS).ok, what="that all pods run", timeout=180)
        verdict = look(cluster, "my-run", namespace=NS)
        assert (verdict.pods, verdict.gpus, verdict.machines) == (4, 16, 2)
        pods = {
            pod["metadata"]["labels"]["app.kubernetes.io/component"]: pod for pod in find_pods(cluster, "my-run", NS)
        }
        assert pods.keys() == {"head", "train", "submitter"}
        # KubeRay leaves our commands alone, and hands its own on
        starts = {}
        for component in ("head", "train"):
            (container,) = pods[component]["spec"]["containers"]
            assert container["command"][0] == "bash"
            starts[component] = next(
                each["value"] for each in container["env"] if each["name"] == "KUBERAY_GEN_RAY_START_CMD"
            )
        assert "ray start --head" in starts["head"]
        assert "--num-gpus=8" in starts["train"]
        (submitter,) = pods["submitter"]["spec"]["containers"]
        assert "bash /etc/chartgen/driver.sh" in submitter["args"][0]
        spread = {pod["spec"]["nodeName"] for pod in find_pods(cluster, "my-run", NS)}
        assert spread == set(machines)
        # a run that nobody ends is running, and its log is the submitter's
        assert outcome(run_of(plane)) == ""
        assert [each.member.container for each in find_sources(cluster, "my-run", NS)] == ["submitter"]
        assert len(find_sources(cluster, "my-run", NS, rank="all")) == 4
        assert {member.ranks for member, _ in each_member(cluster, "my-run", NS)} == {range(0)}

        # the same again changes nothing; another one takes its place when it has gone
        before = run_of(plane)["metadata"]
        release(plane, upgrade)
        after = run_of(plane)["metadata"]
        assert (after["uid"], after["generation"]) == (before["uid"], before["generation"])
        assert "continues unchanged" in command(plane, "upgrade", "--yes").stderr
        assert run_of(plane)["metadata"]["generation"] == before["generation"]
        release(plane, upgrade, "steps=60")

        def replaced() -> bool:
            labels = {pod["metadata"]["labels"]["run"] for pod in find_pods(cluster, "my-run", NS)}
            return bool(labels) and before["name"] not in labels and look(cluster, "my-run", namespace=NS).ok

        wait_for(replaced, what="that the other run has taken its place", timeout=120)
        uninstall("my-run", Place(NS, plane.kubeconfig))
        wait_for(lambda: not cluster.list(POD, namespace=NS), what="that all pods are gone", timeout=180)
        assert cluster.list(RAYCLUSTER, namespace=NS) == cluster.list(JOB, namespace=NS) == []
    finally:
        delete_machines(cluster, machines)


def test_a_head_that_fails_is_made_again(plane: ControlPlane, queue: list[Object]) -> None:  # noqa: ARG001
    """KubeRay replaces single pods of a cluster; whether Ray's job survives that is Ray's to report."""
    cluster = plane.cluster
    machines = create_machines(cluster, [node_pool(load_target("onprem-p8000").default_machine, 2)])
    try:
        release(plane, install)
        wait_for(lambda: look(cluster, "my-run", namespace=NS).ok, what="that all pods run", timeout=180)
        (victim,) = [member for member, _ in each_member(cluster, "my-run", NS) if member.container == "head"]
        cluster.patch(POD, victim.name, {"status": {"phase": "Failed"}}, namespace=NS, subresource="status")

        def replaced() -> bool:
            heads = [member for member, _ in each_member(cluster, "my-run", NS) if member.container == "head"]
            return [each.uid for each in heads if each.uid != victim.uid and each.started] != []

        wait_for(replaced, what="another head", timeout=180)
        assert outcome(run_of(plane)) == ""
        uninstall("my-run", Place(NS, plane.kubeconfig))
        wait_for(lambda: not cluster.list(POD, namespace=NS), what="that all pods are gone", timeout=180)
    finally:
        delete_machines(cluster, machines)


def test_a_rehearsal_places_it_and_reports_what_it_cannot_try() -> None:
    target = load_target("onprem-p8000")
    values = load_values(set_values=SETS)
    told: list[str] = []
    result = rehearse(target, values, workload="rayjob", progress=told.append)
    assert result.verdict.ok, result.verdict.reasons
    assert (result.verdict.pods, result.verdict.gpus) == (4, 16)
    assert any("Ray" in line for line in told)
    planned = plan_release(compose(target, "rayjob"), values, "my-run", NS)
    assert any("Ray" in line for line in assumptions(target, planned))


def test_a_submitter_that_ends_without_a_job_is_a_failure_with_restarts(
    plane: ControlPlane,
    queue: list[Object],  # noqa: ARG001
) -> None:
    """What KubeRay does when Ray never reports a job: 30 s after the submitter's end, the attempt has failed."""
    cluster = plane.cluster
    machines = create_machines(cluster, [node_pool(load_target("onprem-p8000").default_machine, 2)])

    def end_submitter() -> str:
        (submitter,) = [member for member, _ in each_member(cluster, "my-run", NS) if member.drives]
        cluster.patch(POD, submitter.name, {"status": {"phase": "Succeeded"}}, namespace=NS, subresource="status")
        return submitter.uid

    try:
        release(plane, install)
        wait_for(lambda: look(cluster, "my-run", namespace=NS).ok, what="that all pods run", timeout=180)
        first = end_submitter()
        kind = kind_of(run_of(plane))
        wait_for(lambda: kind.status.count_restarts(run_of(plane)) == 1, what="another attempt", timeout=180)

        def again() -> bool:
            uids = {member.uid for member, _ in each_member(cluster, "my-run", NS) if member.drives}
            return look(cluster, "my-run", namespace=NS).ok and uids != {first}

        wait_for(again, what="that all pods run again", timeout=180)
        assert outcome(run_of(plane)) == ""
        end_submitter()
        wait_for(lambda: outcome(run_of(plane)) == "failed", what="that the run has failed", timeout=180)
        wait_for(lambda: not cluster.list(RAYCLUSTER, namespace=NS), what="that the machines are free", timeout=180)
        found = read_readout(cluster, "my-run", NS)
        assert (found.phase, found.restarts) == ("failed", 1)
        assert found.failure
        assert "started again 1 of at most 1 times" in " ".join(found.failure.then)
        assert len([*kind.status.ends(run_of(plane))]) == 1
        assert [each.member.container for each in find_sources(cluster, "my-run", NS)] == ["submitter"], (
            "its log is kept"
        )
        uninstall("my-run", Place(NS, plane.kubeconfig))
        wait_for(lambda: not cluster.list(POD, namespace=NS), what="that all pods are gone", timeout=180)
    finally:
        delete_machines(cluster, machines)


def test_doctor_knows_its_controllers_and_its_queue(plane: ControlPlane, queue: list[Object]) -> None:  # noqa: ARG001
    rows = answer(command(plane, "doctor", "--output", "json").stdout)["diagnoses"]
    told = {(row["name"], row["status"]): row["text"] for row in rows if row["name"] != "controllers"}
    assert "RayJob" in told["api-versions", "pass"]
    assert "RayJob" in told["queue-integration", "pass"]
    assert "RayJob" in told["admission", "pass"]
    found = {row["text"].split()[0]: row["status"] for row in rows if row["name"] == "controllers"}
    assert found == {"Kueue": "pass", "kuberay": "warn"}, "here it runs outside of the cluster, and has no webhook"
