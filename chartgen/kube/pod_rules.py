"""The API server's rules for a pod's parts beyond its types: limits of fields (data/limits.yaml), and relations.

Sources: kubernetes v1.36.3, pkg/apis/core/validation/validation.go; apimachinery v0.36.3, pkg/apis/meta/v1/validation.
The limits are narrower than the server's where it accepts values that can never work, such as an impossible label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.data.api_schemas import kubernetes_versions, type_definitions
from chartgen.findings import Complaint
from chartgen.helm.yaml import Keys, load_file, require_map
from chartgen.kube.validation import Relation, faults

_PACKAGES = {"core": "io.k8s.api.", "pkg": "io.k8s.apimachinery."}
_FIELD = re.compile(r"metadata\.(name|namespace|uid|labels|annotations|(labels|annotations)\['[^']+'\])")
_RESOURCE = re.compile(r"(?:requests|limits)\.(cpu|memory|ephemeral-storage|hugepages-.+)")
_DIVISOR = re.compile(r"0|1([kMGTPE]|[KMGTPE]i)?")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


def type_faults(data: Any, name: str, at: Keys = ()) -> Iterator[Complaint]:
    """Yield the faults for which the API server would reject a part of a pod.

    Args:
        data: Plain data.
        name: Its type in core/v1, such as Toleration.
        at: Key path of the data.
    """
    return faults(data, {"$ref": _full(f"core.v1.{name}")}, _limited(), at, _RELATIONS)


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    return dict(require_map(load_file(Path(__file__).parent.parent / "data" / "limits.yaml"), "the limits"))


@lru_cache(maxsize=1)
def _limited() -> dict[str, Any]:
    """Return Kubernetes' types with their limits."""
    types = dict(type_definitions(kubernetes_versions()[-1]))
    for name, fields in _table()["types"].items():
        schema = types[_full(name)]
        for field, limit in fields.items():
            if field == "*":
                schema = {**schema, **_keywords(limit)}
            else:
                named = {**schema["properties"], field: {**schema["properties"][field], **_keywords(limit)}}
                schema = {**schema, "properties": named}
        types[_full(name)] = schema
    for name, fields in _table()["required"].items():
        schema = types[_full(name)]
        types[_full(name)] = {**schema, "required": [*schema.get("required", ()), *fields]}
    return types


