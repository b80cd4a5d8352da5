"""Replacements for what rendered objects refer to and a cluster has already: classes, drivers, claims, inputs of pods.

Each function takes rendered objects, and returns name -> manifest for what is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from chartgen.kube import CLAIM, CSI_DRIVER, STORAGE_CLASS, Object
from chartgen.kube.manifest_walk import maps, pods
from chartgen.kube.references import OF_PODS, references

_INPUTS = ("ConfigMap", "Secret")
# Kubernetes makes a ConfigMap with the certificate of its API server in each namespace (publisher of root CAs).
_OF_KUBERNETES = ("ConfigMap", "kube-root-ca.crt")
# Name of the replacement for the cluster's default class; no claim names it.
DEFAULT_CLASS = "default"
# The replacement for the class of claims that the cluster has already.
_CLASS_OF_CLAIMS = "existing-claims"
_DRIVER = "simulated.chartgen.invalid"  # RFC 2606: a reserved domain
# kubernetes.io, Well-Known Annotations
_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def foreign_runtimes(objects: Iterable[Object]) -> dict[str, Object]:
    """Replace the runtime classes that pods use: the API server rejects a pod of an unknown one."""
    return _named_by_pods(list(objects), "runtimeClassName", "RuntimeClass", "node.k8s.io/v1", handler="runc")


def foreign_priorities(objects: Iterable[Object]) -> dict[str, Object]:
    """Replace the priority classes that pods use; the API server makes those of Kubernetes, `system-...`, itself."""
    made = _named_by_pods(list(objects), "priorityClassName", "PriorityClass", "scheduling.k8s.io/v1", value=0)
    return {name: item for name, item in made.items() if not name.startswith("system-")}


def foreign_classes(objects: Iterable[Object]) -> dict[str, Object]:
    """Replace the storage classes of claims, also inside of pods and jobs.

    A claim without `storageClassName` uses the cluster's default class; one with an empty name, or with the name of
    its volume, uses none.
    """
    found = list(objects)
    # only the specs of claims have both of these fields
    claims = [each for _, each in maps(found) if "accessModes" in each and "resources" in each]
    wanted = {spec.get("storageClassName") for spec in claims if not spec.get("volumeName")}
    names = _foreign(found, wanted - {None}, STORAGE_CLASS.name)
    classes = {name: _storage_class(name, default=False) for name in names}
    if None in wanted:
        free = DEFAULT_CLASS if DEFAULT_CLASS not in _own(found, STORAGE_CLASS.name) else f"{DEFAULT_CLASS}-class"
        classes[free] = _storage_class(free, default=True)
    return classes


def foreign_claims(objects: Iterable[Object], namespace: str) -> dict[str, list[Object]]:
    """Replace the claims that pods in a namespace mount, each with its class."""
    found = list(objects)
    sources = (each.get("persistentVolumeClaim") for _, each in maps(found))
    names = _foreign(found, {each["claimName"] for each in sources if isinstance(each, dict)}, CLAIM.name)
    head = {"apiVersion": CLAIM.api_version, "kind": CLAIM.name}
    spec = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Ti"}},
        "storageClassName": _CLASS_OF_CLAIMS,
    }
    kind = _storage_class(_CLASS_OF_CLAIMS, default=False)
    return {name: [kind, {**head, "metadata": {"name": name, "namespace": namespace}, "spec": spec}] for name in names}


def foreign_drivers(objects: Iterable[Object]) -> dict[str, Object]:
    """Replace the CSI drivers that volumes and storage classes name."""
    found = list(objects)
    volumes = (each.get("csi") for _, each in maps(found))
    named = {each["driver"] for each in volumes if isinstance(each, dict) and isinstance(each.get("driver"), str)}
    classes = {item["provisioner"] for item in found if item["kind"] == STORAGE_CLASS.name}
    named |= {name for name in classes if not name.startswith("kubernetes.io/")}
    return {name: _driver(name) for name in _foreign(found, named, CSI_DRIVER.name)}


def foreign_inputs(objects: Iterable[Object]) -> list[str]:
    """Return kind and name of each ConfigMap and Secret that pods need; simulated pods start without, real do not."""
    found = list(objects)
    own = {(item["kind"], item["metadata"]["name"]) for item in found}
    named = [each for item in found for pod in pods(item) for each in references(pod.spec, OF_PODS)]
    needed = {(each.kind, each.name) for each in named if not each.optional and each.kind in _INPUTS}
    return [f"{kind} {name}" for kind, name in sorted(needed - own - {_OF_KUBERNETES})]


def simulated_driver() -> Object:
    """Return the driver of the classes that this module makes."""
    return _driver(_DRIVER)


def _own(objects: list[Object], kind: str) -> set[str]:
    return {item["metadata"]["name"] for item in objects if item["kind"] == kind}


def _foreign(objects: list[Object], named: set[Any], kind: str) -> list[str]:
    """Return the names that are not those of objects of a kind."""
    return sorted(named - _own(objects, kind) - {""})


def _named_by_pods(objects: list[Object], field: str, kind: str, api_version: str, **rest: Any) -> dict[str, Object]:
    """Return an object for each name in a field, at any depth, that no object has."""
    named = {each[field] for _, each in maps(objects) if isinstance(each.get(field), str)}
    head = {"apiVersion": api_version, "kind": kind, **rest}
    return {name: {**head, "metadata": {"name": name}} for name in _foreign(objects, named, kind)}


def _driver(name: str) -> Object:
    head = {"apiVersion": CSI_DRIVER.api_version, "kind": CSI_DRIVER.name, "metadata": {"name": name}}
    return {**head, "spec": {"attachRequired": False, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}}


def _storage_class(name: str, *, default: bool) -> Object:
    return {
        "apiVersion": STORAGE_CLASS.api_version,
        "kind": STORAGE_CLASS.name,
        "metadata": {"name": name, "annotations": {_IS_DEFAULT: str(default).lower()}},
        "provisioner": _DRIVER,
        "volumeBindingMode": "Immediate",
    }
