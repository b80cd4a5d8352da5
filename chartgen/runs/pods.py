"""What a pod says of itself: its GPUs, its rendezvous address, why it waits or failed."""

from __future__ import annotations

import re
from typing import Any

from chartgen.cluster import Object

_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_ORIGIN = re.compile(r"^pod group is not ready,.* Origin reason is [^:]+: ")
_NO_FAULT = {"SchedulingGated", "Schedulable"}
_GO_MESSAGE = re.compile(r'\bMessage:"((?:[^"\\]|\\.)*)"')
_METADATA = re.compile(r"metadata\.(?:(labels|annotations)\['([^']+)'\]|(name|namespace|uid))")


def gpus(pod: Object) -> int:
    """Count a pod's GPUs: the limits of all resources named <vendor>/gpu."""
    limits = [container.get("resources", {}).get("limits", {}) for container in pod["spec"]["containers"]]
    return sum(int(count) for each in limits for name, count in each.items() if name.endswith("/gpu"))


def rendezvous(pod: Object) -> str:
    """Give a pod's MASTER_ADDR:MASTER_PORT as its program would see it; empty when it has none."""
    for container in pod["spec"]["containers"]:
        env = _environment(container, pod)
        if address := env.get("MASTER_ADDR"):
            port = env.get("MASTER_PORT")
            return f"{address}:{port}" if port else address
    return ""


def is_started(pod: Object) -> bool:
    """Tell whether a pod runs, or has run to a good end."""
    return pod.get("status", {}).get("phase") in {"Running", "Succeeded"}


def failure(pod: Object) -> str:
    """Say how a pod failed; empty when it did not."""
    status = pod.get("status", {})
    if status.get("phase") != "Failed":
        return ""
    name = pod["metadata"]["name"]
    for container in status.get("containerStatuses", ()):
        ended = container.get("state", {}).get("terminated", {})
        if ended.get("exitCode"):
            return f"pod {name} failed: container {container['name']} ended with exit code {ended['exitCode']}"
    return f"pod {name} failed: {status.get('message') or status.get('reason') or 'no reason given'}"


def why_pending(pod: Object) -> str:
    """Say why the scheduler cannot place a pod, in the same words for all pods with one cause; empty when it can."""
    cause = why_unplaced(pod)
    return f"unschedulable: {cause}" if cause else ""


def why_unplaced(pod: Object) -> str:
    """Give what the scheduler says of a pod that it cannot place; empty when it can."""
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            # Volcano tells the pods that wait for others from the others, and quotes those in the gang's message.
            return "" if condition.get("reason") in _NO_FAULT else _ORIGIN.sub("", str(condition.get("message")))
    return ""


def refusal(message: str) -> str:
    """Give what the API server said in a message of a controller that prints its error as a Go structure."""
    quoted = _GO_MESSAGE.search(message)
    return quoted[1].replace('\\"', '"') if quoted else message


def _environment(container: dict[str, Any], pod: Object) -> dict[str, str]:
    """Resolve a container's environment as the kubelet does, as far as the pod itself tells."""
    env: dict[str, str] = {}
    for entry in container.get("env", ()):
        path = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        value = _field(path, pod) if path else entry.get("value", "")
        env[entry["name"]] = _REFERENCE.sub(lambda match: env.get(match[1], match[0]), value)
    return env


def _field(path: str, pod: Object) -> str:
    match = _METADATA.fullmatch(path)
    if match is None:
        return ""
    metadata = pod["metadata"]
    return str(metadata.get(match[1], {}).get(match[2], "") if match[1] else metadata.get(match[3], ""))
