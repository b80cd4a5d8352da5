"""`pod.yaml`, `container.yaml` and `object.yaml`: parts of Kubernetes objects, of which each field fills a slot."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from chartgen.composer.definition import file_in, has_file, source_text
from chartgen.composer.slots import SLOTS
from chartgen.errors import Problem, did_you_mean, refuse

# File -> its fields -> the slots that they fill. All other fields of a pod's spec fill one slot.
FIELDS: dict[str, dict[tuple[str, ...], str]] = {}
for _name, _slot in SLOTS.items():
    if _slot.file:
        FIELDS.setdefault(_slot.file, {})[tuple(_slot.field.split("."))] = _name
# The fields of a launcher's container.yaml, and the parts that they are.
LAUNCHERS_FIELDS: dict[tuple[str, ...], str] = {("args",): "args.yaml", ("env",): "env.yaml"}
_KEY = re.compile(r"( *)([A-Za-z]\w*):(?:\s+([^\s#].*))?(?:\s*#.*)?$")
_COMMENT = re.compile(r"\s*(#.*|\{\{-? ?/\*.*\*/ ?-?\}\}|)$")
_ASSIGNS = re.compile(r"\s*\{\{-? ?(\$\w+) :=.*\}\}$")
# What opens a block that does not end in its line, or assigns a variable.
_OPENS = re.compile(r"(?!.*\bend\b)\s*(\{\{-? ?|<% ?)((if|with|range|for|set) |\$\w+ :=)")


class _Field(NamedTuple):
    """A field that begins in a line: its keys, and what follows in that line."""

    line: int
    keys: tuple[str, ...]
    value: str


@lru_cache(maxsize=256)
def slot_texts(path: Path, text: str, *, launcher: bool = False) -> dict[str, str]:
    """Return the text of each slot that a file fills; the lines of other fields are blank, so that places remain.

    Args:
        path: A file that is named in `FIELDS`.
        launcher: Whether it is a launcher's.

    Raises:
        ChartgenError: An unknown field, a field in a block or with its content beside the key, or a line of no field.
    """
    fields = LAUNCHERS_FIELDS if launcher else FIELDS[path.name]
    lines = text.split("\n")
    found = _fields(lines, {keys[0] for keys in fields if len(keys) > 1})
    owners: list[str | None] = [None] * len(lines)
    heads: dict[tuple[str, ...], int] = {}
    above: set[int] = set()
    problems: list[Problem] = []
    begins = [_end(lines, field.line) for field in found]
    for field, begin, stop in zip(found, begins, [*begins, len(lines)][1:], strict=True):
        rest = fields.get(field.keys[:1]) if len(field.keys) > 1 else None
        start, slot = field.line + 1, fields.get(field.keys, rest)
        above |= {*range(begin, field.line)}
        if field.keys not in fields and rest:
            start = begin
        else:
            problems += _misfits(path, field, fields, heads, lines[begin : field.line])
            heads[field.keys] = field.line
        owners[start:stop] = [slot] * (stop - start)
    known = {*heads.values(), *above}
    left = [n for n, line in enumerate(lines) if not owners[n] and n not in known and not _COMMENT.match(line)]
    hint = "move it below the field that it is for"
    refuse(problems or [Problem("belongs to no field", path, n + 1, 1, hint) for n in left[:1]])
    shared = {n: lines[n] for n in sorted(above) if _ASSIGNS.match(lines[n])}
    parts = {slot: [line if owners[n] == slot else "" for n, line in enumerate(lines)] for slot in fields.values()}
    filled = {slot: part for slot, part in parts.items() if not all(map(_COMMENT.match, part))}
    return {slot: "\n".join(_with_shared(part, shared)).rstrip("\n") + "\n" for slot, part in filled.items()}


def _with_shared(part: list[str], shared: dict[int, str]) -> list[str]:
    """Write the assignments above a part that it uses into the lines right above it, which are blank."""
    start = first = next(n for n, line in enumerate(part) if line.strip())
    for number, line in reversed(shared.items()):
        name = _ASSIGNS.match(line)
        if name and number < start and re.search(rf"\{name[1]}\b", "\n".join(part)):
            first -= 1
            part[first] = line
    return part


def slot_text(folder: Path, slot: str) -> tuple[Path, str]:
    """Return the text of a slot in a fragment's folder, and its file; empty where the fragment does not fill it."""
    for name in filter(None, (SLOTS[slot].file, slot)):
        if has_file(folder, name):
            text = source_text(file := file_in(folder, name))
            if part := slot_texts(file, text).get(slot, "") if name in FIELDS else text:
                return file, part
    return file_in(folder, slot), ""


def _fields(lines: list[str], parents: set[str]) -> list[_Field]:
    """Return the fields in column 1, and those of their children that are fields too."""
    top, column, fields = "", 0, []
    for number, line in enumerate(lines):
        found = _KEY.match(line)
        if found and not found[1]:
            top, column = found[2], 0
            fields.append(_Field(number, (top,), found[3] or ""))
        elif found and top in parents and column in (0, len(found[1])):
            column = len(found[1])
            fields.append(_Field(number, (top, found[2]), found[3] or ""))
    return fields


def _end(lines: list[str], line: int) -> int:
    """Return the end of what is above a field: comments, openings of blocks and assignments belong to the field."""
    while line and (_COMMENT.match(lines[line - 1]) or _OPENS.match(lines[line - 1])):
        line -= 1
    return line


def _misfits(
    path: Path,
    field: _Field,
    fields: dict[tuple[str, ...], str],
    heads: dict[tuple[str, ...], int],
    above: list[str],
) -> Iterator[Problem]:
    name, place = ".".join(field.keys), (path, field.line + 1, 1)
    known = {".".join(keys) for keys in fields}
    if field.keys not in fields and not any(each.startswith(f"{name}.") for each in known):
        yield Problem(f"{name} is not a field of {path.name}", *place, did_you_mean(name, known))
    elif field.value:
        yield Problem(f"{name} has its content beside the key", *place, "write it below, each item in its own line")
    elif any(_OPENS.match(line) and not _ASSIGNS.match(line) for line in above):
        yield Problem(f"{name} is inside a block", *place, "open and close the block below the field")
    elif field.keys in heads:
        yield Problem(f"{name} is already in line {heads[field.keys] + 1}", *place, "keep one of the two")
