"""kwok's stages: the behaviour of simulated pods and machines."""

from __future__ import annotations

import copy
from typing import Any

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
