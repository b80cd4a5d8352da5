"""What a tuple of checks says of a job: a target's chart with these values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rendered import VALUES, chart, target

from chartgen.checks import check_values, effective_values
from chartgen.checks.claim import Check
from chartgen.checks.job import Job
from chartgen.helm.values import Values, load_values

TARGETS = ("gke-a3mega", "gke-a3high", "oke-h100", "eks-p5", "onprem-p8000")
PRESETS = sorted(
    path for path in VALUES.glob("*.yaml") if not path.name.startswith("site.") and path.stem != "benchmark"
)


class Said(NamedTuple):
    """One claim with the id and the severity of its check."""

    id: str
    key: str
    message: str
    hint: str
    severity: str


def job(name: str, *sets: str, json: Sequence[str] = (), files: Sequence[Path] = ()) -> Job:
    """A job on a target from values files, `--set` and `--set-json` flags; quantities and variables are text."""
    texts = [flag for flag in sets if flag.startswith("env.") or ".resources." in flag]
    others = [flag for flag in sets if flag not in texts]
    return job_of(name, load_values(files, set_values=others, set_strings=texts, set_json=json))


def job_of(name: str, values: Values) -> Job:
    """A job on a target with these values, which fit the schema: no check sees others."""
    assert check_values(chart(name=name), values) == []
    return Job(effective_values(chart(name=name), values), target(name))


def judge(checks: Sequence[Check], judged: Job) -> list[Said]:
    """Everything that these checks say of a job."""
    return list(_said(checks, judged))


def _said(checks: Sequence[Check], judged: Job) -> Iterator[Said]:
    for check in checks:
        if judged.launcher.task in check.tasks:
            for claim in check.rule(judged):
                yield Said(check.id, claim.key, claim.message, claim.hint, check.severity)


def published() -> Iterator[tuple[str, str, Job]]:
    """Every preset on every target with the overlay and the example site, as users layer them; and no values at all."""
    for name in TARGETS:
        yield name, "defaults", job(name)
        for preset in PRESETS:
            overlay, site = VALUES / name / preset.name, VALUES / f"site.{name}.example.yaml"
            files = [preset, *([overlay] if overlay.is_file() else []), site]
            yield name, preset.stem, job(name, files=files)
            yield name, f"{preset.stem}+benchmark", job(name, files=[*files, VALUES / "benchmark.yaml"])
