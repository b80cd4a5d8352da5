"""A stand-in for the training image: programs that record how a chart's start script calls them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import profiles
from nccllogs import TCPXO
from process_helpers import running
from rendered import Objects, arguments, env, one

# Stands on PATH for the programs of the training image.
RECORDER = """#!{python}
import json, os, shutil, sys
if "meet" in sys.argv:
    shutil.copyfile(os.environ["RECORD"] + "/nccl.log", sys.argv[-1])
    sys.exit()
record = {{"argv": sys.argv, "env": dict(os.environ)}}
open(os.environ["RECORD"] + "/" + os.path.basename(sys.argv[0]), "w").write(json.dumps(record))
{body}
"""


@dataclass
class Image:
    """A stand-in for the training image: a PATH of recorders and a vendor's folder with its environment profile."""

    folder: Path
    profile: str = field(default_factory=profiles.script)
    environment: dict[str, str] = field(default_factory=dict)
    nccl: str = TCPXO

    def program(self, name: str, body: str = "") -> None:
        path = self.folder / "bin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(RECORDER.format(python=sys.executable, body=body))
        path.chmod(0o755)

    def command(self, found: Objects, rank: int = 0) -> tuple[list[str], dict[str, str]]:
        """The container's command and environment, with the image's folders in place of the machine's."""
        plugin = self.folder / "nccl-plugin"
        (plugin / "lib64").mkdir(parents=True, exist_ok=True)
        (plugin / "lib64" / "nccl-env-profile.sh").write_text(self.profile)
        (self.folder / "nccl.log").write_text(self.nccl)
        for name, text in one("ConfigMap", found)["data"].items():
            moved = text.replace("/usr/local/nccl-plugin", str(plugin)).replace("/etc/chartgen", str(self.folder))
            (self.folder / name).write_text(moved)
        moved_env = {name: value.replace("/usr/local/nccl-plugin", str(plugin)) for name, value in env(found).items()}
        variables = {
            **moved_env,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "NODE_RANK": str(rank),
            "RECORD": str(self.folder),
            "RUN_DIRECTORY": str(self.folder / "outputs" / "run"),
            "CHECKPOINT_DIRECTORY": str(self.folder / "outputs" / "checkpoints"),
            **self.environment,
        }
        return ["bash", str(self.folder / "start.sh"), *arguments(found)], variables

    def start(self, found: Objects, rank: int = 0) -> subprocess.CompletedProcess[str]:
        command, variables = self.command(found, rank)
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=120)

    def record(self, name: str = "torchrun") -> Any:
        return dict(json.loads((self.folder / name).read_text()))


def ended(command: list[str], ready: Path, variables: dict[str, str] | None = None) -> int:
    """Start a command, send SIGTERM once a file says that it is ready, and give its exit code."""
    with running(command, env=variables) as process:
        while not ready.exists():
            assert process.poll() is None, "ended before it was ready"
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        return int(process.wait(timeout=120))


def patient(folder: Path) -> dict[str, str]:
    """Return an environment whose `sleep` lasts until the daemon has stopped, however slow this machine is."""
    sleep = folder / "bin" / "sleep"
    sleep.parent.mkdir()
    sleep.write_text(f"#!/bin/bash\nuntil [[ -e {folder}/stopped ]]; do /bin/sleep 0.05; done\n")
    sleep.chmod(0o755)
    return {**os.environ, "PATH": f"{sleep.parent}:{os.environ['PATH']}"}
