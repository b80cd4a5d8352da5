"""What another tenant, or a machine with a wrong clock, leaves in the folders of a run does no harm.

It ends, delays and overwrites nothing, and steers no terminal.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from chartgen.library.workloads.common.files import examine
from chartgen.library.workloads.common.files.examine import find_slow, share, write_speed

pytestmark = pytest.mark.threat(19)
FIGURES = {"pod": "mine", "tflops": [700.0], "written": 900.0, "summed": 340.0}
PATCHES = {
    "of another name": ("x.json", b"{}"),
    "no JSON": ("1.json", b"{"),
    "no text": ("1.json", b"\xff"),
    "a list": ("1.json", b"[]"),
    "deep": ("1.json", b"[" * 9_000),
    "large": ("1.json", b" " * 20_000 + b"{}"),
    "without figures": ("1.json", b"{}"),
    "texts": ("1.json", b'{"pod": 1, "tflops": ["a"], "written": "x", "summed": 1}'),
    "no numbers": ("1.json", b'{"pod": "p", "tflops": [NaN], "written": 1e999, "summed": 1}'),
    "a number beyond all others": (
        "1.json",
        b'{"pod": "p", "tflops": [1], "summed": 1, "written": 1' + b"0" * 400 + b"}",
    ),
    "nothing": ("1.json", b'{"pod": "p", "tflops": null, "written": null, "summed": 1}'),
    "a pod that steers": ("1.json", b'{"pod": "\\u001b[2J\\nit", "tflops": [], "written": 1, "summed": 1}'),
    "many GPUs": ("1.json", b'{"pod": "p", "tflops": [' + b"1, " * 900 + b'1], "written": 1, "summed": 1}'),
    "of a machine that the run lacks": ("2.json", b'{"pod": "p", "tflops": [9], "written": 1, "summed": 1}'),
}


@pytest.fixture(autouse=True)
def rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_RANK", "0")


@pytest.mark.parametrize("case", PATCHES)
def test_figures_that_no_machine_wrote_are_left_out(tmp_path: Path, case: str) -> None:
    name, content = PATCHES[case]
    (tmp_path / name).write_bytes(content)
    found = share(tmp_path, FIGURES, 2)
    assert found == {0: FIGURES}
    assert not [*find_slow(found, 0, 2)]


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_of_figures_delays_nothing(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "1.json")
    began = time.monotonic()
    assert share(tmp_path, FIGURES, 2) == {0: FIGURES}
    assert time.monotonic() - began < 10


def test_links_in_the_storage_lead_no_writes_elsewhere(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "shared"
    victim.write_text("theirs")
    folder.mkdir()
    for name in ("0.part", ".examine-0"):
        (folder / name).symlink_to(victim)
    share(folder, FIGURES, 2)
    assert write_speed(str(folder)) > 0
    assert victim.read_text() == "theirs"
    (tmp_path / "0.json").write_text("theirs")
    (tmp_path / "machines").symlink_to(tmp_path)
    with pytest.raises(OSError, match="machines"):
        share(tmp_path / "machines", FIGURES, 2)
    assert (tmp_path / "0.json").read_text() == "theirs"


def test_own_figures_count_whatever_the_clock_of_the_storage_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: later)
    assert share(tmp_path, FIGURES, 2) == {0: FIGURES}


@pytest.mark.parametrize("name", ["0.json", "0.part", ".examine-0-x/y", ""])
def test_what_stands_where_a_machine_writes_ends_no_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """A directory in place of a file, or a file in place of the folder, at worst keeps the figures from comparison."""
    folder = tmp_path / "machines"
    (folder / name).mkdir(parents=True) if name else folder.touch()
    report = (Path(__file__).parents[1] / "data/nvidia-smi/h100.xml").read_text()
    monkeypatch.setattr(examine, "_ask", lambda *argv: report if "-q" in argv else "")
    for variable, value in (("GPUS_PER_NODE", "1"), ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")):
        monkeypatch.setenv(variable, value)
    assert examine.main(str(folder), "fail", "0", "2", str(folder if name else tmp_path)) == 0
    assert ("not compared" in capsys.readouterr().err) == (not name.startswith("."))


def test_a_start_that_was_killed_leaves_its_block_until_the_next(tmp_path: Path) -> None:
    (tmp_path / ".examine-0-left").touch()
    write_speed(str(tmp_path))
    assert not [*tmp_path.iterdir()]
