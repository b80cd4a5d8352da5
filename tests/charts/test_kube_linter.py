"""kube-linter finds nothing in our charts: what it would stop at is allowed for a reason that a fragment states.

It cannot be built from the Go module proxy, so it is no engine of ours: the test runs where it is on PATH.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rendered import Objects, chart, rendered, rendered_setup

from chartgen.composer.library import open_library
from chartgen.composer.privileges import KUBE_LINTER, REJECTING, read_privilege
from chartgen.composer.target import load_target
from chartgen.helm.yaml import load
from chartgen.kube.manifest_walk import pods
from chartgen.linter import find_presets

ROOT = Path(__file__).parents[2]
TARGETS = open_library().names("target")


def presets(target: str) -> list[tuple[Path, ...]]:
    return [tuple(files) for files in find_presets(target, ROOT / "values").values()]


def as_jobs(found: Objects) -> Objects:
    """Return the pods of kinds that kube-linter does not know as Jobs."""
    unknown = [thing for thing in found if thing["apiVersion"] not in ("v1", "apps/v1", "batch/v1")]
    return [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "run"},
            "spec": {"ttlSecondsAfterFinished": 1, "template": {"spec": pod.spec}},
        }
        for thing in unknown
        for pod in pods(thing)
    ]


def lint(folder: Path, found: Objects, configuration: str) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    for number, thing in enumerate(found):
        (folder / f"{number}.yaml").write_text(json.dumps(thing))
    (folder / KUBE_LINTER).write_text(configuration)
    argv = ["kube-linter", "lint", ".", "--config", KUBE_LINTER, "--format", "json"]
    return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder)


def reports(ran: subprocess.CompletedProcess[str]) -> list[str]:
    found: dict[str, Any] = json.loads(ran.stdout)
    return [f"{each['Check']}: {each['Diagnostic']['Message']}" for each in found["Reports"] or []]


@pytest.mark.skipif(not shutil.which("kube-linter"), reason="kube-linter is not on PATH (stackrox/kube-linter)")
@pytest.mark.parametrize("target", TARGETS)
def test_our_charts_are_clean(target: str, tmp_path: Path) -> None:
    runs = [thing for files in presets(target) for thing in rendered(name=target, files=files)]
    setup = [thing for files in presets(target) for thing in rendered_setup(name=target, files=files)]
    stated = chart(name=target).files[KUBE_LINTER]
    # what is installed once needs no exception
    for folder, found, excepted in (("runs", [*runs, *as_jobs(runs)], stated), ("setup", setup, "{}")):
        ran = lint(tmp_path / folder, found, excepted)
        assert reports(ran) == []
        assert ran.returncode == 0, ran.stderr
    # the same pods without the exceptions: kube-linter did look at them
    assert "run-as-non-root" in "".join(reports(lint(tmp_path / "bare", as_jobs(runs), "{}")))


@pytest.mark.parametrize("target", TARGETS)
def test_a_chart_excepts_what_its_fragments_state_and_says_why(target: str) -> None:
    files = chart(name=target).files
    document: Any = load(files[KUBE_LINTER], KUBE_LINTER).data
    stated = [fragment.privileges for fragment in load_target(target).fragments]
    privileges = {read_privilege(each).name for part in stated for each in part}
    rejected = {check for name in privileges for check in REJECTING.get(name, ())}
    assert document["checks"]["exclude"] == ["job-ttl-seconds-after-finished", *sorted(rejected)]
    for reason in (reason for part in stated for reason in part.values()):
        assert f" | {reason} |" in files["FRAGMENTS.md"]


def test_objects_carry_nothing_for_kube_linter() -> None:
    found = [thing for target in TARGETS for thing in rendered(name=target, files=presets(target)[0])]
    assert not [key for thing in found for key in thing["metadata"].get("annotations", {}) if "kube-linter" in key]
