"""Documentation of values: the `# --` comment above each key describes it, in the README and in the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from chartgen.helm.yaml import Document, Keys, Plain

# One encoder for a chart's hundreds of values: json.dumps creates one for each call.
_BRIEF = 140  # characters
ENCODE = json.JSONEncoder(ensure_ascii=False).encode


@dataclass(frozen=True)
class ValueRow:
    """One value: its dotted key, its default as one line of JSON, and its description."""

    key: str
    default: str
    meaning: str
    keys: Keys


def value_rows(text: str, document: Document) -> Iterator[ValueRow]:
    """Yield all values of a values file in its own order.

    Args:
        text: The file.
        document: The same file, parsed.
    """
    lines = text.split("\n")
    for keys, value, line in document.leaves():
        yield ValueRow(".".join(map(str, keys)), _one_line(value), _comment_above(lines, line - 2), keys)


def grouped(table: Iterable[ValueRow]) -> list[list[str]]:
    """Return the keys of a chart: those of the top level, then for each map its name and the keys below it."""
    groups: dict[str, list[str]] = {"": []}
    for row in table:
        depth = 2 if row.keys[0] == "launchers" else min(1, len(row.keys) - 1)
        head = ".".join(map(str, row.keys[:depth]))
        groups.setdefault(head, [head]).append(".".join(map(str, row.keys[depth:])))
    return list(groups.values())


def describe_values(schema: dict[str, Any], table: Iterable[ValueRow]) -> None:
    """Add each value's description to its schema, where editors show it; an existing description is kept."""
    for row in table:
        node = schema
        for key in row.keys:
            node = node.get("properties", {}).get(key, {})
        if node and "$ref" not in node and row.meaning:
            node.setdefault("description", brief(row.meaning))


def brief(meaning: str) -> str:
    """Return a meaning that fits a line of a schema: the first clauses of a long one, which values.yaml has in full."""
    clauses = re.match(r".{20,130}(?=[;.:] )", meaning) if len(meaning) > _BRIEF else None
    return clauses[0] if clauses else meaning


def _one_line(value: Plain) -> str:
    return ENCODE(value)


def _comment_above(lines: list[str], index: int) -> str:
    found: list[str] = []
    while index >= 0 and lines[index].lstrip().startswith("#"):
        comment = lines[index].lstrip().removeprefix("#").strip()
        if comment.startswith("-- "):
            return " ".join([comment.removeprefix("-- "), *found])
        found.insert(0, comment)
        index -= 1
    return ""
