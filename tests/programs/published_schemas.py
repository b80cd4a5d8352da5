"""The files of schemas/: JSON Schemas of definition files and of each chart's values, for editors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from chartgen.composer import fragment, launcher, policies, rules, target, workload
from chartgen.composer.definition import Field
from chartgen.composer.schema import schema_text
from chartgen.composer.value_docs import ValueRow, value_rows
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.yaml import load

_BRIEF = 140  # characters
_DEFINITIONS = {
    "target": target.FIELDS,
    "fragment": fragment.FIELDS,
    "launcher": launcher.FIELDS,
    "workload": workload.FIELDS,
    "policy": policies.FIELDS,
}


def published_schemas(charts: Iterable[Chart]) -> dict[str, str]:
    """Return the published schemas, file name -> text: one per kind of definition file and per chart's values.

    Args:
        charts: The charts; those of runs with all launchers, since a values file is for each chart of its target.
    """
    texts = {
        f"{name}.schema.json": json.dumps(definition_schema(f"chartgen {name}", table), indent=2) + "\n"
        for name, table in _DEFINITIONS.items()
    }
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "chartgen rules", "type": "array"}
    rule = {
        key: value for key, value in definition_schema("", rules.FIELDS).items() if key not in draft or key == "type"
    }
    texts["rules.schema.json"] = json.dumps({**draft, "items": rule}, indent=2) + "\n"
    texts |= {f"{chart.name}.values.schema.json": _described_schema(chart) for chart in charts}
    return texts


def _described_schema(chart: Chart) -> str:
    """Return the schema of a chart's values with the meaning of each, which editors show."""
    text = chart.files["values.yaml"]
    schema = json.loads(chart.files[SCHEMA_FILE])
    describe_values(schema, value_rows(text, load(text, "values.yaml")))
    return schema_text(schema) + "\n"


def definition_schema(title: str, fields: Mapping[str, Field]) -> dict[str, object]:
    """Return a table as a closed draft-07 JSON Schema."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "title": title}
    return {**schema, **_object_schema(fields)}


def _object_schema(fields: Mapping[str, Field]) -> dict[str, object]:
    properties = {name: _field_schema(field) for name, field in fields.items()}
    required = [name for name, field in fields.items() if field.required and not field.unless]
    schema: dict[str, object] = {"type": "object", "properties": properties, "additionalProperties": False}
    if others := [name for name, field in fields.items() if field.unless]:
        schema["anyOf"] = [{"required": [fields[others[0]].unless]}, {"required": others}]
    return {**schema, "required": required} if required else schema


def _field_schema(field: Field) -> dict[str, object]:
    schema: dict[str, object] = {"type": field.type}
    if field.description:
        schema["description"] = field.description
    if field.enum:
        schema["enum"] = list(field.enum)
    if field.names:
        schema["propertyNames"] = {"pattern": f"^{field.names[0]}$"}
    if field.child:
        schema["items" if field.type == "array" else "additionalProperties"] = _field_schema(field.child)
    if field.keys:
        schema |= _object_schema(field.keys)
    if field.pattern and not field.item:
        schema["pattern"] = f"^{field.pattern[0]}$"
    if field.positive and not field.item:
        schema["exclusiveMinimum"] = 0
    if field.required and field.type in ("array", "object"):
        schema["minItems" if field.type == "array" else "minProperties"] = 1
    return schema


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
