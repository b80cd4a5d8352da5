"""What another tenant leaves in the folders of a run ends, delays and overwrites nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chartgen.library.workloads.common.files.examine import find_slow, share, write_speed

pytestmark = pytest.mark.threat(19)
FIGURES = {"pod": "mine", "tflops": [700.0], "written": 900.0}
PATCHES = {
    "of another name": ("x.json", b"{}"),
    "no JSON": ("1.json", b"{"),
    "no text": ("1.json", b"\xff"),
    "a list": ("1.json", b"[]"),
    "deep": ("1.json", b"[" * 9_000),
    "large": ("1.json", b" " * 20_000 + b"{}"),
    "without figures": ("1.json", b"{}"),
    "texts": ("1.json", b'{"pod": 1, "tflops": ["a"], "written": "x"}'),
    "no numbers": ("1.json", b'{"pod": "p", "tflops": [NaN], "written": 1e999}'),
    "nothing": ("1.json", b'{"pod": "p", "tflops": null, "written": null}'),
}


@pytest.fixture(autouse=True)
def rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_RANK", "0")


@pytest.mark.parametrize("case", PATCHES)
def test_figures_that_no_machine_wrote_are_left_out(tmp_path: Path, case: str) -> None:
    name, content = PATCHES[case]
    (tmp_path / name).write_bytes(content)
    found = share(tmp_path, FIGURES)
    assert found == {0: FIGURES}
    assert not [*find_slow(found, 0, 2)]


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_of_figures_delays_nothing(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "1.json")
    began = time.monotonic()
    assert share(tmp_path, FIGURES) == {0: FIGURES}
    assert time.monotonic() - began < 10


def test_links_in_the_storage_lead_no_writes_elsewhere(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "shared"
    victim.write_text("theirs")
    folder.mkdir()
    for name in ("0.part", ".examine-0"):
        (folder / name).symlink_to(victim)
    share(folder, FIGURES)
    assert write_speed(str(folder)) > 0
    assert victim.read_text() == "theirs"
