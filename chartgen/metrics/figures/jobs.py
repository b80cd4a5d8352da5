"""Facts of a run from the values of its release, including the additions of its chart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chartgen.metrics.figures.facts import facts_of_values

if TYPE_CHECKING:
    from chartgen.checks.job import Job
    from chartgen.helm.chart import Chart
    from chartgen.helm.values import Values


def facts_of_release(chart: Chart, values: Values) -> tuple[Mapping[str, Any], Job | None]:
    """Return the facts in a release's values, and its job; None where its target is not known here.

    Raises:
        ChartgenError: The values do not fit the schema of the target here. That of a chart in a cluster does not count:
            anybody may have written one that takes forever.
    """
    from dataclasses import replace

    from chartgen.checks import check_values, job_of
    from chartgen.composer.composed import composed_chart
    from chartgen.composer.origin import Composed, origin_of
    from chartgen.errors import ChartgenError
    from chartgen.helm.schema import SCHEMA_FILE

    origin = origin_of(chart)
    if not isinstance(origin, Composed):
        return facts_of_values(values.data), None
    known = composed_chart("compose_interface", origin.target, origin.workload).files[SCHEMA_FILE]
    chart = replace(chart, files={**chart.files, SCHEMA_FILE: known})
    if problems := check_values(chart, values):
        raise ChartgenError(problems)
    job = job_of(chart, values)
    return facts_of_job(job) if job else facts_of_values(values.data), job


def facts_of_job(job: Job) -> Mapping[str, Any]:
    """Translate a job, whose machines, batch and GPU are known; of a program with its own model, what reaches it."""
    facts = facts_of_values(job.values) | {"batch": job.global_batch}
    if not job.describes_model:
        facts = {name: value for name, value in facts.items() if _reaches(job, name)}
    return facts | {"gpus": job.world, "machines": job.nodes, "gpu": job.machine.gpu}


# Fact -> the portable key, and the name in an argument, that pass it to a program.
_PASSED = {
    "steps": ("steps", "$(steps)"),
    "batch": ("batch.global", "$(globalBatch)"),
    "sequenceLength": ("sequenceLength", "$(sequenceLength)"),
    "precision": ("precision", "$(precision)"),
}


def _reaches(job: Job, fact: str) -> bool:
    key, name = _PASSED.get(fact, ("", ""))
    return bool(key) and (key in job.launcher.owns or any(name in text for text in job.own.get("args") or ()))
