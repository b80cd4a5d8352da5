"""Presets by name, and site files to fill in: the first minute of a new user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from answers import answer, findings
from pairs import PRESETS, TARGETS, layers
from userlib import chartgen, library, write

from chartgen.composer.library import open_library
from chartgen.composer.presets import preset_layers, presets
from chartgen.helm.values import load_values


def test_a_preset_is_its_file_and_the_overlay_of_the_target() -> None:
    opened = open_library()
    assert set(presets(opened)) == {*PRESETS, "benchmark"}
    for target in TARGETS:
        for preset in PRESETS:
            assert preset_layers(preset, target, opened) == layers(target, preset)[:-1]


def test_an_overlay_of_a_misspelled_target_is_not_left_out_silently(tmp_path: Path) -> None:
    cloud = library(tmp_path, {}).joinpath("targets/box.yaml").rename(tmp_path / "targets/our-cloud.yaml")
    write(tmp_path, {"values/our-cluod/tiny.yaml": "nodes: 1\n", "values/tiny.yaml": "steps: 5\n"})
    ran = chartgen("check", "our-cloud", "--path", tmp_path, "--preset", "tiny")
    assert ran.exit_code == 2
    assert f"{tmp_path}/values/our-cluod/tiny.yaml: " in ran.stderr
    (tmp_path / "targets/our-cluod.yaml").write_text(cloud.read_text())
    assert chartgen("check", "our-cloud", "--path", tmp_path, "--preset", "tiny").exit_code == 0


def test_the_first_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert chartgen("init", "gke-a3mega").exit_code == 0
    written = Path("site.yaml").read_text()
    checked = chartgen("check", "gke-a3mega", "--preset", "gpt3-175b", "-f", "site.yaml")
    assert (checked.exit_code, checked.stdout.splitlines()[-1]) == (0, "gke-a3mega: 1 warning")  # the example's bucket
    again = chartgen("init", "gke-a3mega")
    assert (again.exit_code, Path("site.yaml").read_text()) == (2, written)
    chart = Path("charts/gke-a3mega")
    assert chartgen("build", "gke-a3mega").exit_code == 0
    assert written.splitlines()[0].endswith(f"$schema={chart}/values.schema.json")
    assert chartgen("check", chart, "--preset", "gpt3-175b", "-f", "site.yaml").exit_code == 0


def test_a_user_is_asked_for_each_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # queue, data, its options, outputs, scratch, networks
    done = chartgen("init", "gke-a3mega", "--ask", input="on\n\n\ngs://ours\n\n-\n")
    assert done.exit_code == 0
    assert "storage.data.from [gs://cloud-samples-data/third-party]: " in done.stderr
    found: dict[str, Any] = load_values([Path("site.yaml")]).data
    assert (found["queue"], found["storage"]["outputs"]) == ({"name": "on"}, {"from": "gs://ours"})
    assert "setup" not in found
    assert found["storage"]["data"]["readOnly"] is True
    assert "# In the region of the cluster" in Path("site.yaml").read_text()
    assert chartgen("check", "gke-a3mega", "--preset", "gpt3-175b", "-f", "site.yaml").exit_code == 0


def test_a_name_that_cannot_be_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = chartgen("init", "gke-a3mega", "--ask", input="My Queue\nours\nmybucket\ngs://data\n\n\n\n\n")
    assert done.exit_code == 0
    found: dict[str, Any] = load_values([Path("site.yaml")]).data
    assert (found["queue"], found["storage"]["data"]["from"]) == ({"name": "ours"}, "gs://data")
    assert [line for line in done.stderr.splitlines() if '"My Queue"' in line or '"mybucket"' in line] != []


@pytest.mark.parametrize("target", TARGETS)
def test_the_names_of_each_example_are_permitted(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = chartgen("init", target, "--ask", input="\n" * 40)
    assert (done.exit_code, "must be" in done.stderr) == (0, False)


def test_a_number_is_asked_for_until_it_is_one_and_an_end_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ours = library(tmp_path, {})
    write(ours, {"values/site.box.example.yaml": "nodes: 2\nnodeSelector: {a: b}\n"})
    assert chartgen("init", "box", "--path", ours, "--ask", input="4x\n").exit_code == 1
    assert not Path("site.yaml").exists()
    done = chartgen("init", "box", "--path", ours, "--ask", input="4x\n4\n\n")
    assert 'nodes must be a whole number from 1 to 100000, not "4x"' in done.stderr
    assert Path("site.yaml").read_text() == "nodes: 4\nnodeSelector: {a: b}\n"


def test_later_layers_win_over_presets() -> None:
    given = ("--preset", "gpt3-175b", "--preset", "benchmark", "--set", "nodes=31")
    found = findings(chartgen("check", "gke-a3mega", *given, "--output", "json").stdout)
    assert "nodes" in {each["key"] for each in found}


def test_a_folders_own_presets_and_overlays_are_found(tmp_path: Path) -> None:
    ours = library(tmp_path, {})
    own = {"values/ours.yaml": "# Our model. More.\nsteps: 7\n", "values/box/gpt3-5b.yaml": "steps: x\n"}
    write(ours, {**own, "values/site.box.example.yaml": "nodes: 1\n"})
    rows = {
        row["name"]: row
        for row in answer(chartgen("list", "presets", "--path", ours, "--output", "json").stdout)["items"]
    }
    assert rows["ours"]["description"] == "Our model"
    refused = chartgen("check", "box", "--path", ours, "--preset", "gpt3-5b")
    assert f"{ours}/values/box/gpt3-5b.yaml:1:1: " in refused.stdout
    site = tmp_path / "site.yaml"
    assert chartgen("init", "box", "--path", ours, "--to", site).exit_code == 0
    assert site.read_text() == "nodes: 1\n"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("check", "gke-a3mega", "--preset", "gpt3-175"), "did you mean gpt3-175b"),
        (("check", "gke-a3mega", "--preset", "../values/gpt3-175b"), "unknown preset"),
        (("check", "gke-a3mega", "--preset", "site.gke-a3mega.example"), "unknown preset"),
        (("init", "a3mega"), "gke-a3mega"),
    ],
)
def test_what_is_unknown_is_refused_with_what_is_meant(arguments: tuple[str, ...], word: str) -> None:
    refused = chartgen(*arguments)
    assert refused.exit_code == 2
    assert word in refused.stderr


def test_a_preset_needs_a_target(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("")
    refused = chartgen("metrics", log, "--preset", "llama3-8b")
    assert refused.exit_code == 2
    assert "--target" in refused.stderr
