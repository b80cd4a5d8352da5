"""Of 27 defects, each in a copy of one chart, lint finds all but one, where they are mended."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from chartgen.findings import Finding
from chartgen.helm.yaml import load_file
from chartgen.linter import Subject
from chartgen.linter.chart_files import read_chart
from chartgen.linter.steps import examine

FOLDER = Path(__file__).parents[1] / "data" / "lint"
WEB = FOLDER / "web"
SEEDS: list[dict[str, Any]] = load_file(FOLDER / "web-seeds.yaml").data  # type: ignore[assignment]


def errors(folder: Path) -> list[Finding]:
    read = read_chart(folder)
    done = examine(Subject(read.chart, folder, faults=read.findings, versions=("1.37",)))
    return [each for each in done.findings if each.severity != "unchecked" and each.level == "breaks"]


def planted(seed: dict[str, Any], folder: Path) -> tuple[Path, range]:
    """Write the chart with the seed's defect, and return the file and the lines of it."""
    shutil.copytree(WEB, folder)
    (file,) = folder.glob(f"templates/{seed['file']}.*")
    text = file.read_text()
    assert seed["old"] in text, seed["id"]
    before, _, after = text.rpartition(seed["old"]) if seed.get("last") else text.partition(seed["old"])
    file.write_text(before + seed["new"] + after)
    first = file.read_text()[: len(before)].count("\n") + 1
    return file, range(first - seed.get("above", 0), first + seed["new"].strip("\n").count("\n") + 1)


@pytest.mark.helm
def test_the_chart_without_a_defect_has_no_findings() -> None:
    assert errors(WEB) == []


@pytest.mark.threat(15)
@pytest.mark.helm
def test_each_defect_is_found_where_it_is(tmp_path: Path) -> None:
    missed: dict[str, list[str]] = {}
    for seed in SEEDS:
        file, lines = planted(seed, tmp_path / seed["id"])
        found = errors(tmp_path / seed["id"])
        if not any(each.problem.path in (file, str(file)) and each.problem.line in (0, *lines) for each in found):
            missed[seed["id"]] = [str(each) for each in found]
    assert [*missed] == [seed["id"] for seed in SEEDS if seed.get("missed")], (
        f"{len(SEEDS) - len(missed)} of {len(SEEDS)} found"
    )
