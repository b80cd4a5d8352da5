"""Definition files (`target.yaml`, `fragment.yaml`, `launcher.yaml`, `workload.yaml`): which keys each may hold.

One table per kind of file is the only place that knows its keys: it checks the file, and `json_schema` publishes it
for editors under `schemas/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from chartgen.errors import ChartgenError, Problem, did_you_mean
from chartgen.yamltext import Document, Plain, load_file, require_map, type_name

_TYPES: dict[str, tuple[type, str]] = {
    "string": (str, "text"),
    "integer": (int, "a whole number"),
    "object": (dict, "a map"),
    "array": (list, "a list"),
}


@dataclass(frozen=True)
class Field:
    """One key of a definition file.

    Args:
        type: A JSON Schema type name.
        description: What it is for, shown by editors.
        required: Whether the file must have it.
        enum: The words it may be, when they are few.
        items: The keys of each value of an object whose keys are free, such as the machines of a target.
    """

    type: str
    description: str
    required: bool = False
    enum: tuple[str, ...] = ()
    items: Mapping[str, Field] | None = None


def read_definition(path: Path, fields: Mapping[str, Field]) -> tuple[Document, dict[str, Plain]]:
    """Read a definition file and check it against its table.

    Raises:
        ChartgenError: All unknown keys, wrong types and missing keys at once, each with its place.
    """
    document = load_file(path)
    data = require_map(document, path.name)
    problems = _check(document, data, fields, ())
    if problems:
        raise ChartgenError(problems)
    return document, data


def json_schema(title: str, fields: Mapping[str, Field]) -> dict[str, object]:
    """Publish a table as a closed draft-07 JSON Schema."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "title": title}
    return {**schema, **_object_schema(fields)}


def _object_schema(fields: Mapping[str, Field]) -> dict[str, object]:
    properties: dict[str, dict[str, object]] = {}
    for name, field in fields.items():
        properties[name] = {"type": field.type, "description": field.description}
        if field.enum:
            properties[name]["enum"] = list(field.enum)
        if field.items:
            properties[name]["additionalProperties"] = _object_schema(field.items)
    required = [name for name, field in fields.items() if field.required]
    schema: dict[str, object] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _check(
    document: Document, data: Mapping[str, Plain], fields: Mapping[str, Field], at: tuple[str, ...]
) -> list[Problem]:
    problems = []
    for key, value in data.items():
        keys = (*at, key)
        if key not in fields:
            problems.append(document.problem(f"unknown key {key!r}", keys, did_you_mean(key, fields)))
            continue
        field = fields[key]
        kind, words = _TYPES[field.type]
        if not isinstance(value, kind) or isinstance(value, bool):
            message = f"{key} must be {words}, not {type_name(value)}"
            problems.append(document.problem(message, keys))
        elif field.enum and value not in field.enum:
            problems.append(document.problem(f"unknown {key} {value!r}", keys, did_you_mean(str(value), field.enum)))
        elif field.items and isinstance(value, dict):
            for name, item in value.items():
                if isinstance(item, dict):
                    problems += _check(document, item, field.items, (*keys, name))
                else:
                    problems.append(document.problem(f"{key}.{name} must be a map", (*keys, name)))
    for key in fields.keys() - data.keys():
        if fields[key].required:
            problems.append(document.problem(f"the key {key!r} is missing", at, f"add it: {fields[key].description}"))
    return problems
