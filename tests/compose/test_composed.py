"""A chart that an earlier command composed is read again, unless a file that made it has changed since."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Literal

import pytest
from userlib import library

from chartgen.composer import composed
from chartgen.composer.assembly import compose, compose_interface, compose_setup
from chartgen.composer.composed import composed_chart
from chartgen.composer.library import open_library
from chartgen.composer.presets import for_values
from chartgen.composer.target import load_target

COLOURS = {"mine/labels.yaml": "colour: red\n"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, as of a command that starts after every file has been written."""
    monkeypatch.setenv("CHARTGEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(composed, "_LOADED", time.time() + 60)
    return tmp_path / "cache" / "charts"


@pytest.mark.parametrize("function", ["compose", "compose_interface", "compose_setup"])
@pytest.mark.parametrize("workload", [None, "job"])
def test_an_earlier_chart_is_the_composed_one(
    cache: Path, function: Literal["compose", "compose_interface", "compose_setup"], workload: str | None
) -> None:
    target = load_target("gke-a3mega")
    makers = {"compose": compose, "compose_interface": compose_interface, "compose_setup": compose_setup}
    expected = makers[function](target, workload)
    for _ in range(2):
        chart = composed_chart(function, target, workload)
        assert chart == expected
        assert vars(chart)["origin"] == vars(expected)["origin"]
    (entry,) = cache.iterdir()
    row = json.loads(entry.read_text()) | {"name": "from-the-cache"}
    entry.write_text(json.dumps(row))
    read = composed_chart(function, target, workload)
    assert read is not None
    assert read.name == "from-the-cache"


def test_an_earlier_chart_for_values_has_their_launchers(cache: Path) -> None:
    target, values = load_target("gke-a3mega"), {"launcher": "nemo-1"}
    expected = compose(target, values=values)
    for _ in range(2):
        chart = composed_chart("compose", for_values(target, values))
        assert (chart, chart.origin) == (expected, expected.origin)
    assert composed_chart("compose", for_values(target, {"launcher": "torchrun"})) != expected
    assert len(list(cache.iterdir())) == 2


def test_a_changed_file_of_the_users_is_seen(cache: Path, tmp_path: Path) -> None:
    for colour in ("red", "tan"):
        own = library(tmp_path / "own", {"mine/labels.yaml": f"colour: {colour}\n"})
        assert f"colour: {colour}\n" in templates_of(own)
    assert len(list(cache.iterdir())) == 2


def test_a_file_that_has_just_changed_is_not_cached(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second change in the same tick of the clock would be invisible."""
    monkeypatch.setattr(composed, "_LOADED", time.time())
    templates_of(library(tmp_path / "own", COLOURS))
    assert not cache.exists()


def test_a_folder_with_a_link_is_not_cached(cache: Path, tmp_path: Path) -> None:
    own = library(tmp_path / "own", COLOURS)
    (own / "fragments" / "other").symlink_to(tmp_path)
    templates_of(own)
    assert not cache.exists()


def test_what_other_users_can_write_is_not_read(cache: Path) -> None:
    target = load_target("gke-a3mega")
    composed_chart("compose_interface", target)
    (entry,) = cache.iterdir()
    entry.write_text(json.dumps(json.loads(entry.read_text()) | {"name": "planted"}))
    for path in (entry, cache, cache.parent):
        mode = path.stat().st_mode
        path.chmod(mode | 0o002)
        assert composed_chart("compose_interface", target).name == "gke-a3mega"
        entry.write_text(json.dumps(json.loads(entry.read_text()) | {"name": "planted"}))
        path.chmod(mode)


def templates_of(root: Path) -> str:
    """The files of the chart of the user's target, as one text."""
    return "".join(composed_chart("compose", load_target("box", open_library([root]))).files.values())
