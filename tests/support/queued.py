"""A namespace with the queue of a target's setup chart, and simulated machines for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chartgen.composer.assembly import compose_setup
from chartgen.composer.node_pools import node_pool
from chartgen.composer.target import load_target
from chartgen.helm.manifests import objects, render
from chartgen.helm.yaml import Plain
from chartgen.kube import CLUSTER_QUEUE, NAMESPACE, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines


@contextmanager
def queued_machines(
    plane: ControlPlane, space: str, workload: str, count: int, values: dict[str, Plain]
) -> Iterator[list[str]]:
    """Create machines of onprem-p8000 and the queue p8000 that values of its setup describe; yield their names."""
    target = load_target("onprem-p8000")
    chart = compose_setup(target, workload)
    assert chart is not None
    setup = objects(render(chart, "setup", space, {**values, "queue": {"name": "p8000"}}))
    names = create_machines(plane.cluster, [node_pool(target.default_machine, count)])
    plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}])
    plane.cluster.apply(setup, namespace=space)
    wait_for(lambda: _is_active(plane, "p8000"), what="that the queue is active", timeout=180)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(plane.kubeconfig))
        yield names
    plane.cluster.delete(NAMESPACE, space)
    for item in setup:
        plane.cluster.delete_object(item, namespace=space)
    delete_machines(plane.cluster, names)


def _is_active(plane: ControlPlane, queue: str) -> bool:
    """Report whether Kueue has seen a queue and all of its flavors, which it does one by one."""
    conditions = (plane.cluster.get(CLUSTER_QUEUE, queue) or {}).get("status", {}).get("conditions", [])
    return ("Active", "True") in {(each["type"], each["status"]) for each in conditions}
