"""Defects of values files of others, written by hand, are found where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from chartgen.helm.yaml import load, load_file, values_text
from chartgen.linter.handwritten import HANDWRITTEN, lint_values

VALUES = Path(__file__).parents[1] / "data" / "recipes" / "values.yaml"


def test_written_yaml_reads_back() -> None:
    data = {"a": {"b": "no", "on": 1.0e-05, "c.d/e": ["x: y", None]}, "f": {}, "g": "1e3", "h": "\U0001f600\x85\ufeff"}
    assert load(values_text(data), "x").data == data


def test_lint_of_the_recipe_names_each_known_defect() -> None:
    found = [(each.rule, each.problem.line) for each in lint_values(load_file(VALUES)) if each.rule in DEFECTS]
    assert found == [
        ("dead-key-of-brackets", 23),
        ("no-secrets-in-handwritten-values", 33),
        ("dead-key-of-brackets", 35),
    ]


DEFECTS = {
    "dead-key-of-brackets": "subnetworks[]:\n",
    "no-secrets-in-handwritten-values": "hfToken: hf_abcdefghijklmnopqrstuvwxyz0123456789\n",
}


@pytest.mark.parametrize("rule", [rule.id for rule in HANDWRITTEN])
def test_each_rule_finds_its_defect_alone(rule: str) -> None:
    assert [each.rule for each in lint_values(load(DEFECTS[rule], "values.yaml"))] == [rule]
