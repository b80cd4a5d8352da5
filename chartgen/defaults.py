"""The values.yaml of a chart: the texts of its parts joined, with the target's own defaults written over them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from chartgen import gotemplate
from chartgen.chartschema import FILE as SCHEMA_FILE
from chartgen.chartschema import read_schema
from chartgen.documented import Row, rows
from chartgen.errors import ChartgenError, did_you_mean
from chartgen.yamltext import Document, Keys, Plain, load, require_map


@dataclass(frozen=True)
class Part:
    """One values.yaml of those that a chart's is joined from.

    Args:
        path: The file.
        source: Its text as written, whose lines messages name.
        text: Its text with the composer's tags filled in.
    """

    path: Path
    source: str
    text: str

    @property
    def document(self) -> Document:
        """The file's data; keys that a tag writes are placeholders."""
        return _read(self.source, self.path)


def check_parts(parts: Sequence[Part]) -> None:
    """Check that each top-level key has one owner, and that the schema beside its file describes it.

    Args:
        parts: The values files.

    Raises:
        ChartgenError: A key of two owners, or one that no schema describes.
    """
    owners: dict[str, Path] = {}
    problems = []
    for part in parts:
        beside = part.path.with_name(SCHEMA_FILE)
        known = read_schema(beside).get("properties", {}) if beside.is_file() else {}
        for key in require_map(part.document, "a values file"):
            if key in owners:
                hint = "each top-level key has one owner; use another name"
                problems.append(part.document.problem(f"{key!r} is already defined in {owners[key]}", (key,), hint))
            elif key not in known:
                hint = "describe it in values.schema.json beside this file"
                problems.append(part.document.problem(f"{key!r} has no schema", (key,), hint))
            owners.setdefault(key, part.path)
    if problems:
        raise ChartgenError(problems)


def with_defaults(text: str, target: Document, values: dict[str, Plain]) -> tuple[str, list[Row]]:
    """Write a target's default values over the parts' own, keeping comments and order.

    Args:
        text: The joined values.yaml.
        target: The target's file, for messages.
        values: What it says under `values`.

    Returns:
        The new text, and a row for each value.

    Raises:
        ChartgenError: The target sets values that the chart does not have.
    """
    document = load(text, "values.yaml")
    table = {row.keys: row for row in rows(text, document)}
    edits, problems = [], []
    for keys, value in _settings(values, table):
        span = document.span(keys)
        if keys not in table or span is None:
            dotted = ".".join(map(str, keys))
            hint = did_you_mean(dotted, [row.key for row in table.values()])
            problems.append(target.problem(f"the chart has no value {dotted!r}", ("values", *keys), hint))
        else:
            table[keys] = replace(table[keys], default=json.dumps(value, ensure_ascii=False))
            edits.append((*span, table[keys].default))
    if problems:
        raise ChartgenError(problems)
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text, list(table.values())


def place_of(keys: Keys, parts: Sequence[Part], target: Document) -> tuple[Path | str, int, int]:
    """Tell where a default value was written: in the target, or in the values file of its owner."""
    if target.span(("values", *keys)) is not None:
        return (target.path, *target.position(("values", *keys)))
    for part in parts:
        if keys and part.document.span(keys[:1]) is not None:
            return (part.path, *part.document.position(keys))
    return ("values.yaml", 0, 0)


def _settings(values: Plain, table: dict[Keys, Row], at: Keys = ()) -> Iterator[tuple[Keys, Plain]]:
    """Walk a target's values down to the keys that the chart has; a map that the chart leaves empty is set whole."""
    if isinstance(values, dict) and at not in table:
        for key, value in values.items():
            yield from _settings(value, table, (*at, key))
    else:
        yield at, values


@lru_cache(maxsize=256)
def _read(source: str, path: Path) -> Document:
    return load(gotemplate.mask(source) if "<%" in source else source, path)
