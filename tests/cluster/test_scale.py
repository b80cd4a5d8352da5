"""Large clusters and runs: requests to the API server, and memory, do not grow with them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import manifests
import pytest
from proxy import Answer, faults_of

from chartgen.kube import EVENT, Object, connect
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.releases.preflight.context import PreflightContext
from chartgen.releases.preflight.nodes import machines_free
from chartgen.releases.status.events import removed_pods

SPACE = "scale"
LOST = 40
BEGIN = datetime.now(timezone.utc) - timedelta(minutes=5)


@pytest.fixture
def namespace(plane: ControlPlane) -> Iterator[str]:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    plane.cluster.apply([space])
    yield SPACE
    plane.cluster.delete_object(space)


def event(pod: str, reason: str, message: str, second: int) -> Object:
    """An event as the scheduler and the taint manager write it."""
    at = f"{BEGIN + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}"
    about = {"kind": "Pod", "namespace": SPACE, "name": pod, "apiVersion": "v1"}
    metadata = {"name": f"{pod}.{reason.lower()}.{second}", "namespace": SPACE}
    told = {"reason": reason, "message": message, "type": "Normal", "firstTimestamp": at, "lastTimestamp": at}
    return {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, **told}


@pytest.mark.engines
def test_lost_pods_take_as_many_requests_as_reasons(plane: ControlPlane, tmp_path: Path, namespace: str) -> None:
    for number in range(LOST):
        pod = f"run-{number}"
        placed = f"Successfully assigned {SPACE}/{pod} to machine-"
        plane.cluster.create(EVENT, event(pod, "Scheduled", f"{placed}before", 0))
        plane.cluster.create(EVENT, event(pod, "Scheduled", f"{placed}{number}", 1))
        plane.cluster.create(EVENT, event(pod, "TaintManagerEviction", "Marking for deletion", 10 + number))
    plane.cluster.create(EVENT, event("other-0", "Preempted", "by a pod", 2))
    run = {"metadata": {"name": "run"}}
    with faults_of(plane, tmp_path, lambda *_: None) as (config, seen), connect(kubeconfig=config) as cluster:
        found = removed_pods(cluster, [run], namespace)
        asked = [path for path in seen if "/events" in path]
    assert [(loss.pod, loss.machine) for loss in found] == [(f"run-{n}", f"machine-{n}") for n in range(LOST)]
    assert len(asked) == 5  # four reasons, and where pods were placed


def crowd(machine: str, page: int) -> Object:
    """A page of the pods of a large cluster, of the size that pods of service meshes have."""
    limits = {"resources": {"requests": {"nvidia.com/gpu": "1" if page == 0 else "0"}}}
    notes = {"sidecar.istio.io/status": "x" * 20_000}
    items = [
        {
            "metadata": {"name": f"pod-{page}-{number}", "namespace": "crowd", "annotations": notes},
            "spec": {"nodeName": machine, "containers": [{"name": "c", **(limits if number < 3 else {})}]},
        }
        for number in range(500)
    ]
    following = {"continue": str(page + 1)} if page < 9 else {}
    return {"kind": "PodList", "apiVersion": "v1", "metadata": following, "items": items}


@pytest.mark.engines
def test_the_pods_of_a_large_cluster_are_not_kept(plane: ControlPlane, tmp_path: Path) -> None:
    """5,000 pods of 20 kB each, 100 MB in all; the pages stand in for those of a cluster of that size."""
    names = create_machines(plane.cluster, [manifests.pool("crowd", 1)])

    def fault(_: str, path: str) -> Answer | None:
        if not path.startswith("/api/v1/pods?"):
            return None
        page = int(parse_qs(urlsplit(path).query).get("continue", ["0"])[0])
        return Answer(200, crowd(names[0], page))

    try:
        with faults_of(plane, tmp_path, fault) as (config, seen), connect(kubeconfig=config) as cluster:
            run = manifests.jobset("crowd", 1, pool="crowd")
            context = PreflightContext(cluster, None, None, [run], "crowd", "default")
            tracemalloc.start()
            (sign,) = machines_free(context)
            kept, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert sign.status == "warn"  # three GPUs are taken
        assert sum(path.startswith("GET /api/v1/pods?") for path in seen) == 10
        assert kept < 30_000_000
        assert most < 80_000_000, "a few pages, this test's own included, and not all of them"
    finally:
        delete_machines(plane.cluster, names)
