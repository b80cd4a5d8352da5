"""Replacements for what pods refer to and a cluster has already: runtime and priority classes, ConfigMaps, Secrets."""

from __future__ import annotations

from collections.abc import Iterable

from chartgen.kube import Object
from chartgen.kube.manifest_walk import inputs, maps, pods

# Kubernetes makes a ConfigMap with the certificate of its API server in each namespace (publisher of root CAs).
_OF_KUBERNETES = ("ConfigMap", "kube-root-ca.crt")


def foreign_runtimes(objects: Iterable[Object]) -> dict[str, Object]:
    """Return a replacement for each runtime class that pods in objects use and that is not among the objects.

    The API server rejects a pod of an unknown runtime class.

    Args:
        objects: Rendered objects.

    Returns:
        Name of the class -> its manifest.
    """
    names = _foreign(objects, "runtimeClassName", "RuntimeClass")
    head = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}
    return {name: {**head, "metadata": {"name": name}, "handler": "runc"} for name in names}


def foreign_priorities(objects: Iterable[Object]) -> dict[str, Object]:
    """Return a replacement for each priority class that objects use and that is not among the objects.

    The API server rejects a pod of an unknown priority class; it makes those of Kubernetes, `system-...`, itself.

    Args:
        objects: Rendered objects.

    Returns:
        Name of the class -> its manifest.
    """
    names = [each for each in _foreign(objects, "priorityClassName", "PriorityClass") if not each.startswith("system-")]
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {name: {**head, "metadata": {"name": name}, "value": 0} for name in names}


def foreign_inputs(objects: Iterable[Object]) -> list[str]:
    """Return the ConfigMaps and Secrets that pods in objects need and that are not among the objects.

    Simulated pods start without them, real ones do not.

    Args:
        objects: Rendered objects.

    Returns:
        Kind and name of each, such as `Secret hub`.
    """
    found = list(objects)
    own = {(item["kind"], item["metadata"]["name"]) for item in found}
    named = {(kind, name) for item in found for pod in pods(item) for _, kind, name in inputs(pod.spec)}
    return [f"{kind} {name}" for kind, name in sorted(named - own - {_OF_KUBERNETES})]


def _foreign(objects: Iterable[Object], key: str, kind: str) -> list[str]:
    """Return the names in a field at any depth that are not those of objects of a kind."""
    found = list(objects)
    own = {item["metadata"]["name"] for item in found if item["kind"] == kind}
    named = {each[key] for _, each in maps(found) if isinstance(each.get(key), str)}
    return sorted(named - own - {""})
