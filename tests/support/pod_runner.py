"""A target of a test with all launchers, and what its pods run: the rendered scripts, run for real by bash."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from rendered import NAMESPACE, RELEASE, VALUES, Objects, arguments, fit_schema
from userlib import composed, write

from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values
from chartgen.kube.workloads import find_workers
from chartgen.rehearsal.local_pod import Execution, kill, plan_execution, prepare_pod, start_process

LAUNCHERS = (
    "megatron-lm",
    "megatron-bridge",
    "nemo-1",
    "automodel",
    "torchtitan",
    "torchrun",
    "mlperf-llama2-lora",
    "mlperf-preprocess",
    "download",
    "megatron-preprocess",
    "pile-dataprep",
    "nccl-test",
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
LORA = (VALUES / "llama2-70b-lora.yaml",)
LORA_IMAGE = "launchers.mlperf-llama2-lora.image=registry.example/lora:1"
NCCL_LOG = "nccl.log"
# Stands on PATH for a program of the image; it appends how it was called, one line of JSON for each call. Where the
# ranks only meet, it leaves what NCCL says.
RECORDER = """#!{python}
import json, os, shutil, sys
if "meet" in sys.argv:
    shutil.copyfile({said!r}, sys.argv[-1])
    sys.exit()
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


def options(argv: list[str]) -> dict[str, list[str]]:
    """Megatron-LM's options with their values; each may stand once."""
    found: dict[str, list[str]] = {}
    name = ""
    for word in argv:
        if word.startswith("--"):
            name = word.removeprefix("--")
            assert name not in found, word
            found[name] = []
        else:
            found[name].append(word)
    return found


def megatron(*sets: str, files: tuple[Path, ...] = (), json: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """The options that pretrain_gpt.py gets."""
    return options(arguments(run("launcher=megatron-lm", *sets, files=files, json=json))[1:])


@dataclass
class Machine:
    """A machine with the scripts of a run; `nccl` is what NCCL says when ranks meet before the program starts.

    Its mounts are below `folder`, and so is the image's /opt.
    """

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    nccl: str = ""
    started: Execution | None = None

    def program(self, name: str, body: str = "") -> Path:
        """Put a recorder on PATH (or, with slashes in its name, into the image) and give the file it writes."""
        path = self.folder / ("image" if "/" in name else "bin") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        record = self.folder / f"{path.name}.calls"
        said = str(self.folder / NCCL_LOG)
        path.write_text(RECORDER.format(python=sys.executable, record=str(record), said=said, body=body))
        path.chmod(0o755)
        return record

    def start(
        self,
        found: Objects,
        variables: dict[str, str] | None = None,
        *,
        rank: int = 0,
        stdout: int | TextIO = subprocess.PIPE,
    ) -> subprocess.Popen[str]:
        """Start the container's command as the pod of this number, with more variables."""
        (self.folder / NCCL_LOG).write_text(self.nccl)
        workers = find_workers(found)
        assert workers
        meeting = {name: value for name, value in workers.env.items() if name == "MASTER_ADDR"}
        planned = plan_execution(
            found,
            self.folder,
            rank=rank,
            overrides={**meeting, **self.variables, **(variables or {})},
            places={"/opt": self.folder / "image/opt"},
        )
        prepare_pod(planned)
        self.started = planned
        image = {"PATH": os.environ["PATH"]}
        return start_process(planned, image, stdout=stdout, stderr=subprocess.STDOUT)

    def kill(self) -> None:
        """Kill what is left of the container."""
        if self.started:
            kill(self.started)

    def finish(self, found: Objects, variables: dict[str, str] | None = None, *, rank: int = 0) -> tuple[int, str]:
        """Run the container's command to its end, with more variables; give exit code and log."""
        with self.start(found, variables, rank=rank) as process:
            try:
                log, _ = process.communicate(timeout=180)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return process.returncode, log
