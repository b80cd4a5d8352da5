"""Replacements for the storage that a cluster has already: claims, storage classes, drivers of volumes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chartgen.kube import CLAIM, CSI_DRIVER, STORAGE_CLASS, Object
from chartgen.kube.manifest_walk import maps

# Name of the replacement for the cluster's default class; no claim names it.
DEFAULT_CLASS = "default"
# The replacement for the class of claims that the cluster has already.
_CLASS_OF_CLAIMS = "existing-claims"
_DRIVER = "simulated.chartgen.invalid"  # RFC 2606: a reserved domain
# kubernetes.io, Well-Known Annotations
_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def foreign_classes(objects: Iterable[Object]) -> dict[str, Object]:
    """Return a replacement for each storage class that claims in objects use and that is not among the objects.

    A claim without `storageClassName` uses the cluster's default class; one with an empty name, or with the name of
    its volume, uses none. Claims inside of pods and jobs count too.

    Args:
        objects: Rendered objects.

    Returns:
        Name of the class -> its manifest.
    """
    found = list(objects)
    own = {item["metadata"]["name"] for item in found if item["kind"] == STORAGE_CLASS.name}
    class_names = {spec.get("storageClassName") for spec in _claims(found) if not spec.get("volumeName")}
    names = sorted(name for name in class_names if name and name not in own)
    classes = {name: _storage_class(name, default=False) for name in names}
    if None in class_names:
        free = DEFAULT_CLASS if DEFAULT_CLASS not in own else f"{DEFAULT_CLASS}-class"
        classes[free] = _storage_class(free, default=True)
    return classes


def foreign_claims(objects: Iterable[Object], namespace: str) -> dict[str, list[Object]]:
    """Return a replacement for each claim that pods in objects mount and that is not among the objects.

    Args:
        objects: Rendered objects.
        namespace: Namespace of the pods.

    Returns:
        Name of the claim -> the manifests of its class and of itself.
    """
    found = list(objects)
    own = {item["metadata"]["name"] for item in found if item["kind"] == CLAIM.name}
    head = {"apiVersion": CLAIM.api_version, "kind": CLAIM.name}
    spec = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Ti"}},
        "storageClassName": _CLASS_OF_CLAIMS,
    }
    return {
        name: [
            _storage_class(_CLASS_OF_CLAIMS, default=False),
            {**head, "metadata": {"name": name, "namespace": namespace}, "spec": spec},
        ]
        for name in sorted({*_mounted(found)} - own)
    }


def _mounted(data: object) -> Iterator[str]:
    """Yield the claim of each volume at any depth."""
    for _, each in maps(data):
        if isinstance(source := each.get("persistentVolumeClaim"), dict):
            yield source["claimName"]


def foreign_drivers(objects: Iterable[Object]) -> dict[str, Object]:
    """Return a replacement for each CSI driver that volumes and storage classes in objects name.

    Args:
        objects: Rendered objects.

    Returns:
        Name of the driver -> its manifest.
    """
    found = list(objects)
    own = {item["metadata"]["name"] for item in found if item["kind"] == CSI_DRIVER.name}
    classes = {item["provisioner"] for item in found if item["kind"] == STORAGE_CLASS.name}
    named = {*_drivers(found), *(name for name in classes if not name.startswith("kubernetes.io/"))}
    return {name: _driver(name) for name in sorted(named - own)}


def simulated_driver() -> Object:
    """Return the driver of the classes that this module makes."""
    return _driver(_DRIVER)


def _driver(name: str) -> Object:
    head = {"apiVersion": CSI_DRIVER.api_version, "kind": CSI_DRIVER.name, "metadata": {"name": name}}
    return {**head, "spec": {"attachRequired": False, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}}


def _drivers(data: object) -> Iterator[str]:
    """Yield the driver of each CSI volume at any depth."""
    for _, each in maps(data):
        if isinstance(source := each.get("csi"), dict) and isinstance(source.get("driver"), str):
            yield source["driver"]


def _claims(data: object) -> Iterator[Object]:
    """Yield the specs of claims at any depth: only they have both of these fields."""
    return (each for _, each in maps(data) if "accessModes" in each and "resources" in each)


def _storage_class(name: str, *, default: bool) -> Object:
    return {
        "apiVersion": STORAGE_CLASS.api_version,
        "kind": STORAGE_CLASS.name,
        "metadata": {"name": name, "annotations": {_IS_DEFAULT: str(default).lower()}},
        "provisioner": _DRIVER,
        "volumeBindingMode": "Immediate",
    }
