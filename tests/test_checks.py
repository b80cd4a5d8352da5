"""Checks, table-driven: wrong values give the expected findings at the expected places, right ones none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pairs import PRESETS, TARGETS, chart_of, layers, run_of
from rendered import VALUES
from userlib import chartgen

from chartgen.checks import CHECKS, check
from chartgen.findings import Finding
from chartgen.target import load_target
from chartgen.values import load_values
from chartgen.yamltext import load_file

WRONG: Any = load_file(Path(__file__).parent / "data" / "wrong-values.yaml").data


def place(finding: Finding, own: Path) -> str:
    """Write a finding as the table does."""
    problem = finding.problem
    name = "" if problem.path == own else f"{getattr(problem.path, 'name', problem.path)}:"
    return f"{name}{problem.line}:{problem.column} {finding.rule}"


def test_the_table_is_large_and_each_case_stands_once() -> None:
    assert len(WRONG) >= 150
    assert (
        len({(case["base"], case["values"]) for case in WRONG}) == len({case["name"] for case in WRONG}) == len(WRONG)
    )


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case["name"])
def test_wrong_values_are_found_where_they_stand(case: dict[str, Any], tmp_path: Path) -> None:
    target, preset = case["base"].split()
    own = tmp_path / "wrong.yaml"
    own.write_text(case["values"])
    found = check(chart_of(target), load_values([*layers(target, preset), own]))
    errors = [each for each in found if each.severity == "error"]
    assert sorted(place(each, own) for each in errors) == sorted(case["finds"])
    assert all("\n" not in str(each) for each in errors)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("target", TARGETS)
def test_presets_are_right_on_every_target(target: str, preset: str) -> None:
    run = run_of(load_target(target), preset)
    assert [str(each) for each in check(chart_of(target), run.values)] == []


def test_every_check_says_what_it_looks_for_and_where_its_limit_comes_from() -> None:
    assert len({each.id for each in CHECKS}) == len(CHECKS)
    assert [each.id for each in CHECKS if not each.source or not (each.rule.__doc__ or "").strip()] == []


def files_of(target: str, preset: str) -> list[str]:
    return [word for path in layers(target, preset) for word in ("-f", str(path))]


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github"])
def test_the_command_tells_findings_in_every_form(form: str) -> None:
    argv = ("check", "gke-a3mega", *files_of("gke-a3mega", "gpt3-175b"), "--set", "nodes=31", "--output", form)
    ran = chartgen(*argv)
    assert ran.exit_code == 1
    assert "world-size" in ran.stdout
    assert "use 28 or 32 machines" in ran.stdout


def test_the_command_is_content_with_what_is_right_and_explains_the_memory() -> None:
    ran = chartgen("check", "gke-a3mega", *files_of("gke-a3mega", "gpt3-175b"), "--explain")
    assert (ran.exit_code, ran.stdout) == (0, "gke-a3mega: no findings\n")
    assert "60.4 GB of 85, 71%" in ran.stderr


def test_a_chart_folder_is_checked_like_its_target() -> None:
    folder = str(VALUES.parent / "charts" / "oke-h100")
    told = [
        chartgen("check", name, *files_of("oke-h100", "llama3-70b"), "--set", "nodes=7").stdout.splitlines()[:-1]
        for name in (folder, "oke-h100")
    ]
    assert told[0] == told[1] != []


def test_layouts_that_fit_pass_the_check() -> None:
    preset = str(VALUES / "llama3-70b.yaml")
    found = json.loads(chartgen("fit", "oke-h100", "-f", preset, "--gpus", "64", "--output", "json").stdout)
    assert len(found) > 10
    first = [f"{key}={str(value).lower()}" for key, value in found[0].items() if "." in key]
    argv = [word for each in (*first, "nodes=8") for word in ("--set", each)]
    assert chartgen("check", "oke-h100", *files_of("oke-h100", "llama3-70b"), *argv).exit_code == 0


def test_no_layout_fits_is_said_with_a_way_out() -> None:
    ran = chartgen("fit", "oke-h100", "-f", str(VALUES / "megatron-gpt-310.1b.yaml"), "--gpus", "8")
    assert ran.exit_code == 1
    assert "no layout fits: try more GPUs" in ran.stderr


REFUSED = [
    ("queue.name=", "topology.mode: Kueue places the pods, so it needs queue.name"),
    ("storage.outputs.readOnly=true", "storage.outputs.readOnly: runs write there; remove it"),
    ("topology.sliceSize=5", "topology.sliceSize: 5 does not divide 32 nodes"),
    ("launchers.nemo-1.config.model.num_layers=5", "launchers.nemo-1.config: model.num_layers is set by model.layers"),
    ("launchers.nemo-1.args={++trainer.max_steps=9}", "launchers.nemo-1.args: trainer.max_steps is set by steps"),
]


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
@pytest.mark.parametrize(("flag", "message"), REFUSED)
def test_the_charts_own_rules_are_told_too(flag: str, message: str) -> None:
    argv = ("gke-a3mega", *files_of("gke-a3mega", "gpt3-175b"), "--set", flag)
    ran = chartgen("check", *argv, "--render")
    assert ran.exit_code == 1
    assert message in ran.stdout
    assert "[refused-by-the-chart]" in ran.stdout
    assert chartgen("check", *argv).exit_code == 0
