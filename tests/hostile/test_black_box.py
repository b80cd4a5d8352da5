"""The black box of a failed process lies on storage that others may write to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chartgen.composer.library import BUILTIN

WATCH = BUILTIN / "workloads/common/files/watch.py"


@pytest.mark.threat(5)
@pytest.mark.parametrize("there", ["link", "pipe"])
def test_no_link_or_pipe_is_a_black_box(there: str, tmp_path: Path) -> None:
    """A link would lead the output into another file, a pipe keep the failed process, and its machine, for ever."""
    (tmp_path / "other").write_text("precious")
    (tmp_path / "blackbox").mkdir()
    (tmp_path / "processes").mkdir()
    box = tmp_path / "blackbox/rank-0.log"
    if there == "link":
        box.symlink_to(tmp_path / "other")
    else:
        os.mkfifo(box)
    command: list[str | Path] = [sys.executable, WATCH, tmp_path / "processes", "sh", "-c", "exit 3"]
    environment = {**os.environ, "RUN_DIRECTORY": str(tmp_path), "RANK": "0"}
    program = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    try:
        _, errors = program.communicate(timeout=20)
    finally:
        program.kill()
    assert (program.returncode, (tmp_path / "other").read_text()) == (3, "precious")
    assert b"no black box" in errors
