"""The API server's limits of fields, merged into Kubernetes' types: formats and values from data/limits.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from chartgen.data.api_schemas import type_definitions
from chartgen.findings import PartProblem
from chartgen.helm.yaml import load_file, require_map
from chartgen.kube.validation import Relation

_NESTED = ("items", "propertyNames", "additionalProperties")
_EMPTY: tuple[Any, ...] = (None, "", [])


@lru_cache(maxsize=1)
def limits_table() -> dict[str, Any]:
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
    for limits in (limits_table(), limits_table()["narrower"])[: 1 + narrower]:
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
            schema = {**schema, **_keywords(limit)}
        elif field in schema.get("properties", {}):
            was, own = schema["properties"][field], _keywords(limit)
            own = {**was, **own, **{key: {**was.get(key, {}), **own[key]} for key in _NESTED if key in own}}
            schema = {**schema, "properties": {**schema["properties"], field: own}}
    types[name] = schema


def _keywords(limit: str | dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a limit, also nested ones; a name means the keywords of that format."""
    found: dict[str, Any] = limits_table()["formats"][limit] if isinstance(limit, str) else limit
    return {**found, **{key: _keywords(found[key]) for key in _NESTED if key in found}}


def relations(kubernetes: str, own: Iterable[tuple[str, Relation]]) -> dict[str, Relation]:
    """Return the rule of each type for relations between its fields: those of the table, and others."""
    found: dict[str, list[Relation]] = {}
    for name, relation in (*_listed(kubernetes), *own):
        found.setdefault(full_name(name), []).append(relation)
    return {name: partial(_each, rules) for name, rules in found.items()}


def _each(rules: Iterable[Relation], data: dict[str, Any]) -> Iterator[PartProblem]:
    for rule in rules:
        yield from rule(data)


def _listed(kubernetes: str) -> Iterator[tuple[str, Relation]]:
    types = type_definitions(kubernetes)
    for section in ("one", "least"):
        for name, fields in limits_table()[section].items():
            yield name, partial(_one_of, tuple(fields or types[full_name(name)]["properties"]), section)
    for section, relation in (("typed", _typed), ("excludes", _excluded)):
        for path, row in limits_table()[section].items():
            name, _, field = path.rpartition(".")
            yield name, partial(relation, field, row)


def _one_of(fields: Sequence[str], section: str, data: dict[str, Any]) -> Iterator[PartProblem]:
    """Check that one of some fields is given, or one or more for the section `least`."""
    given = [field for field in fields if data.get(field) not in (*_EMPTY, 0)]
    if not given:
        yield PartProblem(f"has none of {', '.join(fields)}", "give one of them")
    if given[1:] and section == "one":
        yield PartProblem(f"has {' and '.join(given)}", "keep one of them")


def _excluded(field: str, others: Sequence[str], data: dict[str, Any]) -> Iterator[PartProblem]:
    if data.get(field) not in _EMPTY:
        for other in (each for each in others if data.get(each) not in _EMPTY):
            yield PartProblem(f"does not go with {other}", "keep one of the two", (field,))


def _typed(field: str, by_value: Mapping[str, str], data: dict[str, Any]) -> Iterator[PartProblem]:
    wanted = by_value.get(data.get(field) or "")
    if wanted and not data.get(wanted):
        yield PartProblem(f"has {field} {data[field]} without {wanted}", f"give {wanted}, or change {field}")
