"""The inputs of a pod's container from other objects: its variables, and the files of its mounts.

Objects of the chart are read; all others are only named.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from chartgen.errors import UsageError
from chartgen.kube.workloads import Workers

_REFERENCE = re.compile(r"\$(?:\$|\(([A-Za-z_][A-Za-z0-9_.-]*)\))")
_METADATA = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_ADDRESSES = ("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")
# Volumes whose files come from the API server (Kubernetes, core/v1 Volume); all others are storage.
_FROM_CLUSTER = {
    "secret": ("Secret", "secretName"),
    "projected": ("a projected volume", ""),
    "downwardAPI": ("the pod's own fields", ""),
}

ConfigMaps = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Variables:
    """The variables of a container: the known ones, and the sources of the others."""

    known: dict[str, str] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Files:
    """The files of a mount by their path below it; the empty path is the mount itself.

    `outside` names their source when it is not part of the chart.
    """

    texts: dict[str, str] = field(default_factory=dict)
    outside: str = ""


def config_map_texts(objects: Iterable[dict[str, Any]]) -> ConfigMaps:
    """Return the texts of the ConfigMaps among rendered objects, by name and key."""
    return {item["metadata"]["name"]: item.get("data", {}) for item in objects if item["kind"] == "ConfigMap"}


def read_variables(container: dict[str, Any], workers: Workers, rank: int, maps: ConfigMaps) -> Variables:
    """Return the variables of a pod's container as the kubelet would set them, without those of the image."""
    variables = Variables()
    for entry in container.get("env", ()):
        name, source = entry["name"], entry.get("valueFrom", {})
        reference: dict[str, Any] = next(iter(source.values()), {})
        text = _value(entry, variables.known) if not source else _from(source, workers, rank, maps)
        if text is not None:
            variables.known[name] = text
        elif not reference.get("optional"):
            variables.outside[name] = _origin(source)
    return variables


def read_files(volume: dict[str, Any], mount: dict[str, Any], maps: ConfigMaps) -> Files | None:
    """Return the files of a mount; None when the volume is storage, not the files of an object."""
    if "configMap" in volume:
        files = _files_of_map(volume["configMap"], mount.get("subPath", ""), maps)
        return Files() if volume["configMap"].get("optional") and files.outside else files
    for kind, (words, name) in _FROM_CLUSTER.items():
        if kind in volume:
            source: dict[str, Any] = volume[kind]
            return Files(outside="" if source.get("optional") else f"{words} {source.get(name, '')}".strip())
    return None


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by a variable and `$$` by `$`; an unknown name stays."""
    return _REFERENCE.sub(lambda match: variables.get(match[1], match[0]) if match[1] else "$", text)


def find_volume(pod: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the pod's volume for a mount; raise UsageError if the pod has none of that name."""
    found = (volume for volume in pod["spec"].get("volumes", ()) if volume["name"] == name)
    volume: dict[str, Any] | None = next(found, None)
    if volume is None:
        raise UsageError(f"a mount names volume {name!r}, which the pod does not have; the API server would refuse it")
    return volume


def _files_of_map(source: dict[str, Any], part: str, maps: ConfigMaps) -> Files:
    name = source["name"]
    if name not in maps:
        return Files(outside=f"ConfigMap {name}")
    texts = maps[name]
    items = source.get("items") or [{"key": key, "path": key} for key in texts]
    paths = {item["path"]: item["key"] for item in items}
    wanted = {"": paths.get(part, part)} if part else paths
    lacking = next((key for key in wanted.values() if key not in texts), None)
    if lacking is not None:
        return Files(outside=f"key {lacking} of ConfigMap {name}")
    return Files({path: texts[key] for path, key in wanted.items()})


def _value(entry: dict[str, Any], known: Mapping[str, str]) -> str:
    return expand(entry.get("value", ""), known)


def _from(source: dict[str, Any], workers: Workers, rank: int, maps: ConfigMaps) -> str | None:
    if "fieldRef" in source:
        return _field(source["fieldRef"]["fieldPath"], workers, rank)
    if "configMapKeyRef" in source:
        reference = source["configMapKeyRef"]
        return maps.get(reference["name"], {}).get(reference["key"])
    return None


def _field(path: str, workers: Workers, rank: int) -> str | None:
    """Return the expected value of a pod's field; a label that the chart does not set is the pod's number."""
    metadata = workers.pod.get("metadata", {})
    if found := _METADATA.fullmatch(path):
        kind, key = found.groups()
        return str(metadata.get(kind, {}).get(key, rank if kind == "labels" else ""))
    if path in _ADDRESSES:
        return "127.0.0.1"
    account = workers.pod["spec"].get("serviceAccountName", "default")
    name = f"{workers.name}-{rank}"
    known = {"metadata.name": name, "spec.nodeName": os.uname().nodename, "spec.serviceAccountName": account}
    return known.get(path)


def _origin(source: dict[str, Any]) -> str:
    kind, reference = [*source.items(), ("a source", dict[str, Any]())][0]  # a half-written one has none
    if kind == "secretKeyRef":
        return "a Secret"
    if kind == "configMapKeyRef":
        return f"key {reference['key']} of ConfigMap {reference['name']}"
    return f"{reference.get('fieldPath') or reference.get('resource') or kind} of the pod"
