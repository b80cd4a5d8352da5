"""`chartgen diff`: show the changes of an upgrade."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.completion import complete_target
from chartgen.cli.job import FolderCommand, GivenJob, checked_values
from chartgen.cli.options import (
    GivenPlace,
    job_options,
    output_option,
    place_options,
    release_argument,
    workload_option,
)
from chartgen.cli.output import show_answer

if TYPE_CHECKING:
    from chartgen.helm.values import Values
    from chartgen.releases.diff import Change
    from chartgen.releases.history import RevisionRecord
    from chartgen.releases.preview import Preview


@click.command(cls=FolderCommand)
@release_argument
@job_options
@click.option(
    "--target",
    shell_complete=complete_target,
    help="Another target than the release's; without -f with the release's values.",
)
@click.option("--revision", type=click.IntRange(min=1), help="Compare with this revision instead of the last one.")
@workload_option
@place_options
@output_option
def diff(job: GivenJob, release: str, revision: int | None, where: GivenPlace, output: str) -> None:
    """Show the changes of an upgrade to these values, field by field, and its effect on the run.

    \b
    Examples:
      chartgen diff my-run --preset gpt3-175b -f site.yaml --set steps=200
      chartgen diff my-run --target oke-h100 --preset gpt3-175b
    """
    from chartgen.checks import effective_values
    from chartgen.helm.manifests import objects, render
    from chartgen.releases.diff import compare_renders
    from chartgen.releases.plan import keep_files
    from chartgen.releases.preview import preview
    from chartgen.releases.state import survey_release

    with where.open() as (cluster, place):
        state = survey_release(cluster, release, place.namespace)
        record = state.find(revision)
        job = _job_for(record, job)
        values = job.values if job.values.layers else _release_values(record.values)
        values, _ = keep_files(values, record.values)
        chart = job.chart(values)
        values = checked_values(chart, values, record.values)
        rendered = objects(render(chart, release, place.namespace, values.data, cluster.version))
        seen = preview(cluster, state, record, rendered, effective_values(chart, values))
    _show_changes(compare_renders(record.objects, rendered), seen, output)


def _show_changes(changes: list[Change], seen: Preview, output: str) -> None:
    from chartgen.answers import plain
    from chartgen.releases.diff import describe_changes

    if output == "json":
        show_answer("diff/v1", {"changes": changes, **plain(seen)})
        return
    colours = {"+": "green", "-": "red", "~": "yellow"}
    for line in describe_changes(changes):
        click.secho(line, fg=colours.get(line[0]))
    click.echo(seen.effect or ("nothing changes" if not changes else ""))
    for loss in seen.losses:
        click.secho(f"lost: {loss}", fg="red")


def _job_for(record: RevisionRecord, job: GivenJob) -> GivenJob:
    """Return the job to compare with: that of the given target, or of the release's own."""
    from chartgen.errors import ChartgenError, Problem

    if job.target:
        return job
    if not record.target:
        hint = "name the chart's folder with --target"
        raise ChartgenError(Problem(f"release {record.name}: chart {record.chart} is not from chartgen", hint=hint))
    kind = record.chart.removeprefix(record.target).removeprefix("-")
    return job._replace(target=record.target, workload=job.workload or kind or None)


def _release_values(values: dict[str, Any]) -> Values:
    from chartgen.helm.values import load_values

    return load_values(set_json=[json.dumps(values)] if values else ())
