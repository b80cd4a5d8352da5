"""Of 27 defects, each in a copy of one chart, lint finds all, where they are mended."""

from __future__ import annotations

from pathlib import Path

import pytest
from lint_seeds import WEB, WEB_SEEDS, plant_web

from chartgen.data.api_schemas import kubernetes_versions
from chartgen.findings import Finding
from chartgen.linter import Subject
from chartgen.linter.chart_files import read_chart
from chartgen.linter.steps import run_steps


def errors(folder: Path) -> list[Finding]:
    read = read_chart(folder)
    done = run_steps(Subject(read.chart, folder, faults=read.findings, versions=(kubernetes_versions()[-1],)))
    return [each for each in done.findings if each.severity != "unchecked" and each.level == "breaks"]


@pytest.mark.helm
def test_the_chart_without_a_defect_has_no_findings() -> None:
    assert errors(WEB) == []


@pytest.mark.threat(15)
@pytest.mark.helm
def test_each_defect_is_found_where_it_is(tmp_path: Path) -> None:
    missed: dict[str, list[str]] = {}
    for seed in WEB_SEEDS:
        file, lines = plant_web(seed, tmp_path / seed["id"])
        found = errors(tmp_path / seed["id"])
        if not any(each.problem.path in (file, str(file)) and each.problem.line in (0, *lines) for each in found):
            missed[seed["id"]] = [str(each) for each in found]
    assert not missed, f"{len(WEB_SEEDS) - len(missed)} of {len(WEB_SEEDS)} found"
