"""A repository with one seeded defect for each rule of lint, from tests/data/lint/seeds.yaml."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from answers import findings

from chartgen.composer.assembly import compose
from chartgen.composer.library import open_library
from chartgen.composer.origin import identified
from chartgen.composer.target import load_target
from chartgen.helm.chart import Chart
from chartgen.helm.program import find_helm
from chartgen.helm.yaml import load_file

FOLDER = Path(__file__).parents[1] / "data" / "lint"
SOUND = FOLDER / "sound"
JOB = "templates/job.yaml"
LABELS = """\
  labels:
    app.kubernetes.io/name: sound
    app.kubernetes.io/instance: {{ .Release.Name }}
    app.kubernetes.io/managed-by: {{ .Release.Service }}
    helm.sh/chart: sound-0.1.0
"""
# A target of a user's own, with the row of a second machine type that a seed changes.
TARGET = """\
description: Machines of a seed
platform: onprem
workload: job
machines:
  first: &row {gpus: 8, gpu: h100-80gb, capacity: {nvidia.com/gpu: "8", cpu: "96", memory: 1Ti}, labels: {pool: gpu}}
  second: ROW
fragments: [nvidia-gpu, machine-labels, infiniband, storage, storage-memory]
launchers: [nemo-1]
values:
  machineLabels: {pool: gpu}
  network: {interface: infiniband, resource: ""}
  parallelism: {tensor: 4}
sources: [the test]
"""
SEEDS: list[dict[str, Any]] = load_file(FOLDER / "seeds.yaml").data  # type: ignore[assignment]
WEB = FOLDER / "web"
WEB_SEEDS: list[dict[str, Any]] = load_file(FOLDER / "web-seeds.yaml").data  # type: ignore[assignment]


def plant_web(seed: dict[str, Any], folder: Path) -> tuple[Path, range]:
    """Write the chart `web` with a seed's defect, and return the file and the lines of it."""
    shutil.copytree(WEB, folder)
    (file,) = folder.glob(f"templates/{seed['file']}.*")
    text = file.read_text()
    assert seed["old"] in text, seed["id"]
    before, _, after = text.rpartition(seed["old"]) if seed.get("last") else text.partition(seed["old"])
    file.write_text(before + seed["new"] + after)
    first = file.read_text()[: len(before)].count("\n") + 1
    return file, range(first - seed.get("above", 0), first + seed["new"].strip("\n").count("\n") + 1)


def plant(seed: dict[str, Any], folder: Path) -> None:
    """Write the sound chart, or a target's, with the seed's defect."""
    if "row" in seed:
        (_library(folder) / "targets").mkdir(parents=True, exist_ok=True)
        (_library(folder) / f"targets/{seed['rule']}.yaml").write_text(_target(seed))
        _write_slot(seed, folder)
        compose(load_target(seed["rule"], open_library([_library(folder)]))).write(folder)
    elif "target" in seed:
        compose(load_target(seed["target"])).write(folder)
    else:
        shutil.copytree(SOUND, folder)
    file = folder / seed.get("file", JOB)
    file.parent.mkdir(exist_ok=True)
    for edit in [seed, *seed.get("and", ())] if "old" in seed else ():
        edited = folder / edit.get("file", JOB)
        text = edited.read_text()
        assert edit["old"] in text, seed["rule"]
        edited.write_text(text.replace(edit["old"], edit["new"], 1))
    if "copy" in seed:
        shutil.copy(folder / seed["copy"], file)
    if "append" in seed:
        file.write_text(file.read_text() + seed["append"])
    if "link" in seed:
        file.symlink_to(seed["link"])
    if "noise" in seed:
        digests = (hashlib.sha256(bytes([number % 256, number // 256])).hexdigest() for number in range(65536))
        file.write_text("".join(digests)[: seed["noise"]])
    if "kind" in seed:
        version, kind = seed["kind"].split()
        file.write_text(f"apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: other\n{LABELS}spec: {{}}\n")
    if "pod" in seed:
        spec = f"spec: {{automountServiceAccountToken: false, containers: {seed['pod']['containers']}}}\n"
        file.write_text(f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: other\n{LABELS}{spec}")


def _target(seed: dict[str, Any]) -> str:
    text = TARGET.replace("ROW", seed["row"])
    for old, new in seed.get("target-edits", {}).items():
        text = text.replace(old, new)
    return text


def _write_slot(seed: dict[str, Any], folder: Path) -> None:
    if "slot" in seed:
        file = _slot(seed, folder)
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "fragment.yaml").write_text("description: A fragment of a seed\nsources: [the test]\n")
        file.write_text(seed["text"])


def _slot(seed: dict[str, Any], folder: Path) -> Path:
    return _library(folder).joinpath("fragments", f"of-{seed['rule']}", str(seed["slot"]))


def _library(folder: Path) -> Path:
    return folder.parent.parent / "library"


def identified_chart(chart: Chart, folder: Path) -> Chart:
    """Return the chart of a seeded folder, with the target of a seed with a `row`."""
    own = _library(folder)
    return identified(chart, open_library([own] if own.is_dir() else []))


def expected(seed: dict[str, Any], folder: Path) -> tuple[str, str, int | None]:
    """Return rule, path and line of the one finding; None where the seed names no line."""
    own = _library(folder) / f"targets/{seed['rule']}.yaml"
    path = own if "row" in seed else folder / seed.get("in", seed.get("file", JOB))
    path = _slot(seed, folder) if "slot" in seed else path
    line = None
    if "at" in seed:
        lines = path.read_text().splitlines()
        lines_at = [number for number, text in enumerate(lines, 1) if seed["at"] in text]
        line = lines_at[-1 if seed.get("last") else 0]
    return seed["rule"], str(path), line


class Repository:
    """A folder to run `chartgen lint` in, with a cache of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = {
            **os.environ,
            "CHARTGEN_CACHE": str(root.with_name(f"{root.name}-cache")),
            "CHARTGEN_HELM": str(find_helm().executable),
        }
        if (root / "library").is_dir():
            self.env["CHARTGEN_PATH"] = str(root / "library")

    def lint(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self.run("lint", "--level", "style", *arguments)

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "chartgen", *map(str, arguments)]
        return subprocess.run(argv, cwd=self.root, env=self.env, capture_output=True, text=True, check=False)

    def rows(self, *arguments: str | Path) -> list[dict[str, Any]]:
        return findings(self.lint(*arguments, "--output", "json").stdout)
