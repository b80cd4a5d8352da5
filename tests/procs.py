"""Whether processes live, for tests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path


def alive(pid: int) -> bool:
    """Tell whether a process runs; a zombie that nobody waited for does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone(pids: Sequence[int], seconds: float = 10.0) -> bool:
    """Tell whether all processes end within some seconds."""
    deadline = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(map(alive, pids))


def mentioning(text: str) -> list[str]:
    """Give the command lines of living processes that name a folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if text in line:
            found.append(line)
    return found
