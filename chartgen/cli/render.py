"""`chartgen render`: print the manifests of a chart."""

from __future__ import annotations

import click

from chartgen.cli.job import FolderCommand, GivenJob
from chartgen.cli.options import job_options, namespace_option, new_release_argument, target_argument, workload_option
from chartgen.cli.output import emit


@click.command(cls=FolderCommand)
@target_argument
@new_release_argument
@job_options
@namespace_option("default", "Namespace that the templates see.")
@workload_option
def render(job: GivenJob, release: str, namespace: str) -> None:
    """Print the manifests of a target or chart folder, as `helm template` renders them.

    \b
    Example:
      chartgen render gke-a3mega my-run --preset gpt3-175b -f site.yaml
    """
    from chartgen.helm.manifests import render as render_chart
    from chartgen.helm.program import HelmError

    chart, values = job.checked()
    try:
        text = render_chart(chart, release, namespace, values.data)
    except HelmError as error:
        from chartgen.linter.sources import in_source

        raise in_source(error, chart) from None
    emit(text, nl=False)
