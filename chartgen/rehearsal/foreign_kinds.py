"""Replacements for the kinds of a cloud: custom resources that have no effect.

A kind with a schema in chartgen/data/schemas has its fields; any other takes any content.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from chartgen.data.api_schemas import custom_kinds, kubernetes_groups, kubernetes_versions
from chartgen.kube import CRD, Cluster, Kind, Object
from chartgen.kube.controllers import group_of

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
    """Return the CRD of a kind.

    Args:
        versions: The kind in each of its versions.
    """
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
