"""What docs/how-to/read-the-speed.md shows is what its commands print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from chartgen.cli import main
from chartgen.cli.metrics import metrics

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "read-the-speed.md"
LOGS = ROOT / "docs" / "reference" / "logs.md"


def test_the_figures_of_the_page_are_printed_by_its_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = [sys.executable, str(ROOT / "benchmarks" / "example_log.py"), "5000"]
    Path("run.log").write_bytes(subprocess.run(program, check=True, capture_output=True).stdout)
    printed = CliRunner().invoke(main, ["metrics", "run.log", "--gpu", "h100"]).stdout.splitlines()
    shown = re.findall(r"```\n(log .*?)```", PAGE.read_text(), re.DOTALL)
    assert shown == ["".join(f"{line}\n" for line in printed)]


def test_every_option_of_the_pages_exists() -> None:
    known = {name for parameter in metrics.params for name in parameter.opts}
    foreign = {"--prefix", "--timestamps", "--data-binary"}  # of kubectl and curl
    told = re.findall(r"--[a-z][a-z_-]+", PAGE.read_text() + LOGS.read_text())
    assert {name for name in told if "_" not in name} - foreign - {"--file"} <= known


def test_every_picture_of_the_page_exists() -> None:
    for name in re.findall(r"!\[.*?\]\((.*?)\)", PAGE.read_text()):
        assert (PAGE.parent / name).is_file()
