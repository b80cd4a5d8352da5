"""A TrainJob under the real Trainer, JobSet and Kueue: one run from its queue to its end, and what is left of it."""

from __future__ import annotations

from collections.abc import Iterator

import manifests
import pytest
from answers import answer
from click.testing import Result
from kubelet import kubelet_of
from queued import queued_machines
from userlib import chartgen

from chartgen.kube import (
    CLUSTER_QUEUE,
    CONFIG_MAP,
    JOBSET,
    POD,
    TRAINING_RUNTIME,
    TRAINJOB,
    WORKLOAD,
    Kind,
    Object,
    wait_for,
)
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.verdict import Verdict, look
from chartgen.releases.status.readout import read_readout

SPACE, RELEASE = "trained", "tj"
SETS = ("--workload", "trainjob", "--set", "nodes=2,queue.name=p8000,run.maxRestarts=1,network.interface=tcp")
OURS = {"app.kubernetes.io/instance": RELEASE}

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[list[str]]:
    """The machines and the queue of a target, in a namespace."""
    with queued_machines(plane, SPACE, "trainjob", 2, {"nodes": 2}) as names:
        yield names


def test_life_of_a_trainjob(plane: ControlPlane, machines: list[str]) -> None:
    rows = answer(call("doctor", "onprem-p8000", RELEASE, *SETS, "--output", "json").stdout)["diagnoses"]
    assert {row["text"].split()[0] for row in rows if row["name"] == "controllers"} == {"JobSet", "Kueue", "trainer"}
    checks = {(row["name"], row["status"]) for row in rows}
    assert checks >= {
        (each, "pass") for each in ("api-versions", "admission", "pod-admission", "queue-quota", "machines")
    }
    assert ("queue-integration", "warn") in checks, "Kueue's configuration would tell, which here is no ConfigMap"

    plane.cluster.patch(CLUSTER_QUEUE, "p8000", {"spec": {"stopPolicy": "Hold"}})
    call("install", "onprem-p8000", RELEASE, *SETS, "--force")
    (run,) = listed(plane, TRAINJOB)
    assert run["spec"]["suspend"] is True
    assert "p8000" in " ".join(shown(plane).reasons), "it waits for its queue"
    plane.cluster.patch(CLUSTER_QUEUE, "p8000", {"spec": {"stopPolicy": "None"}})
    wait_for(lambda: shown(plane).ok, what="that it runs", timeout=180)

    name = run["metadata"]["name"]
    (admitted,) = listed(plane, TRAINJOB)
    assert [patch["manager"] for patch in admitted["spec"]["runtimePatches"]] == ["kueue.x-k8s.io/manager"]
    said = call("upgrade", "onprem-p8000", RELEASE, *SETS, "--yes").stderr
    assert f"TrainJob {name} continues unchanged" in said
    (after,) = listed(plane, TRAINJOB)
    assert after["metadata"]["generation"] == admitted["metadata"]["generation"]
    assert [item["metadata"]["name"] for item in listed(plane, TRAINING_RUNTIME)] == [name]

    first, second = pods(plane)
    with kubelet_of(plane, machines) as kubelet:
        kubelet.write(first, "[default3]:three")
        kubelet.write(second, "[default2]:ten", "[default3]:eleven")
        assert call("logs", RELEASE, "--rank", "11").stdout.splitlines() == ["[default3]:eleven"]

    end(plane, second, "Failed", 7)
    wait_for(lambda: len({*pods(plane)} - {first, second}) == 2, what="that all pods are new", timeout=180)
    wait_for(lambda: shown(plane).ok, what="that it runs again", timeout=180)
    assert "of the whole run 1" in call("status", RELEASE).stdout
    for pod in pods(plane):
        end(plane, pod, "Succeeded", 0)
    call("wait", RELEASE, "--for", "finished")
    # as after a failed upgrade, which Helm forgets
    (runtime,) = listed(plane, TRAINING_RUNTIME)
    metadata = {key: runtime["metadata"][key] for key in ("labels", "annotations")}
    forgotten = {**runtime, "metadata": {**metadata, "name": "forgotten", "namespace": SPACE}}
    plane.cluster.create(TRAINING_RUNTIME, forgotten)
    call("uninstall", RELEASE)
    for kind in (TRAINJOB, TRAINING_RUNTIME, JOBSET, POD, WORKLOAD):
        wait_for(lambda: plane.cluster.list(kind, namespace=SPACE) == [], what=f"that {kind.name}s go", timeout=180)  # noqa: B023
    left = [item["metadata"]["name"] for item in plane.cluster.list(CONFIG_MAP, namespace=SPACE)]
    assert [each for each in left if each != "kube-root-ca.crt"] == []


def test_doctor_rejects_a_trainer_that_kueue_cannot_use(plane: ControlPlane, machines: list[str]) -> None:
    assert machines
    labels = {"app": "trainer"}
    image = "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.1.0"
    pod = {"containers": [{"name": "manager", "image": image}], "tolerations": [{"operator": "Exists"}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    old = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "trainer"}, "spec": spec}
    plane.cluster.apply([old], namespace="kubeflow-system")

    def rows() -> set[tuple[str, str]]:
        shown = chartgen("doctor", "--namespace", SPACE, "--output", "json").stdout
        return {(row["status"], row["text"]) for row in answer(shown)["diagnoses"] if row["name"] == "controllers"}

    wanted = ("fail", "trainer v2.1.0 runs; the charts need 2.2 or newer")
    try:
        wait_for(lambda: wanted in rows(), what="that it is ready, and too old", timeout=180)
    finally:
        plane.cluster.delete_object(old, namespace="kubeflow-system")


def test_one_that_nobody_takes_up(plane: ControlPlane) -> None:
    run = manifests.trainjob("orphan")
    run["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"  # so that Trainer leaves it alone
    runtime = manifests.training_runtime("orphan", 2)
    plane.cluster.apply([runtime, run])
    try:
        wait_for(lambda: read_readout(plane.cluster, "orphan").causes, what="a cause", timeout=180)
        (cause,) = read_readout(plane.cluster, "orphan").causes
        assert "TrainJob orphan" in cause.message
        assert "Kubeflow Trainer does not run" in cause.message
        assert read_readout(plane.cluster, "orphan").pods_expected == 2
    finally:
        for item in (run, runtime):
            plane.cluster.delete_object(item, namespace="default")


def call(*arguments: str) -> Result:
    done = chartgen(*arguments, "--namespace", SPACE)
    assert done.exit_code == 0, done.output
    return done


def shown(plane: ControlPlane) -> Verdict:
    return look(plane.cluster, RELEASE, namespace=SPACE)


def listed(plane: ControlPlane, kind: Kind) -> list[Object]:
    return plane.cluster.list(kind, namespace=SPACE, labels=OURS)


def pods(plane: ControlPlane) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in listed(plane, POD) if "deletionTimestamp" not in pod["metadata"])


def end(plane: ControlPlane, pod: str, phase: str, code: int) -> None:
    """Let a pod end: what a kubelet would report."""
    ended = {"exitCode": code, "reason": "Error", "startedAt": None, "finishedAt": None}
    status = {"name": "node", "ready": False, "restartCount": 0, "image": "x", "imageID": "x"}
    change = {"status": {"phase": phase, "containerStatuses": [{**status, "state": {"terminated": ended}}]}}
    plane.cluster.patch(POD, pod, change, namespace=SPACE, subresource="status")
