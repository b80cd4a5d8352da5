"""Definition files (`target.yaml`, `fragment.yaml`, `launcher.yaml`, `workload.yaml`) and their allowed keys.

Each kind of file has one table of its keys, most by the fields of the record that it becomes: it checks the file, and
is published for editors under `schemas/`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from chartgen.errors import ChartgenError, Problem, did_you_mean
from chartgen.helm.yaml import Document, Keys, Plain, dotted, load_file, require_map, type_name

_TYPES: dict[str, tuple[Any, str]] = {
    "number": (float, "a number"),
    "string": (str, "text"),
    "integer": (int, "a whole number"),
    "object": (dict, "a map"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
}
_Record = TypeVar("_Record")
_LARGEST = 1e15  # of a number; more is a mistake, and infinity no number of rules or JSON


class Field(NamedTuple):
    """One key of a definition file.

    Args:
        type: A JSON Schema type name.
        description: Its purpose, shown by editors.
        required: Whether the file must have it; a required list or map must not be empty.
        unless: Another key of the file, with which it is not required.
        enum: The allowed words, if they are few.
        pattern: A regular expression that a text must match as a whole, and what it allows; with `item` for each text.
        positive: Whether a number must be more than 0; with `item` each number.
        item: Type name of a list's items or a map's values; empty = anything.
        items: The keys of each item of a list, or of each value of an object whose keys are free, such as the machines
            of a target.
        keys: The keys of an object.
        names: As `pattern`, for each key of an object whose keys are free.
    """

    type: str
    description: str
    required: bool = False
    unless: str = ""
    enum: tuple[str, ...] = ()
    pattern: tuple[str, str] | None = None
    positive: bool = False
    item: str = ""
    items: Mapping[str, Field] | None = None
    keys: Mapping[str, Field] | None = None
    names: tuple[str, str] | None = None

    @property
    def child(self) -> Field | None:
        """Return the field of each item of a list, or of each value of an object whose keys are free; None for any."""
        if self.items is not None:
            return Field("object", "", keys=self.items)
        return Field(self.item, "", pattern=self.pattern, positive=self.positive) if self.item else None


def stated(kind: str | Field, description: str = "", *, name: str = "", default: Any = None, **facts: Any) -> Any:
    """Declare that a field of a record is a key of its definition file.

    Args:
        kind: A JSON Schema type name, or the whole `Field` of a key that several files share.
        name: The key, where it is not the record's field in camelCase.
        default: What a file without the key means, where it is not empty.
        facts: The other facts of `Field`.
    """
    field = kind if isinstance(kind, Field) else Field(kind, description, **facts)
    return dataclasses.field(metadata={"field": field, "key": name, "default": default})


def fields_of(record: Any) -> dict[str, Field]:
    """Return the table of the keys that the fields of a record declare."""
    return {_key_of(each): each.metadata["field"] for each in dataclasses.fields(record) if each.metadata}


def record_of(record: Callable[..., _Record], data: Mapping[str, Any], **others: Any) -> _Record:
    """Return the record that the checked data of a definition makes.

    Args:
        others: Fields that are no keys, or another value than the file's.
    """
    found: dict[str, Any] = {}
    declared: Any = record
    for each in dataclasses.fields(declared):
        if each.metadata and each.name not in others:
            default = each.metadata["default"]
            kind = _TYPES[each.metadata["field"].type][0]
            value = data.get(_key_of(each), kind() if default is None else default)
            found[each.name] = tuple(value) if str(each.type).startswith("tuple") else value
    return record(**found, **others)


def _key_of(declared: dataclasses.Field[Any]) -> str:
    return declared.metadata["key"] or re.sub("_(.)", lambda letter: letter[1].upper(), declared.name)


def read_definition(path: Path, fields: Mapping[str, Field]) -> tuple[Document, dict[str, Plain]]:
    """Read a definition file and check it against its table; join texts of several lines into one.

    Raises:
        ChartgenError: All unknown keys, wrong types and missing keys at once, each with its place.
    """
    document = load_file(path)
    data = require_map(document, path.name)
    problems = list(check_fields(document, data, fields, ()))
    if problems:
        raise ChartgenError(problems)
    return document, one_line_texts(data)


def one_line_texts(data: dict[str, Plain]) -> dict[str, Plain]:
    """Return a map with its texts of several lines joined into one."""
    return {name: " ".join(value.split()) if isinstance(value, str) else value for name, value in data.items()}


def check_fields(
    document: Document, data: Mapping[str, Plain], fields: Mapping[str, Field], at: Keys
) -> Iterator[Problem]:
    """Check a map against a table: unknown keys, wrong types and missing keys, each with its place."""
    for key, value in data.items():
        if key in fields:
            yield from _check_field(document, value, fields[key], (*at, key))
        else:
            yield document.problem(f"unknown key {key!r}", (*at, key), did_you_mean(key, fields))
    for key, field in fields.items():
        if field.required and key not in data and field.unless not in data:
            words = f"{field.description}: {', '.join(field.enum)}" if field.enum else field.description
            yield document.problem(f"the key {key!r} is missing", at, f"add it: {words}")


def _check_field(document: Document, value: Plain, field: Field, at: Keys) -> Iterator[Problem]:
    if not _is(value, field.type):
        hint = "put it in quotes" if field.type == "string" and isinstance(value, bool | int | float) else ""
        yield document.problem(f"{dotted(at)} must be {_TYPES[field.type][1]}, not {type_name(value)}", at, hint)
        return
    if field.enum and value not in field.enum:
        yield document.problem(f"unknown {dotted(at)} {value!r}", at, did_you_mean(str(value), field.enum))
    elif not field.item and (problem := _mismatch(document, value, field, at)):
        yield problem
    elif field.required and value in ("", [], {}):
        yield document.problem(f"{dotted(at)} must not be empty", at)
    if isinstance(value, dict) and field.keys is not None:
        yield from check_fields(document, value, field.keys, at)
    elif isinstance(value, dict | list) and field.child:
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            if field.names and not re.fullmatch(field.names[0], str(key)):
                yield document.problem(f"{str(key)!r} must be {field.names[1]}", (*at, key))
            yield from _check_field(document, child, field.child, (*at, key))


def _mismatch(document: Document, value: Plain, field: Field, at: Keys) -> Problem | None:
    """Return the problem of a text that does not match the pattern of its field, or of a number that is too small."""
    if field.positive and isinstance(value, int | float) and not 0 < value <= _LARGEST:
        limit = "more than 0" if not value > 0 else f"at most {_LARGEST:g}"
        return document.problem(f"{dotted(at)} must be {limit}, not {value}", at)
    if field.pattern is None or re.fullmatch(field.pattern[0], str(value)):
        return None
    return document.problem(f"{dotted(at)} {value!r} must be {field.pattern[1]}", at)


def _is(value: Plain, name: str) -> bool:
    kind = (int, float) if name == "number" else _TYPES[name][0]
    return isinstance(value, kind) and isinstance(value, bool) == (name == "boolean")
