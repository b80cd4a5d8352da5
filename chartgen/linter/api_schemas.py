"""Strict Kubernetes schemas, offline: rendered objects against the API of a Kubernetes version and of shipped CRDs.

Rules that CRDs and the API server state as code (CEL, defaulting, webhooks) are not part of it; a rehearsal applies
those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from chartgen.data.api_schemas import custom_kinds, kind_schema, served_groups
from chartgen.findings import Complaint
from chartgen.helm.yaml import type_name
from chartgen.kube.manifest_walk import Object, metadata
from chartgen.kube.validation import faults, spelled

_METADATA = {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}


def objects_fit_their_schema(thing: Object, kubernetes: str) -> Iterator[Complaint]:
    """An object fits the schema of its kind: fields that the API server does not know are dropped or refused.

    Args:
        thing: A rendered object.
        kubernetes: One of `kubernetes_versions`.
    """
    for key in ("apiVersion", "kind"):
        if not isinstance(thing.get(key), str):
            yield Complaint(f"{key} must be text, not {type_name(thing.get(key))}", f"write its {key}", (key,))
    name = f"{thing.get('apiVersion')}/{thing.get('kind')}"
    found, definitions = kind_schema(name, kubernetes)
    if found is None:
        return
    for fault in faults(thing, found, definitions):
        yield Complaint(f"{spelled(fault.at)}: {fault.message}", fault.hint, fault.at)
    if name in custom_kinds():
        for fault in faults(metadata(thing), _METADATA, definitions, ("metadata",)):
            yield Complaint(f"{spelled(fault.at)}: {fault.message}", fault.hint, fault.at)


def kinds_are_served(thing: Object, kubernetes: str) -> Iterator[Complaint]:
    """An object's API version is one that Kubernetes serves; the API server refuses others.

    A template that asks the cluster what it serves (`.Capabilities`) is believed: Helm, asked without a cluster, says
    that all versions are served that it has ever known.
    """
    if not _is_known(thing, kubernetes) and _group(thing) in served_groups(kubernetes):
        yield Complaint(
            f"{thing.get('apiVersion')} {thing.get('kind')} is not served",
            "use a version of the API that it serves",
            ("apiVersion",),
            holds=lambda text: _states(text, str(thing.get("apiVersion"))),
        )


def kinds_are_known(thing: Object, kubernetes: str) -> Iterator[Complaint]:
    """Every object has a kind that lint knows the schema of; what it does not know it has not checked."""
    if not _is_known(thing, kubernetes) and _group(thing) not in served_groups(kubernetes):
        message = f"there is no schema for {thing.get('apiVersion')} {thing.get('kind')}, so it was not checked"
        yield Complaint(message, "rehearse it, or ignore the finding with the reason", ("apiVersion",))


def _is_known(thing: Object, kubernetes: str) -> bool:
    """Report whether there is a schema of an object's kind, or nothing that a schema could be of."""
    names = [name for name in (thing.get("apiVersion"), thing.get("kind")) if isinstance(name, str)]
    return len(names) < 2 or kind_schema("/".join(names), kubernetes)[0] is not None


def _group(thing: Object) -> str:
    return str(thing.get("apiVersion")).rpartition("/")[0]


def _states(template: str, version: str) -> bool:
    """Report whether a template has an API version in so many words, and asks nobody about it."""
    literal = re.compile(rf"^\s*(?:-\s*)?apiVersion:\s*[\"']?{re.escape(version)}[\"']?\s*(?:#.*)?$", re.MULTILINE)
    return ".Capabilities" not in template and bool(literal.search(template))