def _keywords(limit: str | dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a limit, also nested ones; a name means the keywords of that format."""
    keywords: dict[str, Any] = _table()["formats"][limit] if isinstance(limit, str) else limit
    nested = ("items", "propertyNames", "additionalProperties")
    below = {key: {"type": "string", **_keywords(keywords[key])} for key in nested if key in keywords}
    return {**keywords, **below}


def _full(name: str) -> str:
    return _PACKAGES[name.partition(".")[0]] + name


def _toleration(data: dict[str, Any]) -> Iterator[Complaint]:
    operator, effect = data.get("operator") or "Equal", data.get("effect") or ""
    if not data.get("key") and operator != "Exists":
        yield Complaint("is not given", "give one, or use operator Exists to tolerate everything", ("key",))
    if operator == "Exists" and data.get("value"):
        yield Complaint("does not go with operator Exists", "remove it, or use operator Equal", ("value",))
    if data.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield Complaint("needs effect NoExecute", "use that effect, or remove it", ("tolerationSeconds",))


def _requirement(data: dict[str, Any]) -> Iterator[Complaint]:
    operator, values = data.get("operator"), data.get("values") or []
    if operator in ("In", "NotIn") and not values:
        yield Complaint(f"has operator {operator} and no values", "give values, or use Exists or DoesNotExist")
    elif operator in ("Exists", "DoesNotExist") and values:
        yield Complaint(f"do not go with operator {operator}", "remove them, or use In or NotIn", ("values",))
    elif operator in ("Gt", "Lt") and (len(values) != 1 or not _INTEGER.fullmatch(values[0])):
        yield Complaint(f"has operator {operator}, which compares with one whole number", 'give one, such as ["8"]')


def _term(data: dict[str, Any]) -> Iterator[Complaint]:
    for index, field in enumerate(data.get("matchFields") or ()):
        fits = field.get("operator") in ("In", "NotIn") and len(field.get("values") or ()) == 1
        if field.get("key") != "metadata.name" or not fits:
            message = "must compare metadata.name with one name"
            yield Complaint(message, "use operator In with one value, or matchExpressions", ("matchFields", index))


def _neighbours(data: dict[str, Any]) -> Iterator[Complaint]:
    selector, match = data.get("labelSelector"), data.get("matchLabelKeys") or []
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        if data.get(name) and selector is None:
            yield Complaint("needs labelSelector", "give one, or remove it", (name,))
    selected = {*((selector or {}).get("matchLabels") or ())}
    selected |= {each.get("key") for each in (selector or {}).get("matchExpressions") or ()}
    for index, key in enumerate(match):
        if key in selected or key in (data.get("mismatchLabelKeys") or ()):
            yield Complaint(f"{key} is selected twice", "keep one of the two", ("matchLabelKeys", index))


def _volume(data: dict[str, Any]) -> Iterator[Complaint]:
    yield from _one_of(data, _table()["volumes"], {"name"}, "give one, such as emptyDir: {}")


def _projection(data: dict[str, Any]) -> Iterator[Complaint]:
    yield from _one_of(data, _table()["projections"], set(), "give one, such as configMap")


def _one_of(data: dict[str, Any], sources: list[str], others: set[str], hint: str) -> Iterator[Complaint]:
    given = [key for key, value in data.items() if value is not None and key not in others]
    for key in given:
        if key not in sources:
            yield Complaint("is not a kind of volume that runs use", "use one of " + ", ".join(sources), (key,))
    if not given:
        yield Complaint("has no source", hint)
    if len(given) > 1:
        yield Complaint(f"has more than one source: {', '.join(given)}", "keep one of them")


def _projected(data: dict[str, Any]) -> Iterator[Complaint]:
    seen: set[str] = set()
    for index, source in enumerate(data.get("sources") or ()):
        for kind in _table()["projections"]:
            given = source.get(kind) or {}
            files = [item["path"] for item in given.get("items") or ()]
            files += [given["path"]] if "path" in given else []
            for path in files:
                if path in seen:
                    yield Complaint(f"writes {path} a second time", "use another path", ("sources", index, kind))
                seen.add(path)


def _file(data: dict[str, Any]) -> Iterator[Complaint]:
    field, resource = data.get("fieldRef"), data.get("resourceFieldRef")
    if (field is None) == (resource is None):
        yield Complaint("needs one of fieldRef and resourceFieldRef", "give one of the two")
    elif field is not None and not (
        _FIELD.fullmatch(field["fieldPath"]) and field.get("apiVersion") in (None, "", "v1")
    ):
        yield Complaint(
            f"is {field['fieldPath']!r}", "use metadata.name, namespace, uid, labels or annotations", ("fieldRef",)
        )
    elif resource is not None:
        yield from _resource(resource)


def _resource(data: dict[str, Any]) -> Iterator[Complaint]:
    found = _RESOURCE.fullmatch(data["resource"])
    if not found:
        yield Complaint(f"is {data['resource']!r}", "use one such as limits.memory", ("resourceFieldRef", "resource"))
    if not data.get("containerName"):
        yield Complaint(
            "lacks the field containerName", "name the container whose resource it is", ("resourceFieldRef",)
        )
    divisor = str(data.get("divisor", "0"))
    of_cpu = found and found[1] == "cpu"
    if divisor not in ("0", "1", "1m") if of_cpu else not _DIVISOR.fullmatch(divisor):
        yield Complaint(
            f"is {divisor!r}", "use 1" + (" or 1m" if of_cpu else " or 1Mi"), ("resourceFieldRef", "divisor")
        )


def _mount(data: dict[str, Any]) -> Iterator[Complaint]:
    if data.get("subPath") and data.get("subPathExpr"):
        yield Complaint("does not go with subPath", "keep one of the two", ("subPathExpr",))
    if data.get("recursiveReadOnly") in ("IfPossible", "Enabled"):
        if not data.get("readOnly"):
            yield Complaint("needs readOnly: true", "set that, or remove it", ("recursiveReadOnly",))
        if data.get("mountPropagation") not in (None, "None"):
            yield Complaint("does not go with recursiveReadOnly", "keep one of the two", ("mountPropagation",))


def _template(data: dict[str, Any]) -> Iterator[Complaint]:
    for key, value in (data.get("metadata") or {}).items():
        if value is not None and key not in ("labels", "annotations"):
            yield Complaint(
                "is not for a claim of a volume, which is named after its pod", "remove it", ("metadata", key)
            )


def _claim(data: dict[str, Any]) -> Iterator[Complaint]:
    modes = data["accessModes"]
    origins = [name for name in ("dataSource", "dataSourceRef") if data.get(name) is not None]
    for name in origins:
        if not data[name].get("apiGroup") and data[name]["kind"] != "PersistentVolumeClaim":
            yield Complaint("needs apiGroup for a kind other than PersistentVolumeClaim", "give it", (name,))
    if len(origins) > 1:
        yield Complaint("does not go with dataSourceRef", "keep one of the two", ("dataSource",))
    if "ReadWriteOncePod" in modes and len({*modes}) > 1:
        yield Complaint("ReadWriteOncePod goes with no other access mode", "keep one of them", ("accessModes",))
    size = (data["resources"].get("requests") or {}).get("storage")
    if size is None or re.fullmatch(r"\+?[0.]+[A-Za-z]*", str(size)):
        yield Complaint("asks for no storage", "give requests.storage, such as 100Gi", ("resources",))


_RELATIONS: dict[str, Relation] = {
    _full(f"core.v1.{name}"): relation
    for name, relation in {
        "Toleration": _toleration,
        "NodeSelectorRequirement": _requirement,
        "NodeSelectorTerm": _term,
        "PodAffinityTerm": _neighbours,
        "Volume": _volume,
        "VolumeProjection": _projection,
        "ProjectedVolumeSource": _projected,
        "DownwardAPIVolumeFile": _file,
        "VolumeMount": _mount,
        "PersistentVolumeClaimSpec": _claim,
        "PersistentVolumeClaimTemplate": _template,
    }.items()
} | {_full("pkg.apis.meta.v1.LabelSelectorRequirement"): _requirement}
