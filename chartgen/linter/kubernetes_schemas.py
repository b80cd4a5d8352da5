"""Strict Kubernetes schemas, offline: rendered objects against the API of a Kubernetes version and of shipped CRDs.

The data are packed from the projects' own sources, with their versions in `chartgen/data/schemas.yaml`. Rules that CRDs
and the API server state as code (CEL, defaulting, webhooks) are not part of it; a rehearsal applies those.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.compat import version
from chartgen.findings import Complaint
from chartgen.linter.objects import Object, metadata
from chartgen.linter.openapi import faults, spelled

_FOLDER = Path(__file__).parent.parent / "data" / "schemas"
_KUBERNETES = "kubernetes-"
_METADATA = {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
_LEAST = re.compile(r">=?\s*v?(\d+\.\d+)")
_BELOW = re.compile(r"<\s*v?(\d+\.\d+)")


def kubernetes_versions(wanted: str = "") -> list[str]:
    """Give the Kubernetes versions that there are schemas of, oldest first.

    Args:
        wanted: The `kubeVersion` of a chart; only versions that it takes. What is no simple range takes all.
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


def objects_fit_their_schema(thing: Object, kubernetes: str) -> Iterator[Complaint]:
    """An object fits the schema of its kind: fields that the API server does not know are dropped or refused.

    Args:
        thing: A rendered object.
        kubernetes: One of `kubernetes_versions`.
    """
    name = f"{thing.get('apiVersion')}/{thing.get('kind')}"
    core = _read(f"{_KUBERNETES}{kubernetes}")
    definitions = core["definitions"]
    custom = name not in core["kinds"]
    found = _custom().get(name) if custom else core["kinds"][name]
    if found is None:
        return
    for fault in faults(thing, found, definitions):
        yield Complaint(f"{spelled(fault.at)}: {fault.message}", fault.hint, fault.at)
    if custom:
        for fault in faults(metadata(thing), _METADATA, definitions, ("metadata",)):
            yield Complaint(f"{spelled(fault.at)}: {fault.message}", fault.hint, fault.at)


def kinds_are_known(thing: Object, kubernetes: str) -> Iterator[Complaint]:
    """Every object has a kind that lint knows the schema of; what it does not know it has not checked."""
    name = f"{thing.get('apiVersion')}/{thing.get('kind')}"
    group = str(thing.get("apiVersion")).rpartition("/")[0]
    if name in _read(f"{_KUBERNETES}{kubernetes}")["kinds"] or name in _custom():
        return
    if group in _groups(kubernetes):
        message = f"{thing.get('apiVersion')} {thing.get('kind')} is not served by Kubernetes {kubernetes}"
        yield Complaint(message, "use a version of the API that it serves", ("apiVersion",))
    else:
        message = f"there is no schema for {thing.get('apiVersion')} {thing.get('kind')}, so it was not checked"
        yield Complaint(message, "rehearse it, or ignore the finding with the reason", ("apiVersion",))


def kind_schema(name: str, kubernetes: str) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Give the schema of a kind, named `<apiVersion>/<kind>`, and the definitions that it refers to."""
    core = _read(f"{_KUBERNETES}{kubernetes}")
    return core["kinds"].get(name) or _custom().get(name), core["definitions"]


@lru_cache(maxsize=8)
def _groups(kubernetes: str) -> frozenset[str]:
    kinds = [*_read(f"{_KUBERNETES}{kubernetes}")["kinds"], *_custom()]
    return frozenset(name.rpartition("/")[0].rpartition("/")[0] for name in kinds)


@lru_cache(maxsize=1)
def _custom() -> dict[str, Any]:
    packs = [path for path in _FOLDER.glob("*.json.gz") if not path.name.startswith(_KUBERNETES)]
    return {name: schema for path in sorted(packs) for name, schema in _load(path)["kinds"].items()}


@lru_cache(maxsize=8)
def _read(name: str) -> dict[str, Any]:
    return _load(_FOLDER / f"{name}.json.gz")


def _load(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return data
