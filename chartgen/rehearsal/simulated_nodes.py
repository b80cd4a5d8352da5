"""Simulated machines: Node objects that kwok keeps Ready, and the stages of nodes and pods."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from functools import partial
from typing import Any

from chartgen.kube import NODE, Cluster, ClusterError, Object, side_by_side
from chartgen.kube.node_pool import NodePool
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


def count_machines(pools: Iterable[NodePool]) -> int:
    """Count machines of the run, for reports."""
    return sum(pool.count for pool in pools if pool.counted)


def create_machines(cluster: Cluster, pools: Iterable[NodePool], *, progress: Progress | None = None) -> list[str]:
    """Create simulated machines, Ready at once, or update existing ones; return their names."""
    pools = list(pools)
    nodes = [node for pool in pools for node in pool.nodes()]
    if progress:
        progress(f"creating {count_machines(pools)} simulated machines")
    for node in nodes:
        node["status"]["conditions"] = [_READY]
    side_by_side(partial(_put, cluster, node) for node in nodes)
    return [node["metadata"]["name"] for node in nodes]


def delete_machines(cluster: Cluster, names: Iterable[str]) -> None:
    """Delete simulated machines from a sandbox."""
    for name in names:
        cluster.delete(NODE, name)


def _put(cluster: Cluster, node: Object) -> None:
    try:
        cluster.create(NODE, node)
    except ClusterError as error:
        if error.status != 409:
            raise
        name = node["metadata"]["name"]
        cluster.patch(NODE, name, {key: node[key] for key in ("metadata", "spec")})
        cluster.patch(NODE, name, {"status": node["status"]}, subresource="status")
