"""A chart is checked alike by name and by folder; where its target is not known here, every form of output says so."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import userlib
from answers import findings
from rendered import chart, setup_chart
from userlib import chartgen

from chartgen.checks import check, validate
from chartgen.composer.assembly import compose_setup
from chartgen.composer.library import open_library
from chartgen.composer.origin import Composed, Foreign, Unknown, identified, origin_of
from chartgen.composer.target import load_target
from chartgen.errors import MissingToolError
from chartgen.findings import NOT_OURS, TARGET_UNKNOWN
from chartgen.helm.chart import Chart
from chartgen.helm.values import load_values

TARGET = userlib.TARGET.replace(", FRAGMENTS", "")
# 24 GPUs cannot be shared out in groups of 16
WRONG = ("--set", "nodes=3,parallelism.tensor=16")
SOUND = Path(__file__).parents[1] / "data" / "lint" / "sound"


@pytest.fixture
def lib(tmp_path: Path) -> Path:
    """A folder with a target of one's own, and a chart of it beside."""
    folder = tmp_path / "lib"
    userlib.write(folder, {"targets/box.yaml": TARGET})
    userlib.composed(folder).write(tmp_path / "charts" / "box")
    return folder


def rules(output: str) -> set[tuple[str, str]]:
    return {(row["rule"], row["severity"]) for row in findings(output)}


def test_a_folder_has_the_findings_of_its_target(lib: Path) -> None:
    by_name = chartgen("check", "box", "--path", lib, *WRONG, "--output", "json")
    by_folder = chartgen("check", lib.parent / "charts" / "box", "--path", lib, *WRONG, "--output", "json")
    assert ("world-size", "error") in rules(by_name.output)
    assert (by_folder.output, by_folder.exit_code) == (by_name.output, by_name.exit_code) == (by_name.output, 1)


def test_chartgen_path_counts_too(lib: Path) -> None:
    found = chartgen(
        "check", lib.parent / "charts" / "box", *WRONG, "--output", "json", env={"CHARTGEN_PATH": str(lib)}
    )
    assert ("world-size", "error") in rules(found.output)


def test_a_chart_of_an_unknown_target_is_not_checked_and_every_form_says_so(lib: Path) -> None:
    folder = lib.parent / "charts" / "box"
    told = {form: chartgen("check", folder, *WRONG, "--output", form) for form in ("text", "sarif", "junit", "github")}
    told["json"] = chartgen("check", folder, *WRONG, "--output", "json")
    assert {form: each.exit_code for form, each in told.items()} == dict.fromkeys(told, 3)
    assert rules(told["json"].output) == {(TARGET_UNKNOWN, "unchecked")}
    (result,) = json.loads(told["sarif"].output)["runs"][0]["results"]
    assert (result["kind"], result["level"], result["ruleId"]) == ("open", "none", TARGET_UNKNOWN)
    suite = ET.fromstring(told["junit"].output)[0]  # noqa: S314
    assert (suite.get("skipped"), suite.get("failures")) == ("1", "0")
    assert suite.find("testcase/skipped") is not None
    assert told["github"].output.startswith("::warning ")
    for each in told.values():
        assert "--path" in each.output
        assert "no findings" not in each.output


@pytest.mark.usefixtures("built_helm")
@pytest.mark.parametrize("command", [("lint",), ("render",), ("exec", "--dry-run"), ("install",)])
def test_no_command_goes_on_with_what_it_could_not_check(command: tuple[str, ...], lib: Path) -> None:
    name, *more = command
    release = () if name == "lint" else ("my-run",)
    found = chartgen(name, lib.parent / "charts" / "box", *release, *more, env={"KUBECONFIG": os.devnull})
    assert found.exit_code == 3
    assert "target box" in found.output


@pytest.mark.usefixtures("built_helm")
def test_lint_finds_the_folders_target_with_path(lib: Path) -> None:
    found = chartgen("lint", lib.parent / "charts" / "box", "--path", lib, *WRONG, "--output", "json")
    assert ("world-size", "error") in rules(found.stdout)
    assert found.exit_code == 1


def test_what_does_not_fit_the_schema_is_told_beside_it(lib: Path) -> None:
    found = chartgen("check", lib.parent / "charts" / "box", "--set", "nodse=3", "--output", "json")
    assert rules(found.output) == {("values-schema", "error"), (TARGET_UNKNOWN, "unchecked")}
    assert found.exit_code == 1


