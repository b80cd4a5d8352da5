"""Processes of tests: those that must not outlive them, and whether others live."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


@contextmanager
def running(argv: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process that is killed when the block is left; Popen alone waits for it after a failed assertion."""
    with subprocess.Popen(argv, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def alive(pid: int) -> bool:
    """Report whether a process runs; a zombie that nobody waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone(pids: Sequence[int], seconds: float = 180) -> bool:
    """Report whether all processes end within some seconds."""
    deadline = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(alive, pids))


def command_lines() -> dict[int, list[str]]:
    """Return the command lines of all living processes, by process id; others come and go meanwhile."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found[int(path.parent.name)] = path.read_bytes().decode(errors="replace").split("\0")
    return found


def mentioning(text: str) -> list[str]:
    """Return the command lines of living processes that name a folder, which only this test knows."""
    lines = map(" ".join, command_lines().values())
    return [line for line in lines if text in line]
