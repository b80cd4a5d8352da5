"""Facts of a pod: its rendezvous address, whether it runs, why it waits."""

from __future__ import annotations

import re
from typing import Any

from chartgen.kube import Object

_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_ORIGIN = re.compile(r"^pod group is not ready,.* Origin reason is [^:]+: ")
_NO_FAULT = {"SchedulingGated", "Schedulable"}
_GO_MESSAGE = re.compile(r'\bMessage:"((?:[^"\\]|\\.)*)"')
_METADATA = re.compile(r"metadata\.(?:(labels|annotations)\['([^']+)'\]|(name|namespace|uid))")


def rendezvous(pod: Object) -> str:
    """Return a pod's MASTER_ADDR:MASTER_PORT as its program receives them; empty without them."""
    for container in pod["spec"]["containers"]:
        env = _environment(container, pod)
        if address := env.get("MASTER_ADDR"):
            port = env.get("MASTER_PORT")
            return f"{address}:{port}" if port else address
    return ""


def is_started(pod: Object) -> bool:
    """Report whether a pod runs or has succeeded."""
    return pod.get("status", {}).get("phase") in {"Running", "Succeeded"}


def why_unplaced(pod: Object) -> str:
    """Return the scheduler's message for a pod that it cannot place; empty when it can."""
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            # Volcano marks pods that wait for other pods, and quotes the others in the gang's message.
            return "" if condition.get("reason") in _NO_FAULT else _ORIGIN.sub("", str(condition.get("message")))
    return ""


def refusal(message: str) -> str:
    """Return the API server's error in a message of a controller that prints it as a Go structure."""
    quoted = _GO_MESSAGE.search(message)
    return quoted[1].replace('\\"', '"') if quoted else message


def _environment(container: dict[str, Any], pod: Object) -> dict[str, str]:
    """Return a container's environment as the kubelet resolves it, as far as the pod defines it."""
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
