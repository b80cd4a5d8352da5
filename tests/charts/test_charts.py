"""The committed charts: fresh, and clean for both Helms with no values and with every preset of the repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rendered import VALUES

from chartgen.composer.assembly import compose, compose_setup
from chartgen.composer.library import open_library
from chartgen.composer.target import load_target
from chartgen.helm.chart import Chart
from chartgen.helm.schema import check_patterns
from chartgen.helm.yaml import load_file
from chartgen.linter import catalogue, find_presets, lint
from chartgen.rehearsal import engines

ROOT = VALUES.parent
CHARTS = [Chart.read(path.parent) for path in sorted(ROOT.glob("charts/*/Chart.yaml"))]


def composed() -> list[Chart]:
    targets = [load_target(name) for name in open_library().names("target")]
    made = [chart for target in targets for chart in (compose(target), compose_setup(target)) if chart]
    return sorted(made, key=lambda chart: chart.name)


def test_committed_charts_and_schemas_are_what_is_composed() -> None:
    charts = composed()
    assert [chart.name for chart in CHARTS] == [chart.name for chart in charts]
    assert charts == CHARTS
    assert catalogue.stale(catalogue.schemas(charts), ROOT / "schemas") == []


def test_two_builds_are_identical() -> None:
    assert composed() == composed()


@pytest.mark.engines
@pytest.mark.parametrize("helm", ["helm", "helm3"])
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
@pytest.mark.usefixtures("built_engines")
def test_lint_finds_nothing(chart: Chart, helm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHARTGEN_HELM", str(engines.require(helm)))
    presets = find_presets(chart.name.removesuffix("-setup"), VALUES)
    assert presets
    # what no formula and no list of options covers, such as recipes
    unknown = {"memory-is-not-estimated", "options-of-an-unknown-image"} if chart.name == "onprem-p8000" else set()
    if not chart.name.endswith("-setup") and any("recipe:" in files[0].read_text() for files in presets.values()):
        unknown.add("memory-is-not-estimated")
    found = lint(chart, presets)
    assert {each.rule for each in found if each.severity == "unchecked"} == unknown
    assert [str(each) for each in found if each.severity != "unchecked"] == []


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_schema_patterns_mean_the_same_to_python_and_helm(chart: Chart) -> None:
    assert check_patterns(json.loads(chart.files["values.schema.json"])) == []


@pytest.mark.parametrize("path", sorted(VALUES.rglob("*.yaml")), ids=lambda path: path.name)
def test_values_files_point_editors_at_a_schema(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    assert (path.parent / first.partition("=")[2]).is_file()
    load_file(path)
