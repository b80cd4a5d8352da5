"""The form of every JSON answer.

An answer is one object: `schema` names its form and version, keys are in camelCase, and null means unknown or none.
Fields of a record become keys; those of a dictionary stay unchanged, as names of variables, files or facts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from chartgen.errors import Problem


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
    if members := record_members(kind):
        found = {name: getattr(value, name) for name in members}
        return {answer_key(name): None if each == "" == members[name] else plain(each) for name, each in found.items()}
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
def record_members(record: Any) -> dict[str, Any]:
    """Return the fields of a record with their defaults; empty for any other type."""
    if issubclass(record, Problem):
        return {"message": MISSING, "hint": ""}  # its place is one in the user's files, which a cluster does not know
    if is_dataclass(record):
        return {field.name: field.default for field in fields(record)}
    return {name: record._field_defaults.get(name, MISSING) for name in getattr(record, "_fields", ())}


def answer_key(name: str) -> str:
    """Return the key of a record's field: its name in camelCase."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