def test_a_chart_of_others_is_not_checked_either() -> None:
    found = chartgen("check", SOUND, "--output", "json")
    assert (rules(found.output), found.exit_code) == ({(NOT_OURS, "unchecked")}, 3)


def test_a_chart_says_what_it_was_composed_from(lib: Path) -> None:
    read = Chart.read(lib.parent / "charts" / "box")
    assert origin_of(read) == Unknown("box")
    known = identified(read, open_library([lib])).origin
    assert isinstance(known, Composed)
    assert (known.name, known.workload, known.setup) == ("box", "jobset", False)
    assert origin_of(Chart.read(SOUND)) == Foreign()


def test_the_kind_of_a_chart_does_not_hang_on_its_name(tmp_path: Path) -> None:
    chart("job").write(tmp_path / "any")
    origin = origin_of(Chart.read(tmp_path / "any"))
    assert isinstance(origin, Composed)
    assert (origin.name, origin.workload) == ("gke-a3mega", "job")


def test_a_target_whose_name_ends_in_setup_keeps_its_checks(tmp_path: Path) -> None:
    userlib.write(tmp_path, {"targets/box-setup.yaml": TARGET})
    userlib.composed(tmp_path, "box-setup").write(tmp_path / "charts" / "box-setup")
    for name in ("box-setup", tmp_path / "charts" / "box-setup"):
        found = chartgen("check", name, "--path", tmp_path, *WRONG, "--output", "json")
        assert ("world-size", "error") in rules(found.output)


def test_a_setup_chart_is_marked_and_has_no_job(tmp_path: Path) -> None:
    setup = setup_chart()
    assert setup == compose_setup(load_target("gke-a3mega"))
    setup.write(tmp_path / "renamed")
    read = Chart.read(tmp_path / "renamed")
    origin = origin_of(read)
    assert isinstance(origin, Composed)
    assert origin.setup
    assert check(read, load_values(set_values=["nodes=3,parallelism.tensor=16"])) == []


def test_validate_says_that_the_folder_is_missing(lib: Path) -> None:
    with pytest.raises(MissingToolError) as raised:
        validate(Chart.read(lib.parent / "charts" / "box"), load_values())
    assert raised.value.exit_code == 3


def test_rules_that_need_helm_are_said_to_be_unchecked_without_it(lib: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(lib))
    monkeypatch.setenv("CHARTGEN_CACHE", str(lib / "cache"))
    assert shutil.which("helm") is None
    found = chartgen("check", "box", "--path", lib, "--render", "--output", "json")
    assert ("refused-by-the-chart", "unchecked") in rules(found.output)
    assert found.exit_code == 3


def test_a_chart_that_lacks_a_value_of_its_target_was_not_checked(tmp_path: Path) -> None:
    """It says to be a target's, and has the values of another."""
    shutil.copytree(SOUND, tmp_path / "sound")
    head = tmp_path / "sound/Chart.yaml"
    head.write_text(f"{head.read_text()}annotations: {{chartgen/target: gke-a3mega}}\n")
    found = chartgen("check", tmp_path / "sound", "--output", "json")
    assert rules(found.output) == {(NOT_OURS, "unchecked")}, found.output


@pytest.mark.parametrize("schema", ["{}", None])
def test_values_that_only_a_changed_schema_takes_are_refused_by_the_targets(lib: Path, schema: str | None) -> None:
    """Someone else's chart may carry our annotations and any schema; its values reached the arithmetic as they were."""
    folder = lib.parent / "charts" / "box"
    path = folder / "values.schema.json"
    path.unlink() if schema is None else path.write_text(schema)
    found = chartgen("check", folder, "--path", lib, "--set-json", 'batch={"global": [1]}', "--output", "json")
    assert (found.exit_code, rules(found.stdout)) == (1, {("values-schema", "error")})


def test_a_changed_schema_may_have_keys_of_its_own_but_accepts_no_other_types(lib: Path) -> None:
    """Neither a check that crashes nor one that accepts the type by chance decides it."""
    folder = lib.parent / "charts" / "box"
    (folder / "values.schema.json").write_text("{}")
    found = chartgen("check", folder, "--path", lib, "--set-json", 'mine={"a": 1}', "--output", "json")
    assert (found.exit_code, rules(found.stdout)) == (0, set())
    found = chartgen("check", folder, "--path", lib, "--set-json", 'avoidNodes="a"', "--output", "json")
    assert (found.exit_code, rules(found.stdout)) == (1, {("values-schema", "error")})
