"""A target of a test with all launchers, and what its pods run: the rendered scripts, run for real by bash."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from rendered import NAMESPACE, RELEASE, Objects, arguments, env, fit_schema, one
from userlib import composed, write

from chartgen.chart import Chart
from chartgen.manifests import objects, render
from chartgen.values import load_values

LAUNCHERS = (
    "megatron-lm",
    "nemo-1",
    "mlperf-llama2-lora",
    "mlperf-preprocess",
    "download",
    "megatron-preprocess",
    "pile-dataprep",
)
TARGET = f"""\
description: Machines of a test
platform: onprem
workload: job
machines:
  box-8:
    gpus: 8
    gpu: h100-80gb
    capacity: {{nvidia.com/gpu: "8", cpu: "96", memory: 1Ti}}
fragments: [nvidia-gpu, storage, storage-pvc, storage-memory]
launchers: [{", ".join(LAUNCHERS)}]
sources: [the test]
"""
# Stands on PATH for a program of the image; it appends how it was called, one line of JSON for each call.
RECORDER = """#!{python}
import json, os, sys
with open({record!r}, "a") as file:
    file.write(json.dumps([sys.argv, dict(os.environ)]) + "\\n")
{body}
"""


@lru_cache
def lab() -> Chart:
    """The chart of the target with all launchers."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), {"targets/lab.yaml": TARGET})
        return composed(Path(folder), "lab")


def run(*sets: str, files: tuple[Path, ...] = (), json: tuple[str, ...] = ()) -> Objects:
    """The objects of a run with these values files, `--set` and `--set-json` flags."""
    values = load_values(files, set_values=sets, set_json=json)
    fit_schema(lab(), values)
    return objects(render(lab(), RELEASE, NAMESPACE, values.data))


@dataclass
class Machine:
    """A machine with the scripts of a run: folders below `folder` stand for /etc/chartgen, /data and /outputs."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def program(self, name: str, body: str = "") -> Path:
        """Put a recorder on PATH (or, with slashes in its name, into the image) and give the file it writes."""
        path = self.folder / ("image" if "/" in name else "bin") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        record = self.folder / f"{path.name}.calls"
        path.write_text(RECORDER.format(python=sys.executable, record=str(record), body=body))
        path.chmod(0o755)
        return record

    def here(self, text: str) -> str:
        """Move the container's paths into the folder."""
        for path in ("/etc/chartgen", "/data", "/outputs", "/opt"):
            below = self.folder / "image" if path == "/opt" else self.folder
            text = text.replace(f"{path}/", f"{below}{path}/")
            text = f"{below}{path}" if text == path else text
        return text

    def start(self, found: Objects, variables: dict[str, str] | None = None, *, rank: int = 0) -> subprocess.Popen[str]:
        """Start the container's command as the pod of this number, with more variables."""
        scripts = self.folder / "etc" / "chartgen"
        scripts.mkdir(parents=True, exist_ok=True)
        for name, text in one("ConfigMap", found)["data"].items():
            (scripts / name).write_text(text.replace("/etc/chartgen/", f"{scripts}/"))
        inside = {name: self.here(value) for name, value in env(found).items()}
        inside |= {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "NODE_RANK": str(rank)}
        argv = ["bash", str(scripts / "start.sh"), *map(self.here, arguments(found))]
        inside |= self.variables | (variables or {})
        return subprocess.Popen(argv, env=inside, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def finish(self, found: Objects, variables: dict[str, str] | None = None, *, rank: int = 0) -> tuple[int, str]:
        """Run the container's command to its end, with more variables; give exit code and log."""
        with self.start(found, variables, rank=rank) as process:
            try:
                log, _ = process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return process.returncode, log
