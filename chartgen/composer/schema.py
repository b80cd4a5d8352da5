"""The values.schema.json of a chart: the common one, the fragments' and the launchers', merged and closed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.composer.library import BUILTIN
from chartgen.composer.target import Target
from chartgen.composer.value_docs import ENCODE, Row, describe
from chartgen.errors import ChartgenError, Problem
from chartgen.helm.schema import check_sound, closed, merge_schemas
from chartgen.helm.yaml import read_text, type_name

FILE = "values.schema.json"


def chart_schema(target: Target, folders: Iterable[Path], table: Sequence[Row]) -> dict[str, Any]:
    """Merge the schema of a target's charts.

    Args:
        target: The target, whose launchers and machine types are the only ones allowed.
        folders: The folders that may hold a schema, the common one first.
        table: The chart's values, whose meanings become descriptions.

    Raises:
        ChartgenError: A schema that is not sound, or two that say different things about one value.
    """
    paths = [folder / FILE for folder in folders]
    parts = [(str(path), _sound(path, target)) for path in paths if path.is_file()]
    for launcher in target.launchers:
        own = launcher.path / FILE
        properties = read_schema(BUILTIN / "launchers" / FILE) | (read_schema(own) if own.is_file() else {})
        parts.append((str(own), _nested("launchers", launcher.name, {"type": "object", "properties": properties})))
    enums = {"launcher": [launcher.name for launcher in target.launchers], "machineType": list(target.machines)}
    parts.append((str(target.path), {"properties": {key: {"enum": names} for key, names in enums.items()}}))
    schema = closed(merge_schemas(parts))
    describe(schema, table)
    return schema


def schema_text(schema: Any, indent: int = 0) -> str:
    """Write a schema with one line for each part that holds no other, so that people can read it and its diffs."""
    if not isinstance(schema, dict) or not any(isinstance(value, dict) for value in schema.values()):
        return ENCODE(schema)
    pad = " " * (indent + 2)
    lines = [f"{pad}{ENCODE(key)}: {schema_text(value, indent + 2)}" for key, value in schema.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"


def read_schema(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file.

    Raises:
        ChartgenError: It is no JSON, or no object.
    """
    return _parse(read_text(path), path)


def _nested(*keys_and_schema: Any) -> dict[str, Any]:
    *keys, schema = keys_and_schema
    for key in reversed(keys):
        schema = {"properties": {key: schema}}
    nested: dict[str, Any] = schema
    return nested


def _sound(path: Path, target: Target) -> dict[str, Any]:
    """Read a schema, and check a user's; chartgen's own are checked by its tests."""
    schema = read_schema(path)
    if not target.library.is_builtin(path) and (faults := check_sound(schema)):
        raise ChartgenError(Problem(fault, path) for fault in faults)
    return schema


@lru_cache(maxsize=256)
def _parse(text: str, path: Path) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise ChartgenError(Problem(f"invalid JSON: {error.msg}", path, error.lineno, error.colno)) from None
    except RecursionError:
        raise ChartgenError(Problem("is nested too deeply", path)) from None
    if not isinstance(data, dict):
        raise ChartgenError(Problem(f"must hold an object, not {type_name(data)}", path, 1, 1))
    return data
