"""The committed charts: fresh, and clean for both Helms with no values and with every preset of the repository."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pairs import WIRINGS
from rendered import VALUES, chart
from selection import HELMS, cases

from chartgen.helm.chart import Chart
from chartgen.helm.manifests import render
from chartgen.helm.program import HelmError
from chartgen.helm.schema import check_patterns
from chartgen.linter import find_presets, lint
from chartgen.rehearsal import engines

ROOT = VALUES.parent
CHARTS = [Chart.read(path.parent) for path in sorted(ROOT.glob("charts/*/Chart.yaml"))]


@pytest.mark.engines
@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize(
    "chart", cases(CHARTS, [chart for chart in CHARTS if chart.name in WIRINGS]), ids=lambda chart: chart.name
)
@pytest.mark.usefixtures("built_engines")
def test_lint_finds_nothing(chart: Chart, helm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHARTGEN_HELM", str(engines.require(helm)))
    presets = find_presets(chart.name.removesuffix("-setup"), VALUES)
    assert presets
    # what no formula and no list of options covers, such as recipes
    unknown = {"memory-is-not-estimated", "options-of-an-unknown-image"} if chart.name == "onprem-p8000" else set()
    if not chart.name.endswith("-setup") and any("recipe:" in files[0].read_text() for files in presets.values()):
        unknown.add("memory-is-not-estimated")
    if chart.name == "gke-a4x":  # A4X Max needs an image with gIB, which the user names (gib-of-the-image)
        unknown.add("machine-types-are-rendered")
    found = lint(chart, presets)
    assert {each.rule for each in found if each.severity == "unchecked"} == unknown
    assert [str(each) for each in found if each.severity != "unchecked"] == []


def test_schema_patterns_mean_the_same_to_python_and_helm() -> None:
    assert [found for chart in CHARTS for found in check_patterns(json.loads(chart.files["values.schema.json"]))] == []


def test_values_files_point_editors_at_a_schema() -> None:
    for path in sorted(VALUES.rglob("*.yaml")):
        first = path.read_text().splitlines()[0]
        assert first.startswith("# yaml-language-server: $schema="), path
        assert (path.parent / first.partition("=")[2]).is_file(), path


@pytest.mark.parametrize("word", [{"parallelism": "auto"}, {"batch": {"micro": "auto"}}, {"recompute": "auto"}])
def test_helm_alone_refuses_auto_and_names_the_command(word: dict[str, Any]) -> None:
    with pytest.raises(HelmError, match="chartgen plan gke-a3mega "):
        render(chart(), "run", "default", word)
