"""The form of every JSON answer, and its JSON Schema.

An answer is one object: `schema` names its form and version, keys are in camelCase, and null means unknown or none.
Fields of a record become keys; those of a dictionary stay unchanged, as names of variables, files or facts.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from chartgen.errors import Problem

# The content of an answer: a type, an array as [shape], or an object as {key: shape}.
Shape: TypeAlias = Any

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    Path: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},  # null for NaN and infinity, which JSON does not have
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {},
}
_ARGUMENT = re.compile(r"^ {8}(\w+): (.+(?:\n {12}.+)*)", re.MULTILINE)


def answer(schema: str, facts: Any) -> dict[str, Any]:
    """Return an answer as plain data.

    Args:
        schema: Name and version of its form, such as `status/v1`; each has a file in `schemas/output`.
        facts: A record or a dictionary.
    """
    return {"schema": f"chartgen/{schema}", **plain(facts)}


def plain(value: Any) -> Any:
    """Return data with records as dictionaries, times and paths as texts, and null for NaN and infinity."""
    kind: Any = type(value)
    if members := _members(kind):
        found = {name: getattr(value, name) for name in members}
        return {_key(name): None if each == "" == members[name] else plain(each) for name, each in found.items()}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, frozenset)):
        return [plain(each) for each in (sorted(value) if isinstance(value, frozenset) else value)]
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value) if isinstance(value, Path) else value


@cache
def _members(record: Any) -> dict[str, Any]:
    """Return the fields of a record with their defaults; empty for any other type."""
    if record is Problem:
        return {"message": MISSING, "hint": ""}  # its place is one in the user's files, which a cluster does not know
    if is_dataclass(record):
        return {field.name: field.default for field in fields(record)}
    return {name: record._field_defaults.get(name, MISSING) for name in getattr(record, "_fields", ())}


def _key(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def answer_schema(schema: str, shape: Shape) -> dict[str, Any]:
    """Return the JSON Schema of an answer: closed, and every key is always there."""
    found = _schema(shape)
    properties = {"schema": {"const": f"chartgen/{schema}"}, **found["properties"]}
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": f"chartgen {schema}"}
    return {**head, **found, "properties": properties, "required": [*properties]}


def _schema(shape: Shape) -> dict[str, Any]:
    if isinstance(shape, dict):
        return _object({key: _schema(each) for key, each in shape.items()})
    if isinstance(shape, list):
        return {"type": "array", "items": _schema(shape[0])}
    if shape in _SCALARS:
        return _SCALARS[shape]
    origin: Any = get_origin(shape)
    return _record(shape) if origin is None else _generic(origin, get_args(shape))


def _generic(origin: Any, inner: tuple[Any, ...]) -> dict[str, Any]:
    if origin is Literal:
        return {"enum": [*inner]}
    if origin in (Union, types.UnionType):
        return _or_null(_schema(inner[0]))  # of X | None, the only unions
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(inner[1])}
    return _schema([inner[0]])  # of a list, a tuple or a frozenset


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema.get("type"), str) and schema["type"] in {"string", "integer", "boolean"}:
        return {**schema, "type": [schema["type"], "null"]}
    return schema if "null" in schema.get("type", ()) else {"anyOf": [schema, {"type": "null"}]}


def _record(record: type) -> dict[str, Any]:
    """Return the schema of a record; its docstring describes the keys."""
    lines = [line for each in reversed(record.__mro__) for line in _ARGUMENT.findall(each.__doc__ or "")]
    descriptions = {name: " ".join(text.split()).replace("None", "null") for name, text in lines}
    hints, properties = get_type_hints(record), {}
    for name, default in _members(record).items():
        schema = _schema(hints[name])
        described = {"description": descriptions[name]} if name in descriptions else {}
        properties[_key(name)] = {**described, **(_or_null(schema) if default == "" else schema)}
    return _object(properties)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
