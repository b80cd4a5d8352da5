"""Writes chartgen/data/go.sum: the checksums of all Go modules of all engines, on all systems that chartgen runs on.

Go verifies each of them with the checksum database. Afterwards a module that somebody changed on its way is refused,
also where that database is switched off.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from chartgen.rehearsal import engine_build, engines

SYSTEMS = [(system, machine) for system in ("linux", "darwin") for machine in ("amd64", "arm64")]
TARGET = Path(engine_build.__file__).parent.parent / "data" / "go.sum"


def lines(go: str, wanted: engines.Engine) -> set[str]:
    """The go.sum of an engine's tools module, after its packages were listed for each system."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        engine_build.write_module(go, wanted, work, "")
        package = "/".join(filter(None, (wanted.module, wanted.package)))
        for system in SYSTEMS:
            engine_build.go_run([go, "list", "-deps", package], work, wanted, system=system)
        found = set((work / "go.sum").read_text("utf-8").splitlines())
        shutil.rmtree(work)
    return found


if __name__ == "__main__":
    command, known = engine_build.find_go(), set[str]()
    for engine in engines.engine_table().values():
        known |= lines(command, engine)
        sys.stderr.write(f"{engine.name}: {len(known)} lines in all\n")
    TARGET.write_text("".join(f"{line}\n" for line in sorted(known)), "utf-8")
