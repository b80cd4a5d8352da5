"""The reference page of rules: its example works, and it names every key, function and fact."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from chart_refusals import refused, told, values_with
from doc_runner import REPOSITORY, blocks
from userlib import composed, library

from chartgen.composer.definition import definition_schema
from chartgen.composer.expressions import FUNCTIONS
from chartgen.composer.rule_facts import FACTS, INTERNAL

PAGE = REPOSITORY / "docs" / "reference" / "rules.md"


def test_the_page_has_every_key_function_and_fact() -> None:
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    schema = definition_schema("rule")
    needed, described = schema["required"], schema["properties"]
    keys = [(f"`{name}`", key["description"] + "; required" * (name in needed)) for name, key in described.items()]
    assert [row for row in keys if row not in rows] == []
    facts = [(f"`{name}`", fact.meaning) for name, fact in FACTS.items() if name not in INTERNAL]
    assert [row for row in facts if row not in rows] == []
    named = {word for first, _ in rows for word in re.findall(r"`(\w+)\(", first)}
    assert named == FUNCTIONS.keys()
    assert len(rows) == len(described) + len(facts) + 10


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
def test_the_example_is_a_rule(tmp_path: Path) -> None:
    (text,) = blocks(PAGE, "yaml")
    chart = composed(library(tmp_path, {"mine/rules.yaml": text}))
    sets = [values_with({"nodes": nodes, "batch.global": 40 * 48}) for nodes in (4, 5, 8)]
    lines = refused(chart, sets)
    assert lines == [told(chart, each) for each in sets]
    own = [[line for line in each if "do not fill switches" in line] for each in lines]
    assert list(map(len, own)) == [0, 1, 0]
