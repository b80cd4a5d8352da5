"""Devices that pods claim: classes, one slice for each simulated machine, and the claims of ComputeDomains.

The API server, the scheduler and the controller of claims are real; only the drivers are simulated. A machine offers of
each class what one pod of a run claims, as a machine of the cloud does for a pod that takes all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from chartgen.kube import NODE, Cluster, Kind, Object
from chartgen.rehearsal.controllers.cloud import drive, spawn_driver
from chartgen.rehearsal.controlplane import ControlPlane

# Rehearsals map each class that the run claims to a resource of the same name in Kueue's configuration, always these:
# channels of ComputeDomains (NVIDIA/k8s-dra-driver-gpu v25.8, README.md), and RDMA adapters of GKE's managed DRANET
# (GoogleCloudPlatform/container-engine-accelerators @ c920498, gpudirect-rdma/nccl-test-managed-rdma.yaml).
CHANNEL = "compute-domain-default-channel.nvidia.com"
CLASSES = (CHANNEL, "mrdma.google.com")
_DRIVER = "devices.chartgen.invalid"
_TEMPLATE = Kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates")
_SLICE = Kind("resource.k8s.io/v1", "ResourceSlice", "resourceslices", namespaced=False)
_DOMAIN = Kind("resource.nvidia.com/v1beta1", "ComputeDomain", "computedomains")


def claimed_classes(objects: Iterable[Object]) -> tuple[str, ...]:
    """Return the device classes that claim templates among objects name."""
    return tuple(_counts(item for item in objects if item["kind"] == _TEMPLATE.name))


def start(plane: ControlPlane) -> None:
    """Start a process that does what the drivers of the devices do."""
    spawn_driver(plane, "devices", __name__)


def simulate(cluster: Cluster) -> None:
    """Make the claim templates of ComputeDomains, the classes that templates name, and a slice for each machine."""
    cluster.apply([_channel(domain) for domain in cluster.list(_DOMAIN)])
    counts = _counts(cluster.list(_TEMPLATE))
    if not counts:
        return
    cluster.apply([_class(name) for name in counts])
    known = {each["metadata"]["name"]: each for each in cluster.list(_SLICE)}
    for node in cluster.list(NODE):
        wanted = _slice(node, counts)
        found = known.get(wanted["metadata"]["name"])
        if not found or len(found["spec"]["devices"]) != len(wanted["spec"]["devices"]):
            cluster.apply([wanted])


def _channel(domain: Object) -> Object:
    metadata = domain["metadata"]
    owner = {"apiVersion": _DOMAIN.api_version, "kind": _DOMAIN.name, "name": metadata["name"], "uid": metadata["uid"]}
    name = domain["spec"]["channel"]["resourceClaimTemplate"]["name"]
    place = {"name": name, "namespace": metadata["namespace"], "ownerReferences": [owner]}
    exactly = {"deviceClassName": CHANNEL, "allocationMode": "ExactCount", "count": 1}
    spec = {"spec": {"devices": {"requests": [{"name": "channel", "exactly": exactly}]}}}
    return {"apiVersion": _TEMPLATE.api_version, "kind": _TEMPLATE.name, "metadata": place, "spec": spec}


def _counts(templates: Iterable[Object]) -> dict[str, int]:
    """Return the most devices of each class that one template asks for, by class."""
    counts: dict[str, int] = {}
    for template in templates:
        for name, count in _requests(template):
            counts[name] = max(count, counts.get(name, 0))
    return dict(sorted(counts.items()))


def _requests(template: Object) -> Iterator[tuple[str, int]]:
    for request in template["spec"]["spec"]["devices"]["requests"]:
        exactly = request.get("exactly") or {}
        if name := exactly.get("deviceClassName"):
            yield name, int(exactly.get("count", 1))


def _class(name: str) -> Object:
    expression = f'device.driver == "{_DRIVER}" && device.attributes["{_DRIVER}"].class == "{name}"'
    spec = {"selectors": [{"cel": {"expression": expression}}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def _slice(node: Object, counts: dict[str, int]) -> Object:
    metadata = node["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": metadata["name"], "uid": metadata["uid"]}
    devices: list[dict[str, Any]] = [
        {"name": f"class-{at}-{number}", "attributes": {"class": {"string": name}}}
        for at, (name, count) in enumerate(counts.items())
        for number in range(count)
    ]
    pool = {"name": metadata["name"], "generation": len(devices), "resourceSliceCount": 1}
    spec = {"driver": _DRIVER, "nodeName": metadata["name"], "pool": pool, "devices": devices}
    place = {"name": f"{metadata['name']}-devices", "ownerReferences": [owner]}
    return {"apiVersion": _SLICE.api_version, "kind": _SLICE.name, "metadata": place, "spec": spec}


if __name__ == "__main__":
    drive(simulate)
