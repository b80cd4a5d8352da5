"""The files of schemas/: JSON Schemas of definition files and of each chart's values, for editors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from chartgen.composer.definition import definition_schema
from chartgen.composer.schema import schema_text
from chartgen.composer.values import ValueRow, value_rows
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.yaml import load

_BRIEF = 140  # characters
_DEFINITIONS = ("target", "fragment", "launcher", "workload", "policy")


def published_schemas(charts: Iterable[Chart]) -> dict[str, str]:
    """Return the published schemas, file name -> text: one per kind of definition file and per chart's values.

    Args:
        charts: The charts; those of runs with all launchers, since a values file is for each chart of its target.
    """
    texts = {f"{name}.schema.json": json.dumps(definition_schema(name), indent=2) + "\n" for name in _DEFINITIONS}
    draft, rule = {"$schema": "http://json-schema.org/draft-07/schema#"}, definition_schema("rule")
    item = {key: value for key, value in rule.items() if key not in ("$schema", "title")}
    whole = {**draft, "title": "chartgen rules", "type": "array", "items": item}
    texts["rules.schema.json"] = json.dumps(whole, indent=2) + "\n"
    texts |= {f"{chart.name}.values.schema.json": _described_schema(chart) for chart in charts}
    return texts


def _described_schema(chart: Chart) -> str:
    """Return the schema of a chart's values with the meaning of each, which editors show."""
    text = chart.files["values.yaml"]
    schema = json.loads(chart.files[SCHEMA_FILE])
    describe_values(schema, value_rows(text, load(text, "values.yaml")))
    return schema_text(schema) + "\n"


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
