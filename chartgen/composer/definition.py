"""Definition files (`target.yaml`, `fragment.yaml`, ...): data that a JSON Schema describes, and records of it.

The schemas are in chartgen/data/definitions, and published for editors under `schemas/`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from chartgen.data import DATA
from chartgen.errors import Problem, refuse
from chartgen.helm.yaml import Document, Keys, dotted, load_file, read_text, require_map

OWN_FOLDER = Path(__file__).parents[1] / "library"
_WITHIN = f"{OWN_FOLDER}{os.sep}"
_SCHEMAS = DATA / "definitions"
_Record = TypeVar("_Record")


@cache
def definition_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of file: target, fragment, launcher, workload, policy, rule or folder."""
    schema: dict[str, Any] = json.loads((_SCHEMAS / f"{kind}.schema.json").read_bytes())
    return schema


def is_builtin(path: Path) -> bool:
    """Report whether a file is chartgen's own; all other files are rendered in a sandbox."""
    return str(path).startswith(_WITHIN)  # Path.is_relative_to takes ten times as long


def has_file(folder: Path, name: str) -> bool:
    """Report whether a folder has a file of a name; chartgen's own folders are asked once, a hundred times a chart."""
    path = f"{folder}{os.sep}{name}"
    return _own_file(path) if path.startswith(_WITHIN) else os.path.isfile(path)  # noqa: PTH113


def files_in(folder: Path) -> tuple[Path, ...]:
    """Return what is in a folder, by name; nothing if it is missing. chartgen's own folders are read once."""
    return _own_files(folder) if is_builtin(folder) else _files(folder)


def _files(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.iterdir(), key=str)) if folder.is_dir() else ()


# Joining a path takes microseconds, and the same hundred files are asked for chart by chart.
file_in = lru_cache(maxsize=4096)(Path.joinpath)
_own_file, _own_files = cache(os.path.isfile), cache(_files)


def source_text(path: Path) -> str:
    """Read a file of a definition, as `read_text` does; chartgen's own stay the same while it runs: read once."""
    name = str(path)
    return _own_text(name) if name.startswith(_WITHIN) else read_text(path)


@lru_cache(maxsize=1024)
def _own_text(path: str) -> str:  # a text is compared faster than a Path
    return read_text(Path(path))


def read_definition(path: Path, kind: str) -> tuple[Document, dict[str, Any]]:
    """Read a definition file and check it; join texts of several lines into one.

    Raises:
        ChartgenError: All unknown keys, wrong types and missing keys at once, each with its place.
    """
    document = load_file(path)
    data = require_map(document, path.name)
    refuse(misfits(document, data, kind))
    return document, one_line_texts(data)


def misfits(document: Document, data: Any, kind: str, at: Keys = ()) -> list[Problem]:
    """Check a part of a user's file, at the place `at`, against its schema; chartgen's tests check its own."""
    if is_builtin(Path(document.path)):
        return []
    from chartgen.helm.schema import validate_schema

    # JSON knows neither infinity nor NaN, which is also below each limit
    endless = [keys for keys, value, _ in document.leaves() if isinstance(value, float) and not math.isfinite(value)]
    return [document.problem(f"{dotted(keys)} must be a finite number", keys) for keys in endless] or validate_schema(
        data, definition_schema(kind), lambda keys: (document.path, *document.position((*at, *keys)))
    )


def one_line_texts(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a map with its texts of several lines joined into one."""
    return {name: " ".join(value.split()) if isinstance(value, str) else value for name, value in data.items()}


def record_of(record: Callable[..., _Record], data: Mapping[str, Any], **others: Any) -> _Record:
    """Return the record that the checked data of a definition makes: each field is the key of its name in camelCase.

    Args:
        others: Fields without a key, or another value than the file's.
    """
    found: dict[str, Any] = {}
    declared: Any = record
    for field in dataclasses.fields(declared):
        key = re.sub("_(.)", lambda letter: letter[1].upper(), field.name)
        if key in data and field.name not in others:
            found[field.name] = tuple(data[key]) if str(field.type).startswith("tuple") else data[key]
    return record(**found, **others)
