"""Kueue and JobSet outside of a cluster: their webhooks and their conversion really answer."""

from __future__ import annotations

import manifests
import pytest

from chartgen.cluster import CLUSTER_QUEUE, JOBSET, POD, ClusterError, Kind, wait_for
from chartgen.errors import UsageError
from chartgen.rehearsal.controllers import start_controllers
from chartgen.rehearsal.controlplane import ControlPlane

OWNER = {"app.kubernetes.io/instance": "short-lived"}

pytestmark = pytest.mark.engines


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
    wait_for(lambda: len(plane.cluster.list(POD, labels=OWNER)) == 2, what="that the pods exist", timeout=20)
    plane.cluster.delete(JOBSET, "short-lived", foreground=True)
    wait_for(lambda: not plane.cluster.list(JOBSET, labels=OWNER), what="that the JobSet is gone", timeout=10)
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
    item = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "x"}}
    with pytest.raises(ClusterError, match="has no PyTorchJob"):
        plane.cluster.apply([item])
