"""Checks the values of a release against its chart, before Helm or a cluster sees them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chartgen import schema
from chartgen.chart import Chart
from chartgen.errors import ChartgenError, Problem
from chartgen.values import Values, coalesce
from chartgen.yamltext import Document, load, require_map


def effective_values(chart: Chart, values: Values) -> dict[str, Any]:
    """Give what the templates see: the chart's defaults with the user's values over them, as Helm coalesces them."""
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
    defaults = _defaults(chart)

    def locate(keys: Sequence[str | int]) -> tuple[Path | str | None, int, int]:
        origin = values.origin(keys)
        return origin if origin.path else ("values.yaml", *defaults.position(tuple(keys)))

    return schema.validate(effective_values(chart, values), json.loads(text), locate)


def validate(chart: Chart, values: Values) -> None:
    """Check values and raise all problems at once.

    Raises:
        ChartgenError: At least one value does not fit.
    """
    problems = check_values(chart, values)
    if problems:
        raise ChartgenError(problems)


def _defaults(chart: Chart) -> Document:
    return load(chart.files.get("values.yaml", ""), "values.yaml")
