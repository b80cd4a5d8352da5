"""Strict Kubernetes schemas, offline: check rendered objects against a Kubernetes version and the shipped CRDs.

Rules that CRDs and the API server state as code (CEL, defaulting, webhooks) are left out; a rehearsal applies them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from chartgen.data.api_schemas import kind_schema, kubernetes_groups, kubernetes_versions, whole_groups
from chartgen.findings import PartProblem
from chartgen.helm.yaml import type_name
from chartgen.kube.manifest_walk import Object, is_template, metadata, pods
from chartgen.kube.object_rules import object_faults
from chartgen.kube.run_kinds import run_kind
from chartgen.kube.validation import full_name, spelled

_METADATA = {"$ref": full_name("pkg.apis.meta.v1.ObjectMeta")}
_POD = {"$ref": full_name("core.v1.PodSpec")}


def objects_fit_their_schema(thing: Object, kubernetes: str) -> Iterator[PartProblem]:
    """An object matches the schema of its kind: the API server drops or rejects fields that it does not know."""
    for key in ("apiVersion", "kind"):
        if not isinstance(thing.get(key), str):
            yield PartProblem(f"{key} must be text, not {type_name(thing.get(key))}", f"write its {key}", (key,))
    name = f"{thing.get('apiVersion')}/{thing.get('kind')}"
    found, _ = kind_schema(name, kubernetes)
    if found is None:
        return
    is_custom = _group(thing) not in kubernetes_groups(kubernetes)
    # the API server sets the status of its own kinds, whatever a manifest has there, such as `status: {}`
    given = thing if is_custom else {key: part for key, part in thing.items() if key != "status"}
    faults = list(_faults(given, found, kubernetes, is_custom=is_custom))
    newest = kubernetes_versions()[-1]
    later, _ = kind_schema(name, newest)
    if later and kubernetes != newest and any(_is_lack(each) for each in faults):
        # older schemas require fields that no API server ever did (defaults.go of its kind); newer schemas dropped them
        asked = {(each.at, each.message) for each in _faults(given, later, newest, is_custom=is_custom)}
        faults = [each for each in faults if not _is_lack(each) or (each.at, each.message) in asked]
    # the type of a part comes before its limits
    for fault in {fault.at: fault for fault in reversed(faults)}.values():
        yield PartProblem(f"{spelled(fault.at)}: {fault.message}", fault.hint, fault.at)


def _is_lack(fault: PartProblem) -> bool:
    return fault.message.startswith("lacks the field")


def _faults(thing: Object, schema: dict[str, Any], kubernetes: str, *, is_custom: bool) -> Iterator[PartProblem]:
    """Yield the faults of an object; those of the pods of a run are found by its controller, not by the API server."""
    yield from object_faults(thing, schema, kubernetes)
    if is_custom:
        yield from object_faults(metadata(thing), _METADATA, kubernetes, ("metadata",))
        for pod in pods(thing) if run_kind(thing) else ():
            if is_template(thing, pod):
                yield from object_faults(pod.spec, _POD, kubernetes, pod.at)


def kinds_are_served(thing: Object, kubernetes: str) -> Iterator[PartProblem]:
    """Kubernetes serves the object's API version; the API server rejects others.

    A template that queries `.Capabilities` is trusted: without a cluster, Helm reports every version that it has ever
    known as served.
    """
    if not _is_known(thing, kubernetes) and _group(thing) in whole_groups(kubernetes):
        yield PartProblem(
            f"{thing.get('apiVersion')} {thing.get('kind')} is not served",
            at=("apiVersion",),
            is_satisfied=lambda text: _states(text, str(thing.get("apiVersion"))),
        )


def kinds_are_known(thing: Object, kubernetes: str) -> Iterator[PartProblem]:
    """Lint has a schema for the kind of every object; without a schema the object is not checked."""
    if not _is_known(thing, kubernetes) and _group(thing) not in whole_groups(kubernetes):
        message = f"not checked: no schema for {thing.get('apiVersion')} {thing.get('kind')}"
        yield PartProblem(message, at=("apiVersion",))


def _is_known(thing: Object, kubernetes: str) -> bool:
    """Report whether an object's kind has a schema, or cannot have one."""
    names = [name for name in (thing.get("apiVersion"), thing.get("kind")) if isinstance(name, str)]
    return len(names) < 2 or kind_schema("/".join(names), kubernetes)[0] is not None


def _group(thing: Object) -> str:
    return str(thing.get("apiVersion")).rpartition("/")[0]


def _states(template: str, version: str) -> bool:
    """Report whether a template contains an API version literally and does not query the cluster for it."""
    literal = re.compile(
        rf"^[^#\n]*\bapiVersion[\"']?:\s*[\"']?{re.escape(version)}[\"']?\s*(?:[,}}#]|$)", re.MULTILINE
    )
    return ".Capabilities" not in template and bool(literal.search(template))
