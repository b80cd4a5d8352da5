"""What a pod says of itself: its GPUs, its rendezvous address, why it waits or failed."""

from __future__ import annotations

import re
from typing import Any

from chartgen.kube import Object

_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_ORIGIN = re.compile(r"^pod group is not ready,.* Origin reason is [^:]+: ")
_NO_FAULT = {"SchedulingGated", "Schedulable"}
_GO_MESSAGE = re.compile(r'\bMessage:"((?:[^"\\]|\\.)*)"')
# Names the container that runs the program (kubernetes.io, Well-Known Labels, Annotations and Taints). Every pod of
# chartgen's charts has it; admission webhooks put containers of their own before that one.
_PROGRAM = "kubectl.kubernetes.io/default-container"
_METADATA = re.compile(r"metadata\.(?:(labels|annotations)\['([^']+)'\]|(name|namespace|uid))")


def program_of(pod: Object) -> dict[str, Any]:
    """Return the container of a pod that runs the program: the one that the pod names, else the first with GPUs."""
    containers: list[dict[str, Any]] = pod["spec"]["containers"]
    named = (pod["metadata"].get("annotations") or {}).get(_PROGRAM)
    found = [each for each in containers if each["name"] == named] or [each for each in containers if _gpus(each)]
    return (found or containers)[0]


def gpus(pod: Object) -> int:
    """Count a pod's GPUs: the limits of all resources named <vendor>/gpu."""
    return sum(map(_gpus, pod["spec"]["containers"]))


def rendezvous(pod: Object) -> str:
    """Return a pod's MASTER_ADDR:MASTER_PORT as its program would see it; empty when it has none."""
    for container in pod["spec"]["containers"]:
        env = _environment(container, pod)
        if address := env.get("MASTER_ADDR"):
            port = env.get("MASTER_PORT")
            return f"{address}:{port}" if port else address
    return ""


def is_started(pod: Object) -> bool:
    """Report whether a pod runs, or has run to a good end."""
    return pod.get("status", {}).get("phase") in {"Running", "Succeeded"}


def failure(pod: Object) -> str:
    """Say how a pod failed; empty when it did not."""
    status = pod.get("status", {})
    if status.get("phase") != "Failed":
        return ""
    name, program = pod["metadata"]["name"], program_of(pod)["name"]
    # a sidecar that ends with an error mostly follows the program
    for container in sorted(status.get("containerStatuses", ()), key=lambda each: bool(each["name"] != program)):
        ended = container.get("state", {}).get("terminated", {})
        if ended.get("exitCode"):
            return f"pod {name} failed: container {container['name']} ended with exit code {ended['exitCode']}"
    return f"pod {name} failed: {status.get('message') or status.get('reason') or 'no reason given'}"


def why_pending(pod: Object) -> str:
    """Say why the scheduler cannot place a pod, in the same words for all pods with one cause; empty when it can."""
    cause = why_unplaced(pod)
    return f"unschedulable: {cause}" if cause else ""


def why_unplaced(pod: Object) -> str:
    """Return what the scheduler says of a pod that it cannot place; empty when it can."""
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            # Volcano tells the pods that wait for others from the others, and quotes those in the gang's message.
            return "" if condition.get("reason") in _NO_FAULT else _ORIGIN.sub("", str(condition.get("message")))
    return ""


def refusal(message: str) -> str:
    """Return what the API server said in a message of a controller that prints its error as a Go structure."""
    quoted = _GO_MESSAGE.search(message)
    return quoted[1].replace('\\"', '"') if quoted else message


def _gpus(container: dict[str, Any]) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    return sum(int(count) for name, count in limits.items() if name.endswith("/gpu"))


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
