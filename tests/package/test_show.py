"""`chartgen show`: targets, fragments, launchers and presets by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from answers import answer
from pairs import layers
from userlib import chartgen, library, write

from chartgen.cli.show import _KINDS
from chartgen.composer.describe import KINDS, every_name, kinds_of
from chartgen.composer.library import open_library
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load


def test_every_definition_of_chartgen_can_be_shown() -> None:
    opened = open_library()
    for name in every_name(opened):
        for kind in kinds_of(name, opened):
            assert chartgen("show", name, "--kind", kind, "--output", "json").exit_code == 0, name
    assert _KINDS == KINDS


def test_a_fragment_of_ones_own(tmp_path: Path) -> None:
    ours = library(
        tmp_path,
        {
            "mine/values.yaml": "mine:\n  # -- How many rails\n  rails: <%= 4 %>\n",
            "mine/values.schema.json": '{"properties": {"mine": {"type": "object", "properties": {"rails": {}}}}}',
            "mine/env.yaml": "- name: A\n  value: b\n",
        },
    )
    facts = answer(chartgen("show", "mine", "--path", ours, "--output", "json").stdout)
    assert (facts["schema"], facts["appliesTo"], facts["files"]) == ("chartgen/fragment/v1", "always", ["env.yaml"])
    assert [(row["key"], row["meaning"]) for row in facts["values"]] == [("mine.rails", "How many rails")]
    assert "How many rails" in chartgen("show", "mine", "--path", ours).stdout


def test_a_preset_is_a_values_file_also_on_a_target() -> None:
    preset, overlaid = layers("gke-a3mega", "llama3-70b")[:2]
    assert chartgen("show", "llama3-70b").stdout == preset.read_text()
    merged = load_values([preset, overlaid]).data
    assert load(chartgen("show", "llama3-70b", "--target", "gke-a3mega").stdout, "x").data == merged
    facts = answer(chartgen("show", "llama3-70b", "--target", "gke-a3mega", "--output", "json").stdout)
    assert facts["values"] == merged
    assert "gke-a3mega" in facts["overlays"]


def test_the_files_of_a_definition_are_printed_whole(tmp_path: Path) -> None:
    ours = library(tmp_path, {"mine/env.yaml": "- name: A\n  value: b\n"})
    assert "# mine/env.yaml\n- name: A\n  value: b\n" in chartgen("show", "mine", "--files", "--path", ours).stdout
    assert "beforeLaunch.sh" in chartgen("show", "infiniband", "--files").stdout


@pytest.mark.parametrize(("name", "hint"), [("infiniban", "infiniband"), ("nccl-test", "--kind preset")])
def test_a_name_that_is_none_or_several(name: str, hint: str) -> None:
    ran = chartgen("show", name)
    assert (ran.exit_code, ran.output.count("\n")) == (2, 1)
    assert hint in ran.output


def test_the_values_of_a_users_preset(tmp_path: Path) -> None:
    ours = library(tmp_path, {})
    write(ours, {"values/ours.yaml": "# Ours.\nsteps: 7\n", "values/box/ours.yaml": "nodes: 3\n"})
    ran = chartgen("show", "ours", "--path", ours, "--target", "box")
    assert ran.stdout == "steps: 7\nnodes: 3\n"
