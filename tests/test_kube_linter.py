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
from rendered import Objects, rendered, rendered_setup

from chartgen.composer.kube_linter import CHECKS, exceptions
from chartgen.composer.library import open_library
from chartgen.composer.privileges import read_privilege
from chartgen.composer.target import load_target
from chartgen.kube.manifest_walk import pods
from chartgen.linter import find_presets

ROOT = Path(__file__).parent.parent
TARGETS = open_library().names("target")
IGNORE = "ignore-check.kube-linter.io/"


def presets(target: str) -> list[tuple[Path, ...]]:
    return [tuple(files) for files in find_presets(target, ROOT / "values").values()]


def as_jobs(found: Objects, reasons: dict[str, str]) -> Objects:
    """Return the pods of kinds that kube-linter does not know as Jobs, with what a Job of that chart states."""
    notes = {f"{IGNORE}{check}": reason for check, reason in reasons.items()}
    unknown = [thing for thing in found if thing["apiVersion"] not in ("v1", "apps/v1", "batch/v1")]
    return [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "run", "annotations": notes},
            "spec": {"ttlSecondsAfterFinished": 1, "template": {"spec": pod.spec}},
        }
        for thing in unknown
        for pod in pods(thing)
    ]


def lint(folder: Path, found: Objects) -> subprocess.CompletedProcess[str]:
    for number, thing in enumerate(found):
        (folder / f"{number}.yaml").write_text(json.dumps(thing))
    argv = ["kube-linter", "lint", str(folder), "--format", "json"]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def reports(ran: subprocess.CompletedProcess[str]) -> list[str]:
    found: dict[str, Any] = json.loads(ran.stdout)
    return [f"{each['Check']}: {each['Diagnostic']['Message']}" for each in found["Reports"] or []]


@pytest.mark.skipif(not shutil.which("kube-linter"), reason="kube-linter is not on PATH (stackrox/kube-linter)")
@pytest.mark.parametrize("target", TARGETS)
def test_our_charts_are_clean(target: str, tmp_path: Path) -> None:
    found: Objects = []
    for files in presets(target):
        runs = rendered(name=target, files=files)
        found += [*runs, *as_jobs(runs, exceptions(load_target(target).fragments))]
        found += rendered_setup(name=target, files=files)
    ran = lint(tmp_path, found)
    assert reports(ran) == []
    assert ran.returncode == 0, ran.stderr
    # the same pods without what the fragments state: kube-linter did look at them
    bare = [{**thing, "metadata": {"name": "bare"}} for thing in as_jobs(found, {}) + found if thing["kind"] == "Job"]
    (tmp_path / "bare").mkdir()
    assert "run-as-non-root" in "".join(reports(lint(tmp_path / "bare", bare)))


def test_a_job_states_the_reasons_of_its_fragments() -> None:
    (job,) = (thing for thing in rendered(name="gke-a3high", files=presets("gke-a3high")[0]) if thing["kind"] == "Job")
    notes = {key.removeprefix(IGNORE): text for key, text in job["metadata"]["annotations"].items() if IGNORE in key}
    stated = load_target("gke-a3high").fragments
    assert notes.pop("job-ttl-seconds-after-finished")
    assert notes == exceptions(stated)
    privileges = {read_privilege(text).name for fragment in stated for text in fragment.privileges}
    assert set(notes) == {check for name in privileges for check in CHECKS.get(name, ())}


def test_an_object_that_is_no_job_states_nothing_to_kube_linter() -> None:
    (jobset,) = (thing for thing in rendered() if thing["kind"] == "JobSet")
    assert not [key for key in jobset["metadata"]["annotations"] if IGNORE in key]
