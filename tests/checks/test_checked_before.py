"""A job that an earlier command checked is not checked again, unless a file that it depends on has changed since."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from userlib import chartgen

from chartgen.composer import composed
from chartgen.composer.library import open_library
from chartgen.composer.presets import preset_layers


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, as of a command that starts after every file has been written."""
    monkeypatch.setenv("CHARTGEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(composed, "_LOADED", time.time() + 60)
    return tmp_path / "cache" / "checks"


def test_findings_are_read_again_until_a_file_changes(cache: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("nodes: -1\n")
    first = chartgen("check", "gke-a3mega", "-f", file)
    (entry,) = cache.iterdir()
    assert chartgen("check", "gke-a3mega", "-f", file).output == first.output
    entry.write_text(json.dumps(json.loads(entry.read_text()) | {"findings": []}))
    assert (first.exit_code, chartgen("check", "gke-a3mega", "-f", file).exit_code) == (1, 0)
    file.write_text("# moved\nnodes: -1\n")
    assert f"{file}:2" in chartgen("check", "gke-a3mega", "-f", file).output


def test_flags_kinds_and_folders_have_findings_of_their_own(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "own" / "policies").mkdir(parents=True)
    for more in ([], ["--set", "nodes=0"], ["--workload", "job"], ["--path", tmp_path / "own"]):
        chartgen("check", "gke-a3mega", *more)
    assert len(list(cache.iterdir())) == 4


def test_the_files_of_a_preset_given_one_by_one_are_not_the_preset(cache: Path) -> None:
    """Only a preset has a layout that chartgen may replace."""
    files = preset_layers("gpt3-5b", "gke-a3mega", open_library())
    chartgen("check", "gke-a3mega", "--preset", "gpt3-5b")
    chartgen("check", "gke-a3mega", *(word for file in files for word in ("-f", file)))
    assert len(list(cache.iterdir())) == 2


def test_a_chart_of_a_folder_is_always_checked(cache: Path, tmp_path: Path) -> None:
    chartgen("build", "gke-a3mega", "-d", tmp_path)
    chartgen("check", tmp_path / "gke-a3mega")
    assert not cache.exists()
