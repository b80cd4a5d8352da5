"""The types of the Kubernetes API and of custom resources, offline, from the projects' own sources.

`chartgen/data/schemas.yaml` lists the packed sources and their versions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.data import DATA, read_table
from chartgen.data.compatibility import version

_FOLDER = DATA / "schemas"
_KUBERNETES = "kubernetes-"
_LEAST = re.compile(r">=?\s*v?(\d+\.\d+)")
_BELOW = re.compile(r"<\s*v?(\d+\.\d+)")


def kubernetes_versions(wanted: str = "") -> list[str]:
    """Return the Kubernetes versions with schemas, oldest first.

    Args:
        wanted: The `kubeVersion` of a chart, to return only matching versions. Anything but a simple range matches all.
    """
    found = [path.name.removeprefix(_KUBERNETES).partition(".json")[0] for path in _FOLDER.glob(f"{_KUBERNETES}*")]
    least, below = _LEAST.search(wanted), _BELOW.search(wanted)
    fits = [
        each
        for each in found
        if (least is None or version(each) >= version(least[1]))
        and (below is None or version(each) < version(below[1]))
    ]
    return sorted(fits or found, key=version)


def kind_schema(name: str, kubernetes: str) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Return the schema of a kind, named `<apiVersion>/<kind>`, and its referenced definitions."""
    core = _read(f"{_KUBERNETES}{kubernetes}")
    return core["kinds"].get(name) or _custom_kind(name), core["definitions"]


@lru_cache(maxsize=64)
def _custom_kind(name: str) -> dict[str, Any] | None:
    """Return the schema of a custom resource; parse only packs that contain its name, since all take 50 ms."""
    packs = (path for path in _custom_packs() if json.dumps(name).encode() in _content(path))
    return next((schema for path in packs if (schema := _load(path)["kinds"].get(name))), None)


def type_definitions(kubernetes: str) -> dict[str, Any]:
    """Return Kubernetes' own types by their names in its OpenAPI document."""
    definitions: dict[str, Any] = _read(f"{_KUBERNETES}{kubernetes}")["definitions"]
    return definitions


@lru_cache(maxsize=8)
def whole_groups(kubernetes: str) -> frozenset[str]:
    """Return the API groups of which every kind has a schema; Kubernetes' core group is the empty text."""
    return kubernetes_groups(kubernetes).union(
        ("extensions",),  # Kubernetes' first group of new kinds, which serves none since 1.22
        *(pack.get("whole", ()) for pack in read_table("schemas.yaml")["schemas"]),
    )


def kubernetes_groups(kubernetes: str) -> frozenset[str]:
    """Return the API groups of Kubernetes itself; its core group is the empty text."""
    return _groups(_read(f"{_KUBERNETES}{kubernetes}")["kinds"])


def _groups(kinds: Iterable[str]) -> frozenset[str]:
    return frozenset(name.rpartition("/")[0].rpartition("/")[0] for name in kinds)


@lru_cache(maxsize=1)
def custom_kinds() -> dict[str, Any]:
    """Return the schemas of custom resources, by `<apiVersion>/<kind>`."""
    return {name: schema for path in _custom_packs() for name, schema in _load(path)["kinds"].items()}


def _custom_packs() -> list[Path]:
    return sorted(path for path in _FOLDER.glob("*.json.gz") if not path.name.startswith(_KUBERNETES))


def _read(name: str) -> dict[str, Any]:
    return _load(_FOLDER / f"{name}.json.gz")


@lru_cache(maxsize=32)
def _load(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(_content(path))
    return data


@lru_cache(maxsize=32)
def _content(path: Path) -> bytes:
    import gzip

    return gzip.decompress(path.read_bytes())
