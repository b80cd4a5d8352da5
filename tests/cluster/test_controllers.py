"""Controllers outside of a cluster: their webhooks really answer, and they do with runs what the charts count on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import manifests
import pytest

from chartgen.errors import UsageError
from chartgen.kube import (
    CLUSTER_QUEUE,
    JOBSET,
    MPIJOB,
    POD,
    PYTORCHJOB,
    VOLCANO_JOB,
    ClusterError,
    Kind,
    Object,
    wait_for,
)
from chartgen.kube.workloads import outcome
from chartgen.rehearsal.controllers import start_controllers
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import look, wait_for_verdict

OWNER = {"app.kubernetes.io/instance": "short-lived"}

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    names = create_machines(plane.cluster, [manifests.pool("few", 4)])
    yield plane
    delete_machines(plane.cluster, names)


def start(plane: ControlPlane, run: Object) -> None:
    plane.cluster.apply([run])
    verdict = wait_for_verdict(plane.cluster, run["metadata"]["name"], timeout=180)
    assert verdict.ok, verdict.reasons


def end(plane: ControlPlane, pod: str, phase: str) -> None:
    """Let a pod end: what a kubelet would report."""
    ended = {"exitCode": 7 if phase == "Failed" else 0, "reason": "Error", "startedAt": None, "finishedAt": None}
    status = {"name": "train", "ready": False, "restartCount": 0, "image": "x", "imageID": "x"}
    change = {"status": {"phase": phase, "containerStatuses": [{**status, "state": {"terminated": ended}}]}}
    plane.cluster.patch(POD, pod, change, namespace="default", subresource="status")


def pods(plane: ControlPlane, release: str) -> dict[str, str]:
    found = plane.cluster.list(POD, labels={"app.kubernetes.io/instance": release})
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in found}


def phase(plane: ControlPlane, name: str) -> dict[str, Any]:
    return (plane.cluster.get(VOLCANO_JOB, name) or {}).get("status", {}).get("state", {})  # type: ignore[no-any-return]


def wait_for_phase(plane: ControlPlane, name: str, wanted: str) -> None:
    wait_for(lambda: phase(plane, name).get("phase") == wanted, what=f"that {name} is {wanted}", timeout=180)


def test_jobset_refuses_and_defaults(plane: ControlPlane) -> None:
    jobset = manifests.jobset("defaulted", 2)
    del jobset["spec"]["failurePolicy"]
    created = plane.cluster.create(JOBSET, jobset, dry_run=True)
    assert created["spec"]["successPolicy"]["operator"] == "All"
    jobset["metadata"]["name"] = "a" * 63
    with pytest.raises(ClusterError, match=r"denied the request.*JobSet name is too long"):
        plane.cluster.create(JOBSET, jobset, dry_run=True)


def test_kueue_suspends_what_has_a_queue(plane: ControlPlane) -> None:
    queued = plane.cluster.create(JOBSET, manifests.jobset("queued", 2, queue="any"), dry_run=True)
    assert queued["spec"]["suspend"] is True
    free = plane.cluster.create(JOBSET, manifests.jobset("free", 2), dry_run=True)
    assert free["spec"].get("suspend") in {None, False}


def test_kueue_refuses_a_wrong_queue(plane: ControlPlane) -> None:
    objects = manifests.queue("wrong", 8)
    queue = next(item for item in objects if item["kind"] == "ClusterQueue")
    queue["spec"]["resourceGroups"][0]["coveredResources"] = ["nvidia.com/gpu"]
    with pytest.raises(ClusterError, match=r"Invalid value|must contain"):
        plane.cluster.apply([queue])


def test_kueue_converts_to_its_older_version(plane: ControlPlane) -> None:
    plane.cluster.apply(manifests.queue("old", 8))
    older = Kind("kueue.x-k8s.io/v1beta1", "ClusterQueue", CLUSTER_QUEUE.plural, namespaced=False)
    found = plane.cluster.get(older, "old") or {}
    assert found["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    assert found["spec"]["resourceGroups"][0]["flavors"][0]["name"] == "old"


def test_what_a_jobset_owns_goes_with_it_at_once(plane: ControlPlane) -> None:
    """The garbage collector must know the kinds of the controllers, which it otherwise learns every 30 s."""
    plane.cluster.apply([manifests.jobset("short-lived", 2)])
    wait_for(lambda: len(plane.cluster.list(POD, labels=OWNER)) == 2, what="that the pods exist", timeout=180)
    plane.cluster.delete(JOBSET, "short-lived", foreground=True)
    wait_for(lambda: not plane.cluster.list(JOBSET, labels=OWNER), what="that the JobSet is gone", timeout=180)
    assert plane.cluster.list(POD, labels=OWNER) == []


def test_an_unknown_controller_is_a_usage_error(plane: ControlPlane) -> None:
    with pytest.raises(UsageError, match="unknown controller 'kueu'; did you mean kueue"):
        start_controllers(plane, ["kueu"])


def test_an_unknown_field_is_refused(plane: ControlPlane) -> None:
    flavor = manifests.queue("odd", 8, topology=False)[0]
    flavor["spec"]["a"] = 1
    with pytest.raises(ClusterError, match=r"field not declared in schema|unknown field"):
        plane.cluster.apply([flavor])


def test_a_kind_without_crd_is_named(plane: ControlPlane) -> None:
    item = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "x"}}
    with pytest.raises(ClusterError, match="has no LeaderWorkerSet"):
        plane.cluster.apply([item])


def test_volcano_refuses_a_queue_that_does_not_exist_and_defaults_what_is_left_out(plane: ControlPlane) -> None:
    run = manifests.volcano_job("left-out", 2)
    for task in run["spec"]["tasks"]:
        del task["minAvailable"]
    created = plane.cluster.create(VOLCANO_JOB, run, dry_run=True)
    assert [task["minAvailable"] for task in created["spec"]["tasks"]] == [1, 2]
    run["spec"]["queue"] = "nosuch"
    with pytest.raises(ClusterError, match=r'unable to find job queue: .* "nosuch" not found'):
        plane.cluster.create(VOLCANO_JOB, run, dry_run=True)


def test_an_unchanged_volcano_job_is_applied_again_without_effect(machines: ControlPlane) -> None:
    run = manifests.volcano_job("again", 2, pool="few")
    start(machines, run)
    before = machines.cluster.get(VOLCANO_JOB, "again") or {}
    machines.cluster.apply([run])
    after = machines.cluster.get(VOLCANO_JOB, "again") or {}
    assert before["metadata"]["generation"] == after["metadata"]["generation"]
    del run["spec"]["tasks"][1]["maxRetry"]
    with pytest.raises(ClusterError, match="job updates may not change fields"):
        machines.cluster.apply([run])
    machines.cluster.delete(VOLCANO_JOB, "again")


def test_a_failed_worker_restarts_a_volcano_job_and_then_fails_it(machines: ControlPlane) -> None:
    start(machines, manifests.volcano_job("fragile", 3, restarts=1, pool="few"))
    first = {pod["metadata"]["uid"] for pod in machines.cluster.list(POD, labels={"volcano.sh/job-name": "fragile"})}
    end(machines, "fragile-worker-1", "Failed")
    wait_for(lambda: phase(machines, "fragile").get("phase") != "Running", what="a restart", timeout=180)
    wait_for_phase(machines, "fragile", "Running")
    second = {pod["metadata"]["uid"] for pod in machines.cluster.list(POD, labels={"volcano.sh/job-name": "fragile"})}
    assert not first & second, "a restart replaces all pods, the master too"
    end(machines, "fragile-worker-2", "Failed")
    wait_for_phase(machines, "fragile", "Failed")
    wait_for(lambda: len(pods(machines, "fragile")) == 1, what="that the other pods are gone", timeout=180)
    assert pods(machines, "fragile") == {"fragile-worker-2": "Failed"}
    what, *then = look(machines.cluster, "fragile").reasons
    assert "fragile-worker-2" in what
    assert "exit code 7" in what
    assert "Job fragile has failed: Failed, attempt 2" in then
    machines.cluster.delete(VOLCANO_JOB, "fragile")


def test_the_master_of_a_volcano_job_completes_it(machines: ControlPlane) -> None:
    start(machines, manifests.volcano_job("done", 3, pool="few"))
    end(machines, "done-master-0", "Succeeded")
    wait_for_phase(machines, "done", "Completed")
    wait_for(lambda: pods(machines, "done") == {"done-master-0": "Succeeded"}, what="that the workers go", timeout=180)
    machines.cluster.delete(VOLCANO_JOB, "done")


def test_the_training_operator_refuses_a_container_of_another_name(plane: ControlPlane) -> None:
    run = manifests.pytorchjob("misnamed", 2)
    run["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "train"
    with pytest.raises(ClusterError, match="must have at least one container with name pytorch"):
        plane.cluster.create(PYTORCHJOB, run, dry_run=True)


def test_kueue_holds_a_pytorchjob_back_until_it_is_admitted(machines: ControlPlane) -> None:
    run = manifests.pytorchjob("held", 2, queue="few", pool="few")
    assert machines.cluster.create(PYTORCHJOB, run, dry_run=True)["spec"]["runPolicy"]["suspend"] is True
    machines.cluster.apply(manifests.queue("few", 32))
    start(machines, run)
    admitted = machines.cluster.get(PYTORCHJOB, "held") or {}
    assert admitted["spec"]["runPolicy"]["suspend"] is False
    machines.cluster.apply([run])
    again = machines.cluster.get(PYTORCHJOB, "held") or {}
    assert again["metadata"]["generation"] == admitted["metadata"]["generation"]
    machines.cluster.delete(PYTORCHJOB, "held")


def test_a_failed_worker_fails_a_pytorchjob_and_frees_the_others(machines: ControlPlane) -> None:
    start(machines, manifests.pytorchjob("torn", 3, pool="few"))
    end(machines, "torn-worker-1", "Failed")
    wait_for(lambda: pods(machines, "torn") == {"torn-worker-1": "Failed"}, what="that the others go", timeout=180)
    failed = "PyTorchJob torn has failed: Job torn has failed because it has reached"
    wait_for(lambda: failed in str(look(machines.cluster, "torn").reasons), what="that it has failed", timeout=180)
    machines.cluster.delete(PYTORCHJOB, "torn")


def test_kueue_holds_an_mpijob_back_with_its_master_and_places_its_workers(machines: ControlPlane) -> None:
    run = manifests.mpijob("held-mpi", 2, queue="few", pool="few", topology=True)
    assert machines.cluster.create(MPIJOB, run, dry_run=True)["spec"]["runPolicy"]["suspend"] is True
    machines.cluster.apply(manifests.queue("few", 32))
    start(machines, run)
    admitted = machines.cluster.get(MPIJOB, "held-mpi") or {}
    assert admitted["spec"]["runPolicy"]["suspend"] is False
    machines.cluster.apply([run])
    again = machines.cluster.get(MPIJOB, "held-mpi") or {}
    assert again["metadata"]["generation"] == admitted["metadata"]["generation"]
    machines.cluster.delete(MPIJOB, "held-mpi")


def test_the_master_of_an_mpijob_ends_it_and_frees_the_others(machines: ControlPlane) -> None:
    for phase, ended in (("Succeeded", "finished"), ("Failed", "failed")):
        name = f"mpi-{ended}"
        start(machines, manifests.mpijob(name, 2, pool="few"))
        (master,) = (pod for pod in pods(machines, name) if "launcher" in pod)
        end(machines, master, phase)
        wait_for(lambda: outcome(mpijob(machines, name)) == ended, what=f"that it has {ended}", timeout=180)  # noqa: B023
        wait_for(lambda: pods(machines, name) == {master: phase}, what="that the workers go", timeout=180)  # noqa: B023
        machines.cluster.delete(MPIJOB, name)


def test_a_worker_that_is_lost_comes_back_under_the_same_number(machines: ControlPlane) -> None:
    start(machines, manifests.mpijob("mpi-lost", 2, pool="few"))
    place = "mpi-lost-worker-1"
    before = (machines.cluster.get(POD, place, "default") or {})["metadata"]["uid"]
    machines.cluster.delete(POD, place, "default")
    wait_for(
        lambda: (machines.cluster.get(POD, place, "default") or {}).get("metadata", {}).get("uid", before) != before,
        what="another pod",
        timeout=180,
    )
    assert outcome(mpijob(machines, "mpi-lost")) == ""
    machines.cluster.delete(MPIJOB, "mpi-lost")


def test_a_worker_that_fails_before_the_master_exists_is_told(machines: ControlPlane) -> None:
    machines.cluster.apply([manifests.mpijob("mpi-early", 5, pool="few")])  # of four machines
    wait_for(lambda: "Running" in pods(machines, "mpi-early").values(), what="a worker", timeout=180)
    victim = next(name for name, phase in pods(machines, "mpi-early").items() if phase == "Running")
    unready = {"type": "Ready", "status": "False", "reason": "PodFailed"}  # as a kubelet reports it
    change = {"status": {"phase": "Failed", "conditions": [unready]}}
    machines.cluster.patch(POD, victim, change, namespace="default", subresource="status")
    wait_for(
        lambda: any(victim in reason for reason in look(machines.cluster, "mpi-early").reasons),
        what="the reason",
        timeout=180,
    )
    # the freed machine goes to the worker that waited
    wait_for(lambda: [*pods(machines, "mpi-early").values()].count("Running") == 4, what="the others", timeout=180)
    assert outcome(mpijob(machines, "mpi-early")) == "", "the operator does not end it"
    assert not any("launcher" in name for name in pods(machines, "mpi-early"))
    machines.cluster.delete(MPIJOB, "mpi-early")


def mpijob(plane: ControlPlane, name: str) -> Object:
    return {"kind": MPIJOB.name, "apiVersion": MPIJOB.api_version, **(plane.cluster.get(MPIJOB, name) or {})}
