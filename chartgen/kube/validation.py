"""Strict validation by Kubernetes' structural schemas: a field that a schema does not name is a fault.

This does not use jsonschema: the API server differs from it (a null is a missing field, numbers pass as quantities,
an object without properties accepts anything), and an object of 400 lines takes 2 ms here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from operator import ge, le
from typing import Any, TypeAlias

from chartgen.errors import did_you_mean
from chartgen.findings import PartProblem
from chartgen.helm.yaml import Keys

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
_NO_RELATIONS: Mapping[str, Relation] = {}


def faults(
    data: Any,
    schema: dict[str, Any],
    definitions: dict[str, Any],
    at: Keys = (),
    relations: Mapping[str, Relation] = _NO_RELATIONS,
) -> Iterator[PartProblem]:
    """Yield the faults of data by a schema.

    Args:
        data: Plain data.
        schema: A structural schema; `$ref` contains a name of `definitions`, and keywords beside it add to that.
        definitions: Name -> schema.
        at: Key path of the data.
        relations: Name of a definition -> the rule for relations between its fields, applied when each is valid.
    """
    applicable = []
    while "$ref" in schema:
        applicable += [relations[schema["$ref"]]] if schema["$ref"] in relations else []
        schema = {**definitions[schema["$ref"]], **{key: value for key, value in schema.items() if key != "$ref"}}
    if data is None:  # Kubernetes reads a null as a missing field
        return
    if not _fits_type(data, schema):
        yield PartProblem(f"must be {_type_names(schema['type'])}, not {_kind(data)}", _use(schema), at)
        return
    found = [*_bounds(data, schema, at), *_below(data, schema, definitions, at, relations)]
    yield from found
    for relation in applicable if not found else ():
        yield from (replace(fault, at=(*at, *fault.at)) for fault in relation(data))


def _below(
    data: Any, schema: dict[str, Any], definitions: dict[str, Any], at: Keys, relations: Mapping[str, Relation]
) -> Iterator[PartProblem]:
    if isinstance(data, dict):
        yield from _fields(data, schema, definitions, at, relations)
    elif isinstance(data, list) and "items" in schema:
        for index, item in enumerate(data):
            if item is None:
                yield PartProblem("is null", "remove it", (*at, index))
            yield from faults(item, schema["items"], definitions, (*at, index), relations)


def spelled(at: Keys) -> str:
    """Format a key path as Kubernetes does: spec.containers[0].image."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in at).lstrip(".") or "the object"


def _fields(
    data: dict[str, Any],
    schema: dict[str, Any],
    definitions: dict[str, Any],
    at: Keys,
    relations: Mapping[str, Relation],
) -> Iterator[PartProblem]:
    named, others = schema.get("properties", {}), schema.get("additionalProperties")
    for key in schema.get("required", ()):
        if data.get(key) is None:
            yield PartProblem(f"lacks the field {key}", "add it", at)
    for key, value in data.items():
        if "propertyNames" in schema:
            yield from _bounds(key, schema["propertyNames"], (*at, key))
        if key in named:
            yield from faults(value, named[key], definitions, (*at, key), relations)
        elif isinstance(others, dict):
            yield from faults(value, others, definitions, (*at, key), relations)
        elif named and others is None and not schema.get(_KEEP):
            yield PartProblem("is not a field of the API", did_you_mean(key, named) or "remove it", (*at, key))


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
