"""Strict validation by Kubernetes' structural schemas: a field that a schema does not name is a fault.

This does not use jsonschema: the API server differs from it (a null is a missing field, numbers pass as quantities,
an object without properties accepts anything), and an object of 400 lines takes 2 ms here. The API server's limits of
fields, from data/limits.yaml, are merged into Kubernetes' types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import ge, le
from pathlib import Path
from typing import Any, TypeAlias

from chartgen.data.api_schemas import type_definitions
from chartgen.errors import did_you_mean
from chartgen.findings import PartProblem
from chartgen.helm.yaml import Keys, load_file, require_map

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_LIMITS: dict[str, tuple[tuple[type, ...], Callable[[float, float], bool]]] = {
    "minimum": ((int, float), ge),
    "maximum": ((int, float), le),
    "minLength": ((str,), ge),
    "maxLength": ((str,), le),
    "minItems": ((list,), ge),
    "maxItems": ((list,), le),
    "maxProperties": ((dict,), le),
}
_KEEP = "x-kubernetes-preserve-unknown-fields"


# A rule for the relations between fields of one type: takes a valid object, and yields faults with places in it.
Relation: TypeAlias = "Callable[[dict[str, Any]], Iterator[PartProblem]]"


@dataclass(frozen=True)
class Validator:
    """The types of a Kubernetes version, by their names."""

    types: Mapping[str, dict[str, Any]]  # the schema of each
    # The rules for relations between the fields of some, applied when each field is valid
    relations: Mapping[str, Sequence[Relation]]

    def faults(self, data: Any, schema: dict[str, Any], at: Keys = ()) -> Iterator[PartProblem]:
        """Yield the faults of data by a structural schema: `$ref` names a type, and keywords beside it add to that."""
        applicable: list[Relation] = []
        while name := schema.get("$ref"):
            applicable += self.relations.get(name, ())
            schema = {**self.types[name], **{key: value for key, value in schema.items() if key != "$ref"}}
        if data is None:  # Kubernetes reads a null as a missing field
            return
        if not _fits_type(data, schema):
            yield PartProblem(f"must be {_type_names(schema['type'])}, not {_kind(data)}", _use(schema), at)
            return
        found = [*_bounds(data, schema, at), *self._below(data, schema, at)]
        yield from found
        for relation in applicable if not found else ():
            yield from (fault._replace(at=(*at, *fault.at)) for fault in relation(data))

    def _below(self, data: Any, schema: dict[str, Any], at: Keys) -> Iterator[PartProblem]:
        if isinstance(data, dict):
            yield from self._fields(data, schema, at)
        elif isinstance(data, list) and "items" in schema:
            for index, item in enumerate(data):
                if item is None:
                    yield PartProblem("is null", "remove it", (*at, index))
                yield from self.faults(item, schema["items"], (*at, index))

    def _fields(self, data: dict[str, Any], schema: dict[str, Any], at: Keys) -> Iterator[PartProblem]:
        named, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key in schema.get("required", ()):
            if data.get(key) is None:
                yield PartProblem(f"lacks the field {key}", "add it", at)
        for key, value in data.items():
            if "propertyNames" in schema:
                yield from _bounds(key, schema["propertyNames"], (*at, key))
            if key in named:
                yield from self.faults(value, named[key], (*at, key))
            elif isinstance(others, dict):
                yield from self.faults(value, others, (*at, key))
            elif named and others is None and not schema.get(_KEEP):
                yield PartProblem("is not a field of the API", did_you_mean(key, named) or "remove it", (*at, key))


def spelled(at: Keys) -> str:
    """Format a key path as Kubernetes does: spec.containers[0].image."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in at).lstrip(".") or "the object"


def _fits_type(data: Any, schema: dict[str, Any]) -> bool:
    wanted = schema.get("type", ())
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    if isinstance(data, bool):
        return not names or "boolean" in names
    whole = isinstance(data, float) and data.is_integer() and "integer" in names
    return not names or whole or any(isinstance(data, _TYPES[name]) for name in names)


def _bounds(data: Any, schema: dict[str, Any], at: Keys) -> Iterator[PartProblem]:
    if "enum" in schema and data not in schema["enum"]:
        yield PartProblem(f"is {data!r}", "use " + " or ".join(str(each) for each in schema["enum"] if each != ""), at)
    if isinstance(data, str) and "pattern" in schema and not _matches(schema["pattern"], data):
        message = f"is {data!r}" if "title" in schema else f"{data!r} does not match {schema['pattern']}"
        yield PartProblem(message, _use(schema), at)
    for name, (types, fits) in _LIMITS.items():
        if name in schema and isinstance(data, types) and not fits(_size(data), schema[name]):
            yield PartProblem(f"is beyond {name} {schema[name]}", _use(schema), at)


def _size(data: Any) -> float:
    return data if isinstance(data, int | float) else len(data)


def _use(schema: dict[str, Any]) -> str:
    """Return a hint for the correct value from a schema's title; empty without one."""
    return f"use {schema['title']}" if "title" in schema else ""


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # Go's dialect, which the API server reads
        return True


def _type_names(wanted: str | list[str]) -> str:
    names = [wanted] if isinstance(wanted, str) else wanted
    return " or ".join(
        "a list" if name == "array" else f"an {name}" if name[0] in "aeio" else f"a {name}" for name in names
    )


def _kind(data: Any) -> str:
    if isinstance(data, bool):
        return f"the boolean {str(data).lower()}"
    if isinstance(data, int | float):
        return f"the number {data}"
    return f"the string {data!r}" if isinstance(data, str) else "a list" if isinstance(data, list) else "an object"


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


def validator(kubernetes: str, own: Iterable[tuple[str, Relation]], *, narrower: bool = False) -> Validator:
    """Return the limited types with the relations of the table and others; see `limited_types`."""
    found: dict[str, list[Relation]] = {}
    for name, relation in (*_listed(kubernetes), *own):
        found.setdefault(full_name(name), []).append(relation)
    return Validator(limited_types(kubernetes, narrower=narrower), found)


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
