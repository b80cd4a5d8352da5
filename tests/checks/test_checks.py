"""Checks, table-driven: wrong values give the expected findings at the expected places, right ones none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from answers import answer
from pairs import TARGETS, chart_of, layers, presets_of, run_of
from rendered import VALUES
from userlib import chartgen, library

from chartgen.checks import CHECKS, check
from chartgen.composer.assembly import compose
from chartgen.composer.target import load_target
from chartgen.findings import Finding
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load_file

WRONG: Any = load_file(Path(__file__).parents[1] / "data" / "wrong-values.yaml").data


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


@pytest.mark.parametrize(("target", "preset"), [(each, name) for each in TARGETS for name in presets_of(each)])
def test_presets_are_right_on_every_target(target: str, preset: str) -> None:
    run = run_of(load_target(target), preset)
    found = check(chart_of(target), run.values)
    assert [str(each) for each in found if each.severity != "unchecked"] == []
    assert [each.rule for each in found] == unchecked_of(target, preset)


def unchecked_of(target: str, preset: str) -> list[str]:
    """Return the rules that cannot look at a preset: no formula covers LoRA, recipes and other programs."""
    values: Any = load_values(layers(target, preset)).data
    (launcher,) = (each for each in load_target(target).launchers if each.name == values["launcher"])
    if values.get("launchers", {}).get(launcher.name, {}).get(launcher.own_model):
        return ["memory-is-not-estimated"]
    if preset != "llama2-70b-lora":
        return []
    return ["memory-is-not-estimated", *["options-of-an-unknown-image"] * (target == "onprem-p8000")]


@pytest.mark.parametrize(
    ("sets", "key"),
    [
        (("launchers.megatron-lm.config.use-torch-fsdp2=true",), "launchers.megatron-lm"),
        (("launchers.megatron-lm.args={--cpu-offloading-num-layers=2}",), "launchers.megatron-lm"),
        (("launchers.megatron-lm.config.recompute-modules=mlp",), "launchers.megatron-lm"),
        (("launcher=nemo-1", "launchers.nemo-1.config.model.peft.peft_scheme=lora"), "launchers.nemo-1"),
        (("launchers.megatron-lm.program=/opt/own/train.py",), "launchers.megatron-lm"),
        (("launchers.megatron-lm.program=/opt/elsewhere/pretrain_gpt.py",), ""),
        (("launchers.megatron-lm.config.use-torch-fsdp2=false",), ""),
    ],
)
def test_memory_that_is_not_estimated_is_said(sets: tuple[str, ...], key: str) -> None:
    found = check(chart_of("eks-p5"), load_values(set_values=sets))
    said = [each for each in found if each.rule == "memory-is-not-estimated"]
    assert [(each.key, each.severity) for each in said] == [(key, "unchecked")] * bool(key)


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github"])
def test_what_is_not_estimated_is_in_every_form_and_refuses_nothing(form: str) -> None:
    own = ("--set", "launchers.megatron-lm.config.use-torch-fsdp2=true")
    argv = (*own, "--set-string", "env.CUDA_DEVICE_MAX_CONNECTIONS=32", "--output", form)
    ran = chartgen("check", "eks-p5", *files_of("eks-p5", "megatron-gpt-7.5b"), *argv)
    assert ran.exit_code == 0
    assert "memory-is-not-estimated" in ran.stdout
    assert "use_torch_fsdp2" in ran.stdout


def test_every_check_says_what_it_looks_for_and_where_its_limit_comes_from() -> None:
    assert len({each.id for each in CHECKS}) == len(CHECKS)
    assert [each.id for each in CHECKS if not each.source or not each.meaning] == []


def files_of(target: str, preset: str) -> list[str]:
    return [word for path in layers(target, preset) for word in ("-f", str(path))]


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github"])
def test_the_command_tells_findings_in_every_form(form: str) -> None:
    argv = ("check", "gke-a3mega", *files_of("gke-a3mega", "gpt3-175b"), "--set", "nodes=31", "--output", form)
    ran = chartgen(*argv)
    assert ran.exit_code == 1
    assert "world-size" in ran.stdout
    assert "use 28 or 32 machines" in ran.stdout


def test_the_command_is_content_with_what_is_right_and_shows_the_memory() -> None:
    ran = chartgen("check", "gke-a3mega", *files_of("gke-a3mega", "gpt3-175b"))
    assert (ran.exit_code, ran.stdout) == (0, "gke-a3mega: no findings\n")
    (line,) = (line for line in ran.stderr.splitlines() if line.startswith("  memory "))
    assert re.findall(r"\d+", line) == ["60", "31", "30", "0", "54", "85"]


def test_a_chart_folder_is_checked_like_its_target() -> None:
    folder = str(VALUES.parent / "charts" / "oke-h100")
    told = [
        chartgen("check", name, *files_of("oke-h100", "llama3-70b"), "--set", "nodes=7").stdout.splitlines()[:-1]
        for name in (folder, "oke-h100")
    ]
    assert told[0] == told[1] != []


def test_layouts_that_fit_pass_the_check() -> None:
    preset = str(VALUES / "llama3-70b.yaml")
    fitted = chartgen("fit", "oke-h100", "-f", preset, "--gpus", "64", "--most", "20", "--output", "json")
    found = answer(fitted.stdout)["layouts"]
    assert len(found) > 10
    first = [f"{key}={str(value).lower()}" for key, value in found[0].items() if "." in key]
    argv = [word for each in (*first, "nodes=8") for word in ("--set", each)]
    assert chartgen("check", "oke-h100", *files_of("oke-h100", "llama3-70b"), *argv).exit_code == 0


def test_no_layout_fits_is_said_with_a_way_out() -> None:
    ran = chartgen("fit", "oke-h100", "-f", str(VALUES / "megatron-gpt-310.1b.yaml"), "--gpus", "8")
    assert ran.exit_code == 1
    assert "no layout fits: try more GPUs" in ran.stderr


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("run=null", "run: null deletes the chart's default"),
        ("storage.data.from=null", "storage.data.from: null deletes the chart's default"),
        ("launchers.megatron-lm=null", "launchers.megatron-lm: null deletes the chart's default"),
        ("nodes=null", "nodes: null deletes the chart's default"),
    ],
)
def test_a_null_may_not_take_away_what_templates_need(flag: str, told: str) -> None:
    ran = chartgen("check", "gke-a3mega", "--set", flag)
    assert (ran.exit_code, ran.stdout.count("\n")) == (1, 2)
    assert f"{told}; leave it out to keep that, or give another value [values-schema]" in ran.stdout


@pytest.mark.parametrize("flag", ["gpusPerNode=null", "model.queryGroups=null"])
def test_a_null_may_stand_where_nothing_else_is_meant(flag: str) -> None:
    assert chartgen("check", "gke-a3mega", "--set", flag).exit_code == 0


@pytest.mark.parametrize(("kind", "code"), [("job", 1), ("jobset", 0)])
def test_the_workload_kind_counts(kind: str, code: int, tmp_path: Path) -> None:
    wrong = ("--set", "run.maxRestarts=2")
    assert chartgen("check", "gke-a3mega", "--workload", kind, *wrong).exit_code == code
    folder = tmp_path / "renamed"
    compose(load_target("gke-a3mega"), kind).write(folder)
    assert chartgen("check", folder, *wrong).exit_code == code


NO_FRIDAYS = """\
{{- if eq .Values.run.again "friday" }}
{{- $_ := set $check "problems" (append $check.problems "run.again: never on a friday; use monday") }}
{{- end }}
"""


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
def test_rules_of_a_users_own_fragment_are_told_by_its_chart(tmp_path: Path) -> None:
    own = library(tmp_path, {"mine/validate.tpl": NO_FRIDAYS})
    argv = ("check", "box", "--path", own, "--set", "run.again=friday")
    assert chartgen(*argv).exit_code == 0
    ran = chartgen(*argv, "--render")
    assert ran.exit_code == 1
    assert "run.again: never on a friday; use monday [refused-by-the-chart]" in ran.stdout


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
def test_what_the_checks_refuse_is_not_told_once_more_by_the_chart() -> None:
    ran = chartgen("check", "gke-a3mega", "--set", "storage.outputs.readOnly=true", "--render")
    assert ran.stdout.count("storage.outputs.readOnly: ") == 1
    assert "[written-storage-is-writable]" in ran.stdout


def test_a_finding_stands_where_its_values_were_changed_last() -> None:
    (found,) = [
        each
        for each in check(
            chart_of("gke-a3mega"),
            load_values(layers("gke-a3mega", "gpt3-175b"), set_values=["model.attentionHeads=100"]),
        )
        if each.rule == "size-of-a-head"
    ]
    assert found.problem.path == "--set model.attentionHeads=100"
