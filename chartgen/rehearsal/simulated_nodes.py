"""Simulated machines: Node objects that kwok keeps Ready."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chartgen.errors import MissingToolError, Problem
from chartgen.kube import NODE, Cluster, ClusterError, Object
from chartgen.programs import Progress

# The label of every simulated machine.
OWNER = {"app.kubernetes.io/managed-by": "chartgen"}
_LISTED_PER_SECOND = 1000  # longer intervals for more nodes, because repeated lists load the API server
_LONGEST_NAME = 63  # of a label's value, because kubernetes.io/hostname contains the node's name


@dataclass(frozen=True)
class NodePool:
    """Machines of one type.

    Args:
        name: Prefix of their names, <name>-0, <name>-1, ...; characters invalid in a node name become dashes.
        count: Number of machines.
        capacity: Quantities by resource, such as {"nvidia.com/gpu": "8", "cpu": "208", "pods": "110"}.
        labels: Node labels beside hostname, os and arch; `{index}` in a value is the machine's number.
        taints: Node taints, each {"key", "value", "effect"}.
        counted: Whether reports count them as machines of the run.
    """

    name: str
    count: int
    capacity: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    counted: bool = True

    @property
    def names(self) -> list[str]:
        """Return the names of the machines."""
        # OCI shapes such as BM.GPU.H100.8 have capitals, Azure sizes such as Standard_ND96isr_H100_v5 underscores too.
        longest = _LONGEST_NAME - len(f"-{self.count}")
        # RFC 1123 subdomain: each part between dots begins and ends with a letter or digit
        parts = re.sub(r"[^a-z0-9.]+", "-", self.name.lower())[:longest].split(".")
        prefix = ".".join(filter(None, (part.strip("-") for part in parts))) or "machine"
        return [f"{prefix}-{number}" for number in range(self.count)]


def count_machines(pools: Iterable[NodePool]) -> int:
    """Count machines of the run, for reports."""
    return sum(pool.count for pool in pools if pool.counted)


def create_machines(
    cluster: Cluster, pools: Iterable[NodePool], *, timeout: float = 60.0, progress: Progress | None = None
) -> list[str]:
    """Create simulated machines and wait until all are Ready; update existing ones.

    Args:
        cluster: A cluster with kwok.
        pools: The machines.
        timeout: Seconds to wait while none becomes Ready.
        progress: Receives one line.

    Returns:
        Their names.

    Raises:
        MissingToolError: They do not become Ready: the cluster has no kwok.
    """
    pools = list(pools)
    nodes = [_node(pool, number, name) for pool in pools for number, name in enumerate(pool.names)]
    names = [node["metadata"]["name"] for node in nodes]
    if progress:
        progress(f"creating {count_machines(pools)} simulated machines")
    for node in nodes:
        _put(cluster, node)
    _wait_ready(cluster, set(names), timeout)
    return names


def delete_machines(cluster: Cluster, names: Iterable[str]) -> None:
    """Delete simulated machines from a persistent cluster."""
    for name in names:
        cluster.delete(NODE, name)


def _wait_ready(cluster: Cluster, names: set[str], timeout: float) -> None:
    from chartgen.errors import ChartgenError
    from chartgen.kube import wait_for

    missing = names

    def more_ready() -> bool:
        nonlocal missing
        before = len(missing)
        missing = names - {node["metadata"]["name"] for node in cluster.each(NODE, labels=OWNER) if _is_ready(node)}
        return len(missing) < before or not missing

    interval = max(0.2, len(names) / _LISTED_PER_SECOND)
    while missing:
        try:
            wait_for(more_ready, what="that a machine is Ready", timeout=timeout, interval=interval)
        except ChartgenError:
            problem = (
                f"{len(missing)} of {len(names)} simulated machines are not Ready, and none more for {timeout:.0f} s"
            )
            raise MissingToolError(Problem(problem, hint=f"is kwok running in {cluster}?")) from None
        if missing:
            time.sleep(interval)


def _put(cluster: Cluster, node: Object) -> None:
    try:
        cluster.create(NODE, node)
    except ClusterError as error:
        if error.status != 409:
            raise
        name = node["metadata"]["name"]
        cluster.patch(NODE, name, {key: node[key] for key in ("metadata", "spec")})
        cluster.patch(NODE, name, {"status": node["status"]}, subresource="status")


def _node(pool: NodePool, number: int, name: str) -> dict[str, Any]:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    own = {key: value.replace("{index}", str(number)) for key, value in pool.labels.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**labels, **own, **OWNER},
            "annotations": {"kwok.x-k8s.io/node": "fake"},  # mark for kwok in clusters with real nodes
        },
        "spec": {"taints": [dict(taint) for taint in pool.taints]},
        "status": {"capacity": dict(pool.capacity), "allocatable": dict(pool.capacity)},
    }


def _is_ready(node: Object) -> bool:
    """Report whether the scheduler would use a node: Ready, and without the taint of new nodes."""
    conditions = node.get("status", {}).get("conditions", ())
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    taints = node["spec"].get("taints", ())
    return ready and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)
