"""Known defects of values files of others, written by hand, are found where they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chartgen.helm.yaml import load, load_file, values_text
from chartgen.linter.handwritten import HANDWRITTEN, lint_values

VALUES = Path(__file__).parents[1] / "data" / "recipes" / "values.yaml"
HEAD = "workload: {gpus: 16}\nnetwork: {hostNetwork: true}\nvolumes: {}\n"


def test_written_yaml_reads_back() -> None:
    data = {"a": {"b": "no", "on": 1.0e-05, "c.d/e": ["x: y", None]}, "f": {}, "g": "1e3"}
    assert load(values_text(data), "x").data == data


def test_lint_of_the_recipe_names_each_known_defect() -> None:
    found = [(each.rule, each.problem.line) for each in lint_values(load_file(VALUES)) if each.rule in IDS]
    assert found == [
        ("buckets-have-names", 17),
        ("gpus-fill-machines", 21),
        ("dead-key-of-brackets", 23),
        ("dead-key-of-recipe", 24),
        ("no-secrets-in-handwritten-values", 33),
        ("dead-key-of-brackets", 35),
        ("plugin-and-daemon-fit", 37),
        ("variables-stand-once", 42),
    ]


IDS = {rule.id for rule in HANDWRITTEN}
DEFECTS = {
    "dead-key-of-brackets": "subnetworks[]:\n",
    "dead-key-of-recipe": HEAD + "tasSetting: {}\n",
    "gpus-fill-machines": HEAD.replace("16", "12"),
    "buckets-have-names": HEAD.replace("volumes: {}", "volumes: {gcsVolumes: true, gcsMounts: [{mountPath: /a}]}"),
    "buckets-have-a-sidecar": HEAD.replace("volumes: {}", "volumes: {gcsMounts: [{bucketName: a}]}"),
    "networks-are-named": HEAD.replace("true", "false"),
    "plugin-and-daemon-fit": HEAD.replace("true", 'true, pluginVersion: "p:v1.0.3", daemonVersion: "d:v1.0.8"'),
    "variables-stand-once": HEAD.replace("16", "16, envs: [{name: A, value: one}, {name: A, value: two}]"),
    "no-secrets-in-handwritten-values": "hfToken: hf_abcdefghijklmnopqrstuvwxyz0123456789\n",
}


@pytest.mark.parametrize("rule", sorted(IDS))
def test_each_rule_finds_its_defect_alone(rule: str) -> None:
    assert [each.rule for each in lint_values(load(DEFECTS[rule], "values.yaml"))] == [rule]
    assert lint_values(load(HEAD, "values.yaml")) == []


@pytest.mark.parametrize("section", ["workload", "network", "volumes"])
@pytest.mark.parametrize(
    "value", ["1.5", "text", "[a, {name: {b: c}}]", "{gpus: 8, envs: [{name: {a: b}}], gcsMounts: 3}"]
)
def test_sections_of_another_type_are_looked_at(section: str, value: str) -> None:
    """Values that people wrote by hand may hold anything; the rules answer all the same."""
    written = re.sub(rf"{section}: .*", f"{section}: {value}", HEAD + "tasSettings: {}\ndwsSettings: {}\n")
    assert {each.severity for each in lint_values(load(written, "values.yaml"))} <= {"error", "warning"}
