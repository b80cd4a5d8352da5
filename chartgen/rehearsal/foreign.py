"""Replacements for what rendered objects need and a cluster already has: kinds, classes, drivers, claims, inputs.

Custom resources have no effect: a kind with a schema in chartgen/data/schemas has its fields, any other any content.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from chartgen.data.api_schemas import custom_kinds, kubernetes_groups, kubernetes_versions
from chartgen.kube import CLAIM, CRD, CSI_DRIVER, STORAGE_CLASS, Cluster, Kind, Object
from chartgen.kube.controllers import group_of
from chartgen.kube.manifest_walk import maps, pods
from chartgen.kube.references import OF_PODS, references

_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# The API server serves a CRD of a group below k8s.io only with this annotation (kubernetes/enhancements, KEP 1111).
_UNAPPROVED = {"api-approved.kubernetes.io": "unapproved, simulated by chartgen"}


def foreign_kinds(objects: Iterable[Object], crds: Iterable[Object], kinds: Iterable[Kind] = ()) -> dict[str, Object]:
    """Return a definition for each kind of objects that neither Kubernetes nor a controller serves.

    A kind of a group that Kubernetes serves, or another version of a known kind, is an error that stays one. Objects
    of any scope fit: Helm puts those without a namespace into the release's.

    Args:
        objects: Rendered objects; a CRD among them defines its kind.
        crds: The CRDs of the controllers.

    Returns:
        The kind and its group -> its CRD.
    """
    found = list(objects)
    own = [item for item in found if item["kind"] == CRD.name]
    known = {(each["spec"]["group"], each["spec"]["names"]["kind"]) for each in [*crds, *own]}
    known |= {(group_of(kind.api_version), kind.name) for kind in kinds}
    of_kubernetes = kubernetes_groups(kubernetes_versions()[-1])
    versions: dict[tuple[str, str], set[str]] = defaultdict(set)
    for item in found:
        group, name = group_of(item["apiVersion"]), item["kind"]
        # a group without a dot cannot be that of a CRD
        if "." in group and group not in of_kubernetes and (group, name) not in known:
            versions[group, name].add(item["apiVersion"])
    return {
        f"{name} of {group}": definition(
            [Kind(each, name, f"{name.lower()}s") for each in sorted(versions[group, name])]
        )
        for group, name in sorted(versions)
    }


def register(cluster: Cluster, crds: Iterable[Object]) -> None:
    """Create CRDs and wait until the API server serves their kinds, in each served version."""
    made = list(crds)
    cluster.apply(made)
    for spec in (crd["spec"] for crd in made):
        for version in (version for version in spec["versions"] if version["served"]):
            cluster.kind(f"{spec['group']}/{version['name']}", spec["names"]["kind"])


def definition(versions: list[Kind]) -> Object:
    """Return the CRD of a kind with several versions."""
    kind = versions[0]
    group = group_of(kind.api_version)
    names = {"kind": kind.name, "plural": kind.plural, "singular": kind.name.lower(), "listKind": f"{kind.name}List"}
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.name,
        "metadata": {"name": f"{kind.plural}.{group}", "annotations": _UNAPPROVED},
        "spec": {
            "group": group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": names,
            "versions": [_version(version, storage=version is kind) for version in versions],
        },
    }


def _version(kind: Kind, *, storage: bool) -> Object:
    schema = _structural(custom_kinds().get(f"{kind.api_version}/{kind.name}", _ANY))
    name = kind.api_version.rpartition("/")[2]
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}


def _structural(schema: Any) -> Any:
    """Return a packed schema as a CRD accepts it: with a mark in place of a list of types."""
    if isinstance(schema, list):
        return [_structural(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(schema.get("type"), list):
        return {"x-kubernetes-int-or-string": True}
    return {key: _structural(value) for key, value in schema.items()}


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
