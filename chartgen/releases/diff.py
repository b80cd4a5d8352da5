"""Compare two renders of a release object by object and field by field.

A run's name changes with its content, so its objects are paired by role and not by name alone.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from chartgen.kube import Object
from chartgen.kube.run_kinds import run_kind
from chartgen.kube.workloads import Workers, find_workers
from chartgen.masking import HIDDEN, masked_value

_Key: TypeAlias = tuple[str, str, str, str]

_DIGEST = re.compile(r"[0-9a-f]{8}")
_MARKS = {"added": "+", "removed": "-", "changed": "~", "replaced": "~"}


@dataclass(frozen=True)
class ChangedField:
    """One field that differs."""

    path: str  # path of the field; list items appear by their name, `containers[train].image`
    old: Any  # value before; None when the field is new. Secrets are hidden.
    new: Any  # value after; None when the field is removed


@dataclass(frozen=True)
class Change:
    """One object that differs."""

    # `added`, `changed`, `replaced` (another object takes its place) or `removed`
    action: Literal["added", "removed", "changed", "replaced"]
    kind: str  # the object's kind
    name: str  # its name; the old name of a replaced object
    new_name: str  # the new name, with the kind if that changes; differs from `name` for a replaced object
    # Fields of a changed or replaced object that differ, apart from the run's name
    fields: tuple[ChangedField, ...] = ()


def compare_renders(old: Iterable[Object], new: Iterable[Object]) -> list[Change]:
    """Compare two renders of a release.

    Args:
        old: The objects before; empty for a first install.
        new: The objects after.

    Returns:
        The differences, in the order of the new objects, then the removed objects.
    """
    old, new = list(old), list(new)
    before, after = find_workers(old), find_workers(new)
    if before is None or after is None:
        before = after = None  # at least one side has no run
    there = {_key(item, before): item for item in old}
    changes = []
    for item in new:
        former = there.pop(_key(item, after), None)
        if former is None:
            changes.append(Change("added", *_head(item), _head(item)[1]))
        elif change := _compare(former, item, before, after):
            changes.append(change)
    return changes + [Change("removed", *_head(item), _head(item)[1]) for item in there.values()]


def describe_changes(changes: Iterable[Change]) -> Iterator[str]:
    """Yield changes as lines: one per object, then its fields."""
    for change in changes:
        renamed = f" -> {change.new_name}" if change.new_name != change.name else ""
        yield f"{_MARKS[change.action]} {change.kind} {change.name}{renamed} ({change.action})"
        for field in change.fields:
            yield from (f"    {line}" for line in _field_lines(field))


def _key(item: Object, run: Workers | None) -> _Key:
    """Return a key that pairs objects regardless of the run's name; for the run itself, regardless of its kind."""
    metadata = item["metadata"]
    if run and metadata["name"] == run.name and run_kind(item):
        return ("run", "", "", "")
    name = metadata["name"].replace(run.name, "RUN") if run else metadata["name"]
    return str(item["apiVersion"]).rpartition("/")[0], item["kind"], metadata.get("namespace", ""), name


def _compare(old: Object, new: Object, before: Workers | None, after: Workers | None) -> Change | None:
    name, same_name = old["metadata"]["name"], _head(old) == _head(new)
    if before and after and before.name != after.name:
        old = _renamed(old, before.name, after.name)
    fields = tuple(_differences(old, new))
    if same_name and not fields:
        return None
    hidden = tuple(ChangedField(field.path, HIDDEN, HIDDEN) for field in fields) if new["kind"] == "Secret" else fields
    new_name = new["metadata"]["name"] if old["kind"] == new["kind"] else " ".join(_head(new))
    return Change("changed" if same_name else "replaced", old["kind"], name, new_name, hidden)


def _renamed(item: Object, old: str, new: str) -> Object:
    """Replace the run's old name by the new one everywhere, so that the rename is reported once."""
    text = json.dumps(item).replace(old, new)
    # directories of a run contain only the digest at the end of its name
    digests = old.rpartition("-")[2], new.rpartition("-")[2]
    renamed: Object = json.loads(text.replace(*digests) if all(map(_DIGEST.fullmatch, digests)) else text)
    return renamed


def _head(item: Object) -> tuple[str, str]:
    return item["kind"], item["metadata"]["name"]


def _differences(old: Any, new: Any, path: str = "") -> Iterator[ChangedField]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif (old_items := _by_name(old)) is not None and (new_items := _by_name(new)) is not None:
        for name in dict.fromkeys([*old_items, *new_items]):
            yield from _differences(old_items.get(name), new_items.get(name), f"{path}[{name}]")
    elif old != new:
        name = path.rpartition("[")[2].partition("]")[0] if path.endswith("].value") else path.rpartition(".")[2]
        yield ChangedField(path, masked_value(old, (name,)), masked_value(new, (name,)))


def _by_name(value: Any) -> dict[Any, Any] | None:
    """Return list items by name or position; None if the value is not a list of objects."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        return None
    names = [item.get("name") for item in value]
    named = all(names) and len(set(names)) == len(names)
    return dict(zip(names, value, strict=True)) if named else dict(enumerate(value))


def _field_lines(field: ChangedField) -> Iterator[str]:
    old, new = field.old, field.new
    if (before := _lines(old)) is not None and (after := _lines(new)) is not None:
        yield f"{field.path}:"
        # without the two lines of file names, and without line numbers, which are useless here
        lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
        yield from (f"  {line[0]} {line[1:]}" for line in lines if not line.startswith("@@"))
    elif old is None:
        yield f"{field.path}: + {_text(new)}"
    elif new is None:
        yield f"{field.path}: - {_text(old)}"
    else:
        yield f"{field.path}: {_text(old)} -> {_text(new)}"


def _lines(value: Any) -> list[str] | None:
    """Return a multi-line text, or a list of words, as lines; None for anything else."""
    if isinstance(value, list):
        return [_text(item) for item in value]
    return value.splitlines() if isinstance(value, str) and "\n" in value else None


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}..."
