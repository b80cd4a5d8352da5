"""Strategies that draw values as people write them: by the chart's schema, and parts of pods by Kubernetes' types.

Most of what is drawn is right, so that sets of several keys pass; the rest is what people get wrong.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from chartgen.data.api_schemas import kubernetes_versions, type_definitions

WORDS = ("", "a", "no", "1e3", "x y", "ümlaut", '"', "a\nb", "{{ .Values }}", "../x", "$(whoami)", "a" * 70)
# Parts of a pod that the charts pass on as they are -> their type; the second are lists.
PARTS = {"affinity": "Affinity"}
LISTS = {"tolerations": "Toleration", "extraVolumes": "Volume", "extraVolumeMounts": "VolumeMount"}
_LABELS = ["nvidia.com/gpu", "topology.kubernetes.io/zone", "rack", "app.kubernetes.io/name", "cloud.google.com/pool"]
_QUANTITIES = ["8", "100Gi", "500m", "0.5", "1e3"]
_NAMES = ["cache", "tools", "data"]
# Field -> right values, and wrong ones.
_FIELDS: dict[str, tuple[list[Any], list[Any]]] = {
    "operator": (["In", "NotIn", "Exists", "DoesNotExist", "Equal", "Exists"], ["Gt", "Lt", "", "in", "Is"]),
    "effect": (["NoSchedule", "NoExecute", "PreferNoSchedule"], ["", "noschedule", "No Schedule"]),
    "tolerationSeconds": ([0, 300, 1000000], [-1, "300", 2.5]),
    "key": (_LABELS, ["", "a b", "-x", "a/b/c", "metadata.name", "X/y", "e" * 64]),
    "value": (["", "true", "h100"], ["a b", "x" * 64, 5, "-"]),
    "values": ([[], ["a"], ["a", "b"], ["8"]], [["a b"], [5], "a", [None], None]),
    "weight": ([1, 50, 100], [0, 101, "50"]),
    "topologyKey": (["kubernetes.io/hostname", "topology.kubernetes.io/zone"], ["", "a b"]),
    "namespaces": ([[], ["ml"]], [["A"], "ml"]),
    "matchLabels": ([{}, {"app": "a"}, {"example.com/rack": "r1"}], [{"a b": "c"}, {"a": "b c"}, {"a": 1}]),
    "matchLabelKeys": ([[], ["run"]], [["a b"], [""], "run"]),
    "mismatchLabelKeys": ([[], ["rack"]], [["a b"]]),
    "name": (_NAMES, ["start", "Cache", "a.b", "", "a" * 64, 7, "other"]),
    "mountPath": (
        ["/cache", "/opt/tools", "/data/more", "/scratch/x", "/usr/local/lib"],
        ["/data", "cache", "", "/a:b"],
    ),
    "subPath": (["", "a", "a/b.c"], ["/a", "../a", "a/../b"]),
    "subPathExpr": (["$(POD)", ""], ["../a"]),
    "mountPropagation": (["None", "HostToContainer"], ["Bidirectional", "none"]),
    "recursiveReadOnly": (["Disabled", "IfPossible", "Enabled"], ["true"]),
    "readOnly": ([True, False], ["true"]),
    "path": (["/var/lib/x", "/dev/nvme0n1", "a", "a/b"], ["", "/a/../b", "..", "..a", "../b", "x/.."]),
    "type": (["", "Directory", "CharDevice"], ["directory", "Folder"]),
    "server": (["nfs.example.com", "10.0.0.1"], [""]),
    "claimName": (["my-claim", "data"], ["", 7]),
    "secretName": (["my-secret"], ["", "My Secret"]),
    "sizeLimit": ([*_QUANTITIES, 5], ["5GB", "-1Gi", "lots", ""]),
    "medium": (["", "Memory"], ["memory", "Huge"]),
    "defaultMode": ([0o644, 0o777, 0], [512, -1, "0644"]),
    "mode": ([0o644], [1000]),
    "expirationSeconds": ([3600, 600], [5, 2**33]),
    "driver": (["csi.example.com", "gcsfuse.csi.storage.gke.io"], ["", "a b", "-", "x" * 64]),
    "volumeAttributes": ([{}, {"bucketName": "b"}], [{"a": 1}]),
    "reference": (["example.com/tools:1"], [""]),
    "pullPolicy": (["Always", ""], ["always"]),
    "accessModes": ([["ReadWriteOnce"], ["ReadWriteMany"]], [[], ["RWO"], ["ReadWriteOncePod", "ReadWriteOnce"]]),
    "storageClassName": (["fast", ""], ["A"]),
    "volumeMode": (["Filesystem"], ["Block", "File"]),
    "requests": ([{"storage": "100Gi"}], [{}, {"storage": "0"}, {"cpu": "1"}, {"storage": "-1"}]),
    "fieldPath": (
        ["metadata.name", "metadata.labels", "metadata.annotations['a']"],
        ["spec.nodeName", "", "status.podIP"],
    ),
    "apiVersion": (["v1", ""], ["v2"]),
    "resource": (["limits.cpu", "requests.memory"], ["limits", "limits.gpu"]),
    "containerName": (["trainer"], [""]),
    "divisor": (["1", "0"], ["1Mi", "5", "1m"]),
    "labels": ([{}, {"a": "b"}], [{"a b": "c"}]),
}
# Types whose fields belong together: what people write, as often as any fields.
_SELECTED: list[Any] = [
    {"key": "rack", "operator": "In", "values": ["a", "b"]},
    {"key": "nvidia.com/gpu", "operator": "Exists"},
    {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["a"]},
    {"key": "example.com/spot", "operator": "DoesNotExist", "values": []},
]
_SHAPES: dict[str, list[Any]] = {
    "Toleration": [
        {"operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "pool", "operator": "Equal", "value": "training", "effect": "NoSchedule"},
        {
            "key": "node.kubernetes.io/unreachable",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 1000000,
        },
        {"key": "pool", "value": "a"},
    ],
    "LabelSelectorRequirement": _SELECTED,
    "NodeSelectorRequirement": [*_SELECTED, {"key": "cores", "operator": "Gt", "values": ["8"]}],
}
# What hangs on ids of other objects, or is drawn often enough without.
_LEFT_OUT = {"dataSource", "dataSourceRef", "selector", "volumeAttributesClassName", "metadata", "volumeName"}
_SOURCES = ("emptyDir", "hostPath", "nfs", "secret", "configMap", "persistentVolumeClaim", "csi", "ephemeral")


@cache
def pod_part(name: str) -> SearchStrategy[Any]:
    """Draw a part of a pod: now and then with a field that its type does not have, or of another type."""
    right = _of_type({"$ref": f"io.k8s.api.core.v1.{name}"}, "")
    odd = st.sampled_from([{}, {"name": "a"}, {"key": None}, {"operater": "Exists"}, {"nodeAffinity": []}])
    return _mostly(right, odd)


def by_schema(schema: dict[str, Any], root: dict[str, Any], key: str = "") -> SearchStrategy[Any]:
    """Draw what a JSON Schema allows, and sometimes what it does not.

    Args:
        schema: The schema of a value.
        root: The schema whose definitions it refers to.
        key: The value's last key.
    """
    if key in PARTS:
        return pod_part(PARTS[key])
    if key in LISTS:
        return st.lists(pod_part(LISTS[key]), min_size=1, max_size=3)
    schema = _resolved(schema, root)
    kinds = schema.get("type", "string")
    any_ = st.one_of(*(_of_kind(kind, schema, root) for kind in ([kinds] if isinstance(kinds, str) else kinds)))
    if "enum" in schema:
        return _mostly(st.sampled_from(schema["enum"]), any_)
    if "anyOf" in schema:
        return _mostly(st.one_of(*(by_schema(each, root) for each in schema["anyOf"])), any_)
    if "pattern" in schema:
        return _mostly(st.from_regex(schema["pattern"], fullmatch=True).filter(str.isprintable), any_)
    return any_


def _of_kind(kind: str, schema: dict[str, Any], root: dict[str, Any]) -> SearchStrategy[Any]:
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        names = schema.get("propertyNames")
        keys: SearchStrategy[Any] = st.sampled_from(
            ["a", "b-c", "cpu", "memory", *_LABELS, "hugepages-2Mi", "NCCL_X", "x y"]
        )
        keys = st.one_of(keys, by_schema(names, root)) if names else keys
        return st.dictionaries(keys, by_schema(schema["additionalProperties"], root), max_size=2)
    if kind == "object" and schema.get("properties"):
        fields = {name: by_schema(below, root, name) for name, below in schema["properties"].items()}
        needed = {name: fields.pop(name) for name in schema.get("required", ())}
        return st.fixed_dictionaries(needed, optional=fields)
    if kind == "array" and "items" in schema:
        least = schema.get("minItems", 0)
        return st.lists(by_schema(schema["items"], root), min_size=least, max_size=max(least, 2))
    return _KINDS.get(kind, st.none())


_KINDS: dict[str, SearchStrategy[Any]] = {
    "integer": st.sampled_from([*range(17), *(1, 2, 4, 8, 64, 1024, 4096) * 3, -1, 10**6, 2**31, 2**53 + 1]),
    "number": st.floats(0, 100, allow_nan=False),
    "boolean": st.booleans(),
    "string": st.sampled_from([*("a", "8", "64Gi", "500m", "tools-1.0") * 5, *WORDS]),
    "array": st.lists(st.sampled_from(WORDS[:5]), max_size=2),
    "object": st.dictionaries(st.sampled_from(["a", "b-c", "nvidia.com/gpu"]), st.sampled_from(WORDS[:5]), max_size=2),
}


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = root["definitions"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return found


@cache
def _types() -> dict[str, Any]:
    return type_definitions(kubernetes_versions()[-1])


def _of_type(schema: dict[str, Any], field: str) -> SearchStrategy[Any]:
    return _drawn_type(json.dumps(schema, sort_keys=True), field)


@cache
def _drawn_type(text: str, field: str) -> SearchStrategy[Any]:
    """Draw an object of one of Kubernetes' types: its required fields nearly always, few of the others."""
    schema = json.loads(text)
    name = str(schema.get("$ref", "")).rpartition(".")[2]
    while "$ref" in schema:
        schema = _types()[schema["$ref"]]
    if field == "matchFields":
        return _mostly(
            st.just([{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]), st.just([_SELECTED[0]])
        )
    if field in _FIELDS and name not in ("ObjectFieldSelector", "ResourceFieldSelector"):
        right, wrong = _FIELDS[field]
        return _mostly(st.sampled_from(right), st.sampled_from(wrong))
    if schema.get("type") == "array":
        return st.lists(_of_type(schema["items"], field), min_size=1, max_size=2)
    if not schema.get("properties"):
        return _KINDS.get(str(schema.get("type")), st.just("a"))
    fields = {key: _of_type(below, key) for key, below in schema["properties"].items() if key not in _LEFT_OUT}
    if name == "Volume":
        return _volume(fields)
    needed = {key: fields.pop(key) for key in (*schema.get("required", ()), *_USUAL.get(name, ())) if key in fields}
    some = st.lists(st.sampled_from(sorted(fields)), max_size=2, unique=True) if fields else st.just([])
    any_ = some.flatmap(lambda keys: st.fixed_dictionaries({**needed, **{key: fields[key] for key in keys}}))
    return st.one_of(st.sampled_from(_SHAPES[name]), any_) if name in _SHAPES else any_


# Fields that OpenAPI does not require, and without which little makes sense.
_USUAL = {
    "Toleration": ("key", "operator", "effect"),
    "SecretVolumeSource": ("secretName",),
    "ConfigMapVolumeSource": ("name",),
    "EphemeralVolumeSource": ("volumeClaimTemplate",),
    "PersistentVolumeClaimSpec": ("accessModes", "resources"),
    "VolumeResourceRequirements": ("requests",),
    "ImageVolumeSource": ("reference",),
    "LabelSelector": ("matchLabels",),
    "PodAffinityTerm": ("labelSelector",),
    "NodeSelectorTerm": ("matchExpressions",),
}


def _volume(fields: dict[str, SearchStrategy[Any]]) -> SearchStrategy[Any]:
    """Draw a volume, nearly always of one kind."""
    kinds = [key for key in fields if key != "name"]
    kind = _mostly(st.sampled_from(_SOURCES), st.sampled_from(kinds)).map(lambda each: [each])
    chosen = _mostly(kind, st.lists(st.sampled_from(kinds), max_size=2, unique=True))
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: fields[key] for key in ("name", *keys)}))


def _mostly(right: SearchStrategy[Any], wrong: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Draw the first 19 times out of 20."""
    return st.sampled_from((*(right,) * 19, wrong)).flatmap(lambda chosen: chosen)
