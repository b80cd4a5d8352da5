"""The API server's limits of fields, merged into Kubernetes' types: formats and values from data/limits.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from chartgen.data.api_schemas import type_definitions
from chartgen.findings import Complaint
from chartgen.helm.yaml import load_file, require_map
from chartgen.kube.validation import Relation

_NESTED = ("items", "propertyNames", "additionalProperties")


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """Return data/limits.yaml."""
    return dict(require_map(load_file(Path(__file__).parent.parent / "data" / "limits.yaml"), "the limits"))


def full_name(name: str) -> str:
    """Return the name of a type in Kubernetes' OpenAPI document: core.v1.Pod is io.k8s.api.core.v1.Pod."""
    return f"io.k8s.{'apimachinery' if name.startswith('pkg.') else 'api'}.{name}"


@lru_cache(maxsize=8)
def limited_types(kubernetes: str, *, narrower: bool = False) -> dict[str, Any]:
    """Return the types of a Kubernetes version with their limits.

    Args:
        kubernetes: One of `kubernetes_versions`.
        narrower: Whether to refuse also what the API server accepts and can never work in a pod.
    """
    types = dict(type_definitions(kubernetes))
    for limits in (table(), table()["narrower"])[: 1 + narrower]:
        for name, fields in limits["types"].items():
            _limit(types, full_name(name), fields)
        for name, fields in limits["required"].items():
            schema = types.get(full_name(name), {})
            types[full_name(name)] = {**schema, "required": [*schema.get("required", ()), *fields]}
    return types


def _limit(types: dict[str, Any], name: str, fields: Mapping[str, Any]) -> None:
    """Add limits to the fields that a type has in this version of Kubernetes."""
    schema = types.get(name, {})
    for field, limit in fields.items():
        if field == "*":
            schema = {**schema, **keywords(limit)}
        elif field in schema.get("properties", {}):
            was, own = schema["properties"][field], keywords(limit)
            own = {**was, **own, **{key: {**was.get(key, {}), **own[key]} for key in _NESTED if key in own}}
            schema = {**schema, "properties": {**schema["properties"], field: own}}
    types[name] = schema


def keywords(limit: str | dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a limit, also nested ones; a name means the keywords of that format."""
    found: dict[str, Any] = table()["formats"][limit] if isinstance(limit, str) else limit
    return {**found, **{key: keywords(found[key]) for key in _NESTED if key in found}}


def listed_relations(kubernetes: str) -> Iterator[tuple[str, Relation]]:
    """Yield each type with a relation between fields that the table states."""
    types = type_definitions(kubernetes)
    for name, fields in table()["one"].items():
        yield full_name(name), partial(one_of, tuple(fields or types[full_name(name)]["properties"]))
    for path, by_value in table()["typed"].items():
        name, _, field = path.rpartition(".")
        yield full_name(name), partial(_typed, field, by_value)


def one_of(fields: tuple[str, ...], data: dict[str, Any]) -> Iterator[Complaint]:
    """Check that exactly one of some fields is given."""
    given = [field for field in fields if data.get(field) not in (None, "", 0)]
    if not given:
        yield Complaint(f"has none of {', '.join(fields)}", "give one of them")
    if given[1:]:
        yield Complaint(f"has {' and '.join(given)}", "keep one of them")


def _typed(field: str, by_value: Mapping[str, str], data: dict[str, Any]) -> Iterator[Complaint]:
    wanted = by_value.get(data.get(field) or "")
    if wanted and not data.get(wanted):
        yield Complaint(f"has {field} {data[field]} without {wanted}", f"give {wanted}, or change {field}")
