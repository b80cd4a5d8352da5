"""A context for the tests of the doctor: a namespace with 4 machines and a queue, a run that fits, and what it says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import manifests

from chartgen.helm.chart import Chart
from chartgen.helm.values import Values
from chartgen.kube import NAMESPACE, Cluster, Object, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.releases.preflight import Diagnosis, examine

SPACE = "doctor"
HEAD = 'apiVersion: v2\nname: plain\nversion: 0.1.0\nkubeVersion: ">=1.29.0-0"\n'
PLAIN = Chart("plain", {"Chart.yaml": HEAD})


@contextmanager
def opened(plane: ControlPlane) -> Iterator[Cluster]:
    """A namespace, 4 machines with 8 GPUs each, and a queue for them, for the time of a `with` block."""
    names = create_machines(plane.cluster, [manifests.pool("ward", 4)])
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    plane.cluster.apply([space, *manifests.queue("ward", 32, SPACE)])
    wait_for(lambda: status(plane.cluster, "queue") == ["pass"], what="the queue", timeout=180)
    yield plane.cluster
    delete_machines(plane.cluster, names)
    plane.cluster.delete_object(space)
    wait_for(lambda: plane.cluster.get(NAMESPACE, SPACE) is None, what="that its namespace is gone", timeout=180)


def run(**pod: Any) -> Object:
    """A run of 4 machines that fits."""
    options = {"queue": "ward", "pool": "ward", "topology": True, **pod}
    return manifests.jobset("visit", 4, namespace=SPACE, **options)


def pod_spec(item: Object) -> Any:
    """The pod of a JobSet."""
    return item["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


def examined(cluster: Cluster, *items: Object, made: Chart = PLAIN, space: str = SPACE) -> list[Diagnosis]:
    return examine(cluster, made, Values({}), list(items) or [run()], "visit", space)


def found(cluster: Cluster, name: str, *items: Object, space: str = SPACE) -> list[tuple[str, str, str]]:
    """What one check says."""
    rows = [each for each in examined(cluster, *items, space=space) if each.name == name]
    return [(each.status, each.text, each.fix) for each in rows]


def status(cluster: Cluster, name: str, *items: Object) -> list[str]:
    return [row[0] for row in found(cluster, name, *items)]


def apply(cluster: Cluster, *items: Object) -> None:
    cluster.apply(items, namespace=SPACE)


def node(number: int) -> str:
    return f"ward-{number}"


def placed(cluster: Cluster) -> list[Object]:
    pods = cluster.list(cluster.kind("v1", "Pod"), namespace=SPACE)
    return [pod for pod in pods if pod["spec"].get("nodeName")]
