"""What policies want of images, and whether a chart has the policies that its reader knows."""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.checks.claim import KeyProblem
from chartgen.checks.job import Job
from chartgen.composer.origin import POLICIES, Composed, annotations_of
from chartgen.composer.policies import begins, mirrored, wanted
from chartgen.errors import Problem
from chartgen.findings import NOT_OURS, TARGET_UNKNOWN, Finding, Rule
from chartgen.helm.chart import Chart


def allowed_registries(job: Job) -> Iterator[KeyProblem]:
    """The program's image comes from a registry that the policies allow, after a mirror has replaced it.

    Helm refuses the images that only templates know.
    """
    want = wanted(job.target.policies)
    found = mirrored(job.image, tuple(want.get("images", {}).items()))
    if job.image and "registries" in want and not any(begins(found, each) for each in want["registries"]):
        names = ", ".join(policy.name for policy in job.target.policies if "registries" in policy.data)
        message = f"{found} is of no registry that is allowed [policy {names}]"
        yield KeyProblem(f"launchers.{job.launcher.name}.image", message, f"use {' or '.join(want['registries'])}")


def unknown_policies(job: Job, chart: Chart) -> list[Finding]:
    """Report that a built chart has other policies than those that are known here."""
    if isinstance(chart.origin, Composed) and not chart.origin.by_annotation:
        return []
    built = str(annotations_of(chart).get(POLICIES) or "").split()
    known = [policy.name for policy in job.target.policies]
    if lacking := [name for name in built if name not in known]:
        message = f"policy {', '.join(lacking)} of this chart is not known here, so its job was not checked"
        hint = "give the folder that contains it with --path, CHARTGEN_PATH or chartgen.yaml"
        return [Finding(TARGET_UNKNOWN, Problem(message, "Chart.yaml", hint=hint), "unchecked")]
    if lacking := [name for name in known if name not in built]:
        message = f"the chart was built without policy {', '.join(lacking)}"
        hint = f"build it again: chartgen build {job.target.name}"
        return [Finding(NOT_OURS, Problem(message, "Chart.yaml", hint=hint), "unchecked")]
    return []


POLICY = (Rule.of(allowed_registries, "the policies of the user's folders", tasks=("train", "data", "test")),)
