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
@pytest.mark.parametrize("there", ["link", "hard link", "pipe", "folder", "dump", "pipe of a dump"])
def test_no_link_or_pipe_is_a_black_box(there: str, tmp_path: Path) -> None:
    """A link would lead the output into another file, a pipe keep the failed process, and its machine, for ever.

    PyTorch writes its own dumps, makes no folder, follows links, and waits for readers.
    """
    other = tmp_path / "other/rank-0.log"
    for name in ("blackbox", "processes", "other"):
        (tmp_path / name).mkdir()
    other.write_text("precious")
    box, dump = (tmp_path / "blackbox" / name for name in ("rank-0.log", "nccl_trace_rank_0"))
    if there == "folder":
        (tmp_path / "blackbox").rmdir()
        (tmp_path / "blackbox").symlink_to(tmp_path / "other")
    elif there.startswith("pipe"):
        os.mkfifo(box if there == "pipe" else dump)
    elif there == "hard link":
        box.hardlink_to(other)
    else:
        (dump if there == "dump" else box).symlink_to(other)
    dumps = 'echo dump >"$TORCH_NCCL_DEBUG_INFO_TEMP_FILE$RANK"; exit 3'
    command: list[str | Path] = [sys.executable, WATCH, tmp_path / "processes", "sh", "-c", dumps]
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 0, 38, 128.16 W\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    environment = {**os.environ, "RUN_DIRECTORY": str(tmp_path), "RANK": "0", "GRACE_SECONDS": "30"}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    program = subprocess.Popen(command, env=environment)
    try:
        program.wait(timeout=20)
    finally:
        program.kill()
    assert (program.returncode, other.read_text()) == (3, "precious")
    assert "exit code 3" in box.read_text()
    assert "\n0, 38, 128.16 W\n" in box.read_text()
    assert [each.name for each in other.parent.iterdir()] == ["rank-0.log"]
    assert dump.read_text() == "dump\n"


@pytest.mark.threat(5)
def test_no_link_or_pipe_is_the_file_of_a_start(tmp_path: Path) -> None:
    for number, there in enumerate(("link", "pipe")):
        folder, other = tmp_path / str(number), tmp_path / "other"
        (folder / "starting").mkdir(parents=True)
        (folder / "processes").mkdir()
        start = folder / "starting/0"
        start.symlink_to(other) if there == "link" else os.mkfifo(start)
        environment = {"RUN_DIRECTORY": str(folder), "RANK": "0", "LOCAL_RANK": "0", "GRACE_SECONDS": "30"}
        command: list[str | Path] = [sys.executable, WATCH, folder / "processes", "true"]
        assert subprocess.run(command, check=False, env={**os.environ, **environment}, timeout=20).returncode == 0
        assert not other.exists()
