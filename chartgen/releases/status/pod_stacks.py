"""Runs in the pods of a run: prints the stacks of this machine's ranks as JSON. Standard library and py-spy only."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

# torchrun and accelerate; Open MPI, whose processes are ranks before a start script names them.
_LOCAL = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
_GLOBAL = ("RANK", "OMPI_COMM_WORLD_RANK")
_WATCH = "/watch.py"  # which runs the program of a rank as its child (run.hangMinutes, run.metricsPort)
_SECONDS = 30


def main() -> None:
    """Print one line of JSON: the stack of each rank, or the one error of this pod."""
    program = shutil.which("py-spy")
    found = [_dump(program, *rank) for rank in _ranks(Path("/proc"))] if program else []
    json.dump({"missing": program is None, "ranks": found}, sys.stdout)


def _ranks(system: Path) -> list[tuple[int, int]]:
    """Return the global rank and the process of each rank; loaders of data inherit a rank, but their parent has it."""
    known: dict[int, tuple[int, bool]] = {}
    parents: dict[int, int] = {}
    for folder in system.iterdir():
        try:
            variables = dict(
                each.partition("=")[::2] for each in (folder / "environ").read_text("utf-8", "replace").split("\0")
            )
            status = (folder / "status").read_text("utf-8", "replace")
            command = (folder / "cmdline").read_text("utf-8", "replace")
        except (OSError, ValueError):
            continue  # no process, another user's, or gone
        if not any(name in variables for name in _LOCAL):
            continue
        rank = next((variables[name] for name in _GLOBAL if name in variables), "")
        if rank.isdecimal():
            known[int(folder.name)] = int(rank), _WATCH in command
            parents[int(folder.name)] = int(status.partition("PPid:")[2].split()[0])
    own = (
        (rank, process)
        for process, (rank, watches) in known.items()
        if not watches and known.get(parents[process], (0, True))[1]
    )
    return sorted(own)


def _dump(program: str, rank: int, process: int) -> dict[str, object]:
    argv = [program, "dump", "--json", "--pid", str(process)]
    try:
        done = subprocess.run(argv, capture_output=True, encoding="utf-8", timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"rank": rank, "error": f"py-spy has not answered for {_SECONDS} s"}
    if done.returncode:
        reason = done.stderr.partition("Stack backtrace:")[0]  # of py-spy itself
        return {"rank": rank, "error": " ".join(reason.split())[:500]}
    return {"rank": rank, "threads": json.loads(done.stdout)}


if __name__ == "__main__":
    main()
