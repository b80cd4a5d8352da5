"""`chartgen plan`: choose what a job's values leave open, and print them all for plain Helm."""

from __future__ import annotations

import click

from chartgen.cli.job import FolderCommand, GivenJob
from chartgen.cli.options import job_options, target_argument
from chartgen.cli.output import emit, show_plan


@click.command(cls=FolderCommand)
@target_argument
@job_options
def plan(job: GivenJob) -> None:
    """Print a job's values for plain Helm, with the numbers that chartgen chooses, and its plan on stderr.

    \b
    Example:
      chartgen plan gke-a4 --preset llama3-70b -f site.yaml --set nodes=4 > run.yaml
    """
    from chartgen.checks import job_of
    from chartgen.checks.outline import outline
    from chartgen.helm.yaml import values_text

    chart, values = job.checked()
    if found := job_of(chart, values):
        show_plan(outline(found))
    emit(values_text(values.data), nl=False)
