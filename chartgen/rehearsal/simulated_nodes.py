"""Simulated machines: Node objects that kwok keeps Ready, and the stages of nodes and pods."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from chartgen.errors import MissingToolError, Problem
from chartgen.kube import NODE, Cluster, ClusterError, Object
from chartgen.kube.node_pool import OWNER, NodePool
from chartgen.programs import Progress
from chartgen.rehearsal import engines

_NODE_PORT = "{{ with NodePort }}"  # kwok's stages write the port of its own server into a node here


def stages(run_seconds: float, kubelet: int) -> list[dict[str, Any]]:
    """Return kwok's stages: pods start at once, stop in a second and, when a Job owns them, succeed later.

    Pods that prepare data succeed at once, so that dependent runs can follow. Pods that a Job still counts fail when
    they are stopped, as under a kubelet: a Job with a podFailurePolicy waits for that before it removes its finalizer.

    Args:
        run_seconds: Seconds for which a pod of a Job runs.
        kubelet: Port of the kubelet of all machines.
    """
    seconds = {"pod-complete": run_seconds, "pod-delete": 1.0, "pod-stop": 1.0}
    found = engines.engine_objects("kwok", "stages.json")
    complete = next(stage for stage in found if stage["metadata"]["name"] == "pod-complete")
    data = copy.deepcopy(complete)
    data["metadata"]["name"] = "pod-complete-data"
    for stage, operator in ((complete, "NotIn"), (data, "In")):
        condition = {"key": '.metadata.labels["app.kubernetes.io/component"]', "operator": operator, "values": ["data"]}
        stage["spec"]["selector"]["matchExpressions"].append(condition)
    found += [data, _stop_stage(complete)]
    # Machines are created Ready, which spares their taints; kwok fills in their addresses.
    initialize = next(stage for stage in found if stage["metadata"]["name"] == "node-initialize")
    initialize["spec"]["selector"] = {
        "matchExpressions": [{"key": ".status.phase", "operator": "NotIn", "values": ["Running"]}]
    }
    for stage in found:
        template = stage["spec"].get("next", {}).get("statusTemplate", "")
        if _NODE_PORT in template:
            stage["spec"]["next"]["statusTemplate"] = template.replace(_NODE_PORT, f"{{{{ with {kubelet} }}}}")
        name, delay = stage["metadata"]["name"], stage["spec"].get("delay")
        if delay is not None and name.startswith("pod-"):
            delay["durationMilliseconds"] = int(seconds.get(name, 0.0) * 1000)
            delay.pop("jitterDurationMilliseconds", None)  # an upper bound of 5 s, which would shorten a longer delay
            delay.pop("jitterDurationFrom", None)  # the whole grace period, when a pod is deleted
    return found


def _stop_stage(complete: dict[str, Any]) -> dict[str, Any]:
    """Return the stage of stopped pods with a finalizer, derived from the stage of pods that succeed."""
    status = complete["spec"]["next"]["statusTemplate"]
    for success, failure in (("exitCode: 0", "exitCode: 143"), ("Completed", "Error"), ("Succeeded", "Failed")):
        status = status.replace(success, failure)
    present = [{"key": f".metadata.{name}", "operator": "Exists"} for name in ("deletionTimestamp", "finalizers")]
    running = {"key": ".status.phase", "operator": "In", "values": ["Running"]}
    spec = {
        "resourceRef": complete["spec"]["resourceRef"],
        "selector": {"matchExpressions": [*present, running]},
        "delay": {},
        "next": {"statusTemplate": status},
    }
    return {**complete, "metadata": {"name": "pod-stop"}, "spec": spec}


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
