"""Checks the values of a release against its chart, before Helm or a cluster sees them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.errors import ChartgenError, Problem
from chartgen.helm import schema
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values, coalesce
from chartgen.helm.yaml import Document, load, require_map

_KEEP = "leave it out to keep that, or give another value"


def effective_values(chart: Chart, values: Values) -> dict[str, Any]:
    """Return what the templates see: the chart's defaults with the user's values over them, as Helm coalesces them."""
    return coalesce(require_map(_defaults(chart), "values.yaml"), values.data)


def check_values(chart: Chart, values: Values) -> list[Problem]:
    """Validate values against the chart's own schema; clearer than Helm's report, with the user's file and line.

    Args:
        chart: The chart; without a values.schema.json anything is valid.
        values: The user's layers.
    """
    text = chart.files.get("values.schema.json")
    if text is None:
        return []
    wanted = _schema(text)
    found = schema.validate(effective_values(chart, values), wanted, lambda keys: _near(chart, values, keys))
    deleted = _deleted(values.data, require_map(_defaults(chart), "values.yaml"), wanted, wanted)
    return [
        *found,
        *(
            Problem(f"{'.'.join(keys)}: null deletes the chart's default", *_near(chart, values, keys), hint=_KEEP)
            for keys in deleted
        ),
    ]


def _schema(text: str) -> dict[str, Any]:
    try:
        wanted = json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = "mend the schema; the values were not checked against it"
        raise ChartgenError(Problem(f"is not JSON: {error}", "values.schema.json", 1, hint=hint)) from None
    return wanted if isinstance(wanted, dict) else {}  # `true` and `false` are schemas too


def _deleted(
    data: dict[str, Any], defaults: dict[str, Any], schema: dict[str, Any], root: dict[str, Any]
) -> Iterator[tuple[str, ...]]:
    """Return the keys that a null takes away although the schema names them: templates need all of these."""
    for key, value in data.items():
        named = _maps(_maps(schema, "properties"), key)
        named = _maps(_maps(root, "definitions"), str(named.get("$ref", "")).rpartition("/")[2]) or named
        default = defaults.get(key)
        if value is None and named and default is not None and "null" not in named.get("type", ""):
            yield (key,)
        elif isinstance(value, dict) and isinstance(default, dict):
            yield from ((key, *below) for below in _deleted(value, default, named, root))


def _maps(node: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a part of a schema; nothing where a stranger's schema has no map there."""
    part = node.get(key)
    return part if isinstance(part, dict) else {}


def place(chart: Chart, values: Values, keys: Sequence[str | int]) -> tuple[Path | str | None, int, int]:
    """Return where a value stands: the user's file and line, or the default in the chart."""
    return values.origin(keys) if values.sets(tuple(keys)) else ("values.yaml", *_defaults(chart).position(tuple(keys)))


def _near(chart: Chart, values: Values, keys: Sequence[str | int]) -> tuple[Path | str | None, int, int]:
    """Return where a value stands, or where the user would have had to write it."""
    origin = values.origin(keys)
    return origin if origin.path else place(chart, values, keys)


def _defaults(chart: Chart) -> Document:
    return _read(chart.files.get("values.yaml", ""))


@lru_cache(maxsize=8)
def _read(text: str) -> Document:
    return load(text, "values.yaml")
