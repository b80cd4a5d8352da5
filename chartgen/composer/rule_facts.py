"""The facts that rules may name beside values: what each means, and its type as in a JSON Schema.

Each is made twice: `checks/facts.py` for `chartgen check`, `_facts.tpl` for the chart; a test compares the two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from chartgen.composer.definition import definition_schema


class Fact(NamedTuple):
    """One fact: its type as in a JSON Schema, and a description."""

    schema: dict[str, Any]
    meaning: str


_TABLE = definition_schema("facts")
FACTS = {name: Fact(schema, schema["description"]) for name, schema in _TABLE["properties"].items()}
# Those of chartgen's own rules alone: they follow its programs and may change with any version.
INTERNAL = frozenset(name for name, fact in FACTS.items() if "x-internal" in fact.schema)
# What a launcher's program must have an option for, and the value that asks for nothing: the common default.
PORTABLE: dict[str, Any] = _TABLE["x-portable"]
