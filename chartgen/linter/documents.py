"""The documents of a chart that several steps of lint read, each read once; Helm reports a broken one."""

from __future__ import annotations

import json
from functools import lru_cache

from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE, Schema
from chartgen.helm.yaml import Document, Plain, load, require_map


def head_of(chart: Chart) -> dict[str, Plain]:
    """Return the content of Chart.yaml."""
    return require_map(load(chart.files["Chart.yaml"], "Chart.yaml"), "Chart.yaml")


def values_of(chart: Chart) -> Document | None:
    """Return values.yaml, where the last of equal keys wins; None if it is broken."""
    return _values(chart.files.get("values.yaml", ""))


@lru_cache(maxsize=4)
def _values(text: str) -> Document | None:
    try:
        return load(text, "values.yaml", allow_duplicates=True)
    except ChartgenError:
        return None


def schema_of(chart: Chart) -> Schema:
    """Return values.schema.json; empty if it is missing or broken."""
    try:
        schema = json.loads(chart.files.get(SCHEMA_FILE, "{}"))
    except (RecursionError, ValueError):
        return {}
    return schema if isinstance(schema, dict) else {}
