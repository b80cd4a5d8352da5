"""The values.schema.json of a chart: merge and close the common, the fragments' and the launchers' schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.composer.library import BUILTIN
from chartgen.composer.target import Target
from chartgen.composer.value_docs import ENCODE, Row, describe
from chartgen.errors import ChartgenError, Problem, did_you_mean
from chartgen.helm.schema import SCHEMA_FILE, check_sound, closed, merge_schemas
from chartgen.helm.yaml import load_file, read_text, type_name

_OF_OTHERS = "values of a launcher that this chart lacks: without effect"


def chart_schema(target: Target, folders: Iterable[Path], table: Sequence[Row]) -> dict[str, Any]:
    """Merge the schema of a target's charts.

    Args:
        target: The target; only its launchers and machine types are allowed.
        folders: The folders that may contain a schema, the common one first.
        table: The chart's values, whose meanings become descriptions.

    Raises:
        ChartgenError: An invalid schema, or two that contradict each other about one value.
    """
    paths = [folder / SCHEMA_FILE for folder in folders]
    parts = [(str(path), _sound(path, target)) for path in paths if path.is_file()]
    _check_schemes(parts)
    _check_sub_paths(target, parts)
    for launcher in target.launchers:
        own = launcher.path / SCHEMA_FILE
        properties = read_schema(BUILTIN / "launchers" / SCHEMA_FILE) | (read_schema(own) if own.is_file() else {})
        parts.append((str(own), _nested("launchers", launcher.name, {"type": "object", "properties": properties})))
    # a site file or preset of the target is for all its charts
    others = {each.name: _left_out(each.name, target) for each in target.left_out}
    parts.append((str(target.path), _nested("launchers", {"type": "object", "properties": others})))
    enums = {"launcher": [launcher.name for launcher in target.launchers], "machineType": list(target.machines)}
    parts.append((str(target.path), {"properties": {key: {"enum": names} for key, names in enums.items()}}))
    schema = closed(merge_schemas(parts))
    schema |= {} if "if" in schema else _way_to_others(target)
    describe(schema, table)
    return schema


def _way_to_others(target: Target) -> dict[str, Any]:
    """Return what refuses launchers left out of the chart; Helm quotes a constant, so this one is the message."""
    others = [launcher.name for launcher in target.fitting if launcher in target.left_out]
    way = f"one of this chart: `chartgen build {target.name} --launchers NAME` makes a chart with another"
    return {"if": _nested("launcher", {"enum": others}), "then": _nested("launcher", {"const": way})} if others else {}


def _left_out(name: str, target: Target) -> dict[str, Any]:
    """Return the schema of a launcher that the chart lacks; an image that others would take from it is refused."""
    users = [each.name for each in target.every_launcher if each.same_as == name and each not in target.left_out]
    where = " and ".join(f"launchers.{user}.image" for user in users)
    image = {"image": {"const": f"set at {where}: this chart lacks {name}"}} if users else {}
    extra = {"properties": image, "additionalProperties": True} if users else {}
    return {"type": "object", "description": _OF_OTHERS, **extra}


def _check_schemes(parts: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Reject a storage scheme that is not an alternative: it would exclude the schemes of all other fragments."""
    for path, schema in parts:
        address = schema.get("definitions", {}).get("store", {}).get("properties", {}).get("from", {})
        if address.keys() - {"anyOf", "type", "not", "title"}:
            message = "definitions.store.properties.from excludes the storage schemes of other fragments"
            hint = 'write {"anyOf": [{"pattern": ..., "title": ...}]}, which adds one'
            raise ChartgenError(Problem(message, path, hint=hint))


def _check_sub_paths(target: Target, parts: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Reject a scheme of `subPaths` that no address has: the paths of the scheme that is meant would be ignored."""
    addresses = [
        schema.get("definitions", {}).get("store", {}).get("properties", {}).get("from") for _, schema in parts
    ]
    text = json.dumps(addresses)
    known = set(re.findall(r"[a-z][a-z0-9+.-]*(?=://)", text))
    for fragment in target.fragments:
        for index, scheme in enumerate(fragment.sub_paths):
            if not re.search(rf"\b{re.escape(scheme)}\b", text):  # a pattern may be `^(one|two)://`
                place = load_file(fragment.path / "fragment.yaml")
                message = f"no storage address begins with {scheme}://"
                raise ChartgenError(place.problem(message, ("subPaths", index), did_you_mean(scheme, known)))


def schema_text(schema: Any, indent: int = 0) -> str:
    """Return a schema with one line for each innermost part, so that people can read it and its diffs."""
    if not isinstance(schema, dict) or not any(isinstance(value, dict) for value in schema.values()):
        return ENCODE(schema)
    pad = " " * (indent + 2)
    lines = [f"{pad}{ENCODE(key)}: {schema_text(value, indent + 2)}" for key, value in schema.items()]
    return "{\n" + ",\n".join(lines) + "\n" + " " * indent + "}"


def read_schema(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file.

    Raises:
        ChartgenError: It is not JSON, or not an object.
    """
    return _parse(read_text(path), path)


def _nested(*keys_and_schema: Any) -> dict[str, Any]:
    *keys, schema = keys_and_schema
    for key in reversed(keys):
        schema = {"properties": {key: schema}}
    nested: dict[str, Any] = schema
    return nested


def _sound(path: Path, target: Target) -> dict[str, Any]:
    """Read a schema, and check a user's; chartgen's tests check its own."""
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
        raise ChartgenError(Problem(f"must be an object, not {type_name(data)}", path, 1, 1))
    return data
