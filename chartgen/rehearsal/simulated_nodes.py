"""Simulated machines: Node objects that kwok keeps Ready."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from chartgen.errors import MissingToolError, Problem
from chartgen.kube import NODE, Cluster, ClusterError, Object
from chartgen.kube.node_pool import OWNER, NodePool
from chartgen.programs import Progress

_READY = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "simulated"}
_AT_ONCE = 4  # requests, of which each waits for etcd's disk
_LISTED_PER_SECOND = 1000  # longer intervals for more nodes, because repeated lists load the API server


def count_machines(pools: Iterable[NodePool]) -> int:
    """Count machines of the run, for reports."""
    return sum(pool.count for pool in pools if pool.counted)


def create_machines(
    cluster: Cluster,
    pools: Iterable[NodePool],
    *,
    timeout: float = 60.0,
    progress: Progress | None = None,
) -> list[str]:
    """Create simulated machines and wait until all are Ready; update existing ones.

    Args:
        cluster: A cluster with kwok.
        timeout: Seconds to wait while none becomes Ready.

    Returns:
        Their names.

    Raises:
        MissingToolError: They do not become Ready: the cluster has no kwok.
    """
    pools = list(pools)
    nodes = [node for pool in pools for node in pool.nodes()]
    names = [node["metadata"]["name"] for node in nodes]
    if progress:
        progress(f"creating {count_machines(pools)} simulated machines")
    for node in nodes:
        node["status"]["conditions"] = [_READY]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        list(threads.map(partial(_put, cluster), nodes))
    _wait_ready(cluster, set(names), timeout)
    return names


def delete_machines(cluster: Cluster, names: Iterable[str]) -> None:
    """Delete simulated machines from a sandbox."""
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


def _is_ready(node: Object) -> bool:
    """Report whether the scheduler would use a node: Ready, and without the taint of new nodes."""
    conditions = node.get("status", {}).get("conditions", ())
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    taints = node["spec"].get("taints", ())
    return ready and not any(taint["key"].startswith("node.kubernetes.io/") for taint in taints)
