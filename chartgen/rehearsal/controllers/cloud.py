"""Additions of clouds to Kubernetes that charts need: their own kinds, and volumes for claims.

The kinds have no effect. Simulated machines mount nothing, so a volume exists by name only.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from chartgen.kube import CLAIM, STORAGE_CLASS, Cluster, ClusterError, Kind, Object, connect
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.foreign import definition, register

KINDS = (
    Kind("networking.gke.io/v1", "Network", "networks", namespaced=False),
    Kind("networking.gke.io/v1", "GKENetworkParamSet", "gkenetworkparamsets", namespaced=False),
    Kind("resource.nvidia.com/v1beta1", "ComputeDomain", "computedomains"),
)
_INTERVAL = 0.5


def start_kinds(plane: ControlPlane) -> None:
    """Register the clouds' own kinds with the API server."""
    register(plane.cluster, [definition([kind]) for kind in KINDS])


def start_storage(plane: ControlPlane) -> None:
    """Start a process that makes volumes for claims, as the clouds' storage drivers do."""
    spawn_driver(plane, "cloud-storage", __name__)


def provision(cluster: Cluster) -> None:
    """Make a volume for each claim without one whose storage class exists."""
    drivers = {item["metadata"]["name"]: item["provisioner"] for item in cluster.list(STORAGE_CLASS)}
    for claim in cluster.list(CLAIM):
        driver = drivers.get(claim["spec"].get("storageClassName"))
        if driver and not claim["spec"].get("volumeName"):
            cluster.apply([_volume(claim, driver)])


def _volume(claim: Object, driver: str) -> Object:
    metadata, spec = claim["metadata"], claim["spec"]
    name = f"pvc-{metadata['uid']}"
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": spec["resources"]["requests"],
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Retain",
            # with its uid, as a storage driver writes it: this binds the claim at once, not at the next sync
            "claimRef": {key: metadata[key] for key in ("namespace", "name", "uid")},
            "csi": {"driver": driver, "volumeHandle": name},
        },
    }


def spawn_driver(plane: ControlPlane, name: str, module: str) -> None:
    """Start a module whose main part is `drive`."""
    plane.processes.spawn(name, [sys.executable, "-m", module, plane.kubeconfig])


def drive(step: Callable[[Cluster], None]) -> None:
    """Repeat a step forever on the cluster of this process's argument."""
    with connect(kubeconfig=Path(sys.argv[1])) as cluster:
        while True:
            try:
                step(cluster)
            except ClusterError as error:
                print(error, file=sys.stderr, flush=True)  # noqa: T201  the process's log
            time.sleep(_INTERVAL)


if __name__ == "__main__":
    drive(provision)
