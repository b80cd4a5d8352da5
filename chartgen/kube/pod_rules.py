"""The API server's rules for a pod's parts beyond their types: limits of fields (data/limits.yaml), and relations.

Sources: kubernetes v1.36.3, pkg/apis/core/validation/validation.go; apimachinery v0.36.3, pkg/apis/meta/v1/validation.
The limits of `type_faults` are narrower than the server's where it accepts values that can never work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

from chartgen.data.api_schemas import kubernetes_versions
from chartgen.findings import PartProblem
from chartgen.helm.yaml import Keys
from chartgen.kube import quantities
from chartgen.kube.manifest_walk import repeated
from chartgen.kube.validation import Relation, Validator, full_name, limits_table, validator

_DIVISOR = re.compile(r"0|1([kMGTPE]|[KMGTPE]i)?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def type_faults(data: Any, name: str, at: Keys = ()) -> Iterator[PartProblem]:
    """Yield the faults for which the API server would reject a part of a pod, or that keep the pod from working.

    Args:
        name: Its type in core/v1, such as Toleration, or ObjectMeta.
    """
    of = "pkg.apis.meta" if name == "ObjectMeta" else "core"
    return _narrower().faults(data, {"$ref": full_name(f"{of}.v1.{name}")}, at)


@lru_cache(maxsize=1)
def _narrower() -> Validator:
    own = ((f"core.v1.{name}", partial(_of_runs, limits_table()[name])) for name in ("Volume", "VolumeProjection"))
    return validator(kubernetes_versions()[-1], (*RELATIONS.items(), *own), narrower=True)


def _toleration(data: dict[str, Any]) -> Iterator[PartProblem]:
    operator, effect = data.get("operator") or "Equal", data.get("effect") or ""
    if not data.get("key") and operator != "Exists":
        yield PartProblem("is not given", "give one, or use operator Exists to tolerate everything", ("key",))
    if operator == "Exists" and data.get("value"):
        yield PartProblem("does not go with operator Exists", "remove it, or use operator Equal", ("value",))
    if data.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield PartProblem("needs effect NoExecute", "use that effect, or remove it", ("tolerationSeconds",))


def _requirement(data: dict[str, Any]) -> Iterator[PartProblem]:
    operator, values = data.get("operator"), data.get("values") or []
    if operator in ("In", "NotIn") and not values:
        yield PartProblem(f"has operator {operator} and no values", "give values, or use Exists or DoesNotExist")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield PartProblem(f"do not go with operator {operator}", "remove them, or use In or NotIn", ("values",))
    elif operator in ("Gt", "Lt") and (len(values) != 1 or not _INTEGER.fullmatch(values[0])):
        yield PartProblem(f"has operator {operator}, which compares with one whole number", 'give one, such as ["8"]')


def _term(data: dict[str, Any]) -> Iterator[PartProblem]:
    for index, field in enumerate(data.get("matchFields") or ()):
        fits = field.get("operator") in ("In", "NotIn") and len(field.get("values") or ()) == 1
        if field.get("key") != "metadata.name" or not fits:
            message = "must compare metadata.name with one name"
            yield PartProblem(message, "use operator In with one value, or matchExpressions", ("matchFields", index))


def _neighbours(data: dict[str, Any]) -> Iterator[PartProblem]:
    selector, match = data.get("labelSelector"), data.get("matchLabelKeys") or []
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        if data.get(name) and selector is None:
            yield PartProblem("needs labelSelector", "give one, or remove it", (name,))
    selected = {*((selector or {}).get("matchLabels") or ())}
    selected |= {expression.get("key") for expression in (selector or {}).get("matchExpressions") or ()}
    for index, key in enumerate(match):
        if key in selected or key in (data.get("mismatchLabelKeys") or ()):
            yield PartProblem(f"{key} is selected twice", "keep one of the two", ("matchLabelKeys", index))


def _volume(data: dict[str, Any]) -> Iterator[PartProblem]:
    if len(given := [key for key, value in data.items() if value is not None and key != "name"]) > 1:
        yield PartProblem(f"has more than one source: {', '.join(given)}", "keep one of them")


def _of_runs(sources: list[str], data: dict[str, Any]) -> Iterator[PartProblem]:
    given = [key for key, value in data.items() if value is not None and key != "name"]
    for key in (each for each in given if each not in sources):
        yield PartProblem("is not a kind of volume that runs use", "use one of " + ", ".join(sources), (key,))
    if not given:
        yield PartProblem("has no source", f"give one, such as {sources[0]}")


def _projected(data: dict[str, Any]) -> Iterator[PartProblem]:
    paths = (
        (("sources", index, kind), item["path"])
        for index, source in enumerate(data.get("sources") or ())
        for kind in ("secret", "configMap", "downwardAPI")
        for item in (source.get(kind) or {}).get("items") or ()
    )
    for at, path in repeated(paths):
        yield PartProblem(f"writes {path} a second time", "use another path", at)


def _resource(data: dict[str, Any]) -> Iterator[PartProblem]:
    divisor, units = str(data.get("divisor", "0")), "1 or 1m" if data["resource"].endswith(".cpu") else "1 or 1Mi"
    if divisor not in ("0", "1", "1m") if units == "1 or 1m" else not _DIVISOR.fullmatch(divisor):
        yield PartProblem(f"is {divisor!r}", f"use {units}", ("divisor",))


def _mount(data: dict[str, Any]) -> Iterator[PartProblem]:
    if data.get("recursiveReadOnly") in ("IfPossible", "Enabled"):
        if not data.get("readOnly"):
            yield PartProblem("needs readOnly: true", "set that, or remove it", ("recursiveReadOnly",))
        if data.get("mountPropagation") not in (None, "None"):
            yield PartProblem("does not go with recursiveReadOnly", "keep one of the two", ("mountPropagation",))


def _template(data: dict[str, Any]) -> Iterator[PartProblem]:
    for key, value in (data.get("metadata") or {}).items():
        if value is not None and key not in ("labels", "annotations"):
            yield PartProblem(
                "is not for a claim of a volume, which is named after its pod", "remove it", ("metadata", key)
            )


def _claim(data: dict[str, Any]) -> Iterator[PartProblem]:
    modes = data["accessModes"]
    for name in ("dataSource", "dataSourceRef"):
        if (origin := data.get(name)) and not origin.get("apiGroup") and origin["kind"] != "PersistentVolumeClaim":
            yield PartProblem("needs apiGroup for a kind other than PersistentVolumeClaim", "give it", (name,))
    if "ReadWriteOncePod" in modes and len({*modes}) > 1:
        yield PartProblem("ReadWriteOncePod goes with no other access mode", "keep one of them", ("accessModes",))
    size = (data["resources"].get("requests") or {}).get("storage")
    if size is None or re.fullmatch(r"\+?[0.]+[A-Za-z]*", str(size)):
        yield PartProblem("asks for no storage", "give requests.storage, such as 100Gi", ("resources",))


def _resources(data: dict[str, Any]) -> Iterator[PartProblem]:
    """Extended resources and huge pages, whose request equals the limit, have a rule of lint of their own."""
    limits = data.get("limits") or {}
    for name, request in (data.get("requests") or {}).items():
        limit = limits.get(name)
        ours = name in ("cpu", "memory", "ephemeral-storage") and None not in (limit, request)
        if ours and quantities.read_quantity(request) > quantities.read_quantity(limit):
            yield PartProblem(f"requests {request}, its limit is {limit}", "request at most that", ("requests", name))


def _container(data: dict[str, Any]) -> Iterator[PartProblem]:
    for probe in ("livenessProbe", "startupProbe"):
        if (data.get(probe) or {}).get("successThreshold") not in (None, 0, 1):
            yield PartProblem("must be 1", "remove it, or use a readinessProbe", (probe, "successThreshold"))
    for index, mount in enumerate(data.get("volumeMounts") or ()):
        privileged = (data.get("securityContext") or {}).get("privileged")
        if mount.get("mountPropagation") == "Bidirectional" and not privileged:
            message = "must not be Bidirectional in a container that is not privileged"
            yield PartProblem(message, "use HostToContainer", ("volumeMounts", index, "mountPropagation"))


def _privileges(data: dict[str, Any]) -> Iterator[PartProblem]:
    added = (data.get("capabilities") or {}).get("add") or ()
    granted = "privileged" if data.get("privileged") else "CAP_SYS_ADMIN" if "CAP_SYS_ADMIN" in added else ""
    if data.get("allowPrivilegeEscalation") is False and granted:
        yield PartProblem(f"must not be false with {granted}", "remove one of the two", ("allowPrivilegeEscalation",))


def _pod(data: dict[str, Any]) -> Iterator[PartProblem]:
    for key in ("initContainers", "containers") if data.get("hostNetwork") else ():
        for index, container in enumerate(data.get(key) or ()):
            for number, port in enumerate(container.get("ports") or ()):
                if port.get("hostPort") not in (None, 0, port["containerPort"]):
                    message = f"must be the container's port {port['containerPort']} with hostNetwork"
                    yield PartProblem(message, "remove it", (key, index, "ports", number, "hostPort"))


RELATIONS: dict[str, Relation] = {
    "core.v1.Toleration": _toleration,
    "core.v1.NodeSelectorRequirement": _requirement,
    "core.v1.NodeSelectorTerm": _term,
    "core.v1.PodAffinityTerm": _neighbours,
    "core.v1.Volume": _volume,
    "core.v1.VolumeProjection": _volume,
    "core.v1.ProjectedVolumeSource": _projected,
    "core.v1.ResourceFieldSelector": _resource,
    "core.v1.VolumeMount": _mount,
    "core.v1.PersistentVolumeClaimSpec": _claim,
    "core.v1.PersistentVolumeClaimTemplate": _template,
    "core.v1.ResourceRequirements": _resources,
    "core.v1.Container": _container,
    "core.v1.SecurityContext": _privileges,
    "core.v1.PodSpec": _pod,
    "pkg.apis.meta.v1.LabelSelectorRequirement": _requirement,
}
