"""Facts of a run from the values of its release, with all that its chart adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from chartgen.metrics.figures.facts import facts_of_values

if TYPE_CHECKING:
    from chartgen.checks.job import Job
    from chartgen.helm.chart import Chart
    from chartgen.helm.values import Values


def facts_of_release(chart: Chart, values: Values) -> Mapping[str, Any]:
    """Translate the values of a release.

    Args:
        chart: Its chart.
        values: The user's layers.

    Raises:
        ChartgenError: The values do not fit the chart.
    """
    from chartgen.checks import check_values, job_of
    from chartgen.errors import ChartgenError

    if problems := check_values(chart, values):
        raise ChartgenError(problems)
    job = job_of(chart, values)
    return facts_of_job(job) if job else facts_of_values(values.data)


def facts_of_job(job: Job) -> Mapping[str, Any]:
    """Translate a job: machines and batch are known as numbers, and so is the GPU."""
    facts = facts_of_values(job.values)
    facts |= {"gpus": job.world, "machines": job.nodes, "batch": job.global_batch, "gpu": job.machine.gpu}
    return facts
