"""Claims of devices on the real API server, scheduler and Kueue, with simulated drivers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import manifests
import pytest

from chartgen.kube import JOBSET, Kind, Object, wait_for
from chartgen.rehearsal.controllers.devices import CHANNEL
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import look, wait_for_verdict

CLAIM = Kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims")
ADAPTERS = "mrdma.google.com"

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    names = create_machines(plane.cluster, [manifests.pool("claimed", 2)])
    plane.cluster.apply(queue())
    yield plane
    delete_machines(plane.cluster, names)


def queue() -> list[Object]:
    """A queue with topology for two machines, which covers the devices too."""
    objects = manifests.queue("claimed", 16)
    (group,) = next(item for item in objects if item["kind"] == "ClusterQueue")["spec"]["resourceGroups"]
    group["coveredResources"] += [CHANNEL, ADAPTERS]
    counts = {CHANNEL: "2", ADAPTERS: "16"}
    group["flavors"][0]["resources"] += [{"name": name, "nominalQuota": count} for name, count in counts.items()]
    return objects


def claiming(name: str, device_class: str, count: int) -> list[Object]:
    """A run of two machines whose pods claim the channel of a ComputeDomain, and adapters."""
    request = {"name": "adapters", "exactly": {"deviceClassName": device_class, "count": count}}
    template: Object = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": f"{name}-adapters"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": name},
        "spec": {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": f"{name}-channel"}}},
    }
    run = manifests.jobset(name, 2, queue="claimed", pool="claimed", topology=True)
    pod: dict[str, Any] = run["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    kinds = ("channel", "adapters")
    pod["resourceClaims"] = [{"name": kind, "resourceClaimTemplateName": f"{name}-{kind}"} for kind in kinds]
    pod["containers"][0]["resources"]["claims"] = [{"name": kind} for kind in kinds]
    return [domain, template, run]


def test_a_run_with_claims_goes_through_its_queue_and_gets_its_devices(machines: ControlPlane) -> None:
    machines.cluster.apply(claiming("domain", ADAPTERS, 8))
    verdict = wait_for_verdict(machines.cluster, "domain", timeout=180)
    assert verdict.ok, verdict.reasons
    found = machines.cluster.list(CLAIM, namespace="default")
    given = [each["status"]["allocation"]["devices"]["results"] for each in found]
    assert sorted(len(results) for results in given) == [1, 1, 8, 8]
    assert {result["pool"] for results in given for result in results} == {"claimed-0", "claimed-1"}
    machines.cluster.delete(JOBSET, "domain")


def test_a_device_class_that_kueue_does_not_map_is_why_a_run_waits(machines: ControlPlane) -> None:
    machines.cluster.apply(claiming("unmapped", "nic.example.com", 1))

    def told() -> bool:
        return any("nic.example.com" in reason for reason in look(machines.cluster, "unmapped").reasons)

    wait_for(told, what="the reason", timeout=180)
    machines.cluster.delete(JOBSET, "unmapped")
