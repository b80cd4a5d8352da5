"""`chartgen diff`: show the changes of an upgrade."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.completion import complete_target
from chartgen.cli.folder import FolderCommand
from chartgen.cli.options import (
    decided,
    find_chart,
    open_place,
    output_option,
    path_option,
    place_options,
    read_values,
    release_argument,
    values_options,
    workload_option,
)
from chartgen.cli.output import show_answer

if TYPE_CHECKING:
    from chartgen.helm.chart import Chart
    from chartgen.helm.values import Values
    from chartgen.releases.diff import Change
    from chartgen.releases.history import RevisionRecord
    from chartgen.releases.preview import Preview


@click.command(cls=FolderCommand)
@release_argument
@values_options
@click.option(
    "--target",
    shell_complete=complete_target,
    help="Another target than the release's; without -f with the release's values.",
)
@click.option("--revision", type=click.IntRange(min=1), help="Compare with this revision instead of the last one.")
@workload_option
@place_options
@output_option
@path_option
def diff(release: str, target: str | None, revision: int | None, **options: Any) -> None:
    """Show the changes of an upgrade to these values, field by field, and its effect on the run.

    \b
    Examples:
      chartgen diff my-run --preset gpt3-175b -f site.yaml --set steps=200
      chartgen diff my-run --target oke-h100 -f values/gpt3-175b.yaml
    """
    from chartgen.checks import effective_values, validate
    from chartgen.helm.manifests import objects, render
    from chartgen.releases.diff import compare_renders
    from chartgen.releases.kept_files import keep_files
    from chartgen.releases.preview import preview
    from chartgen.releases.state import survey_release

    with open_place(options["context"], options["namespace"]) as (cluster, place):
        state = survey_release(cluster, release, place.namespace)
        record = state.find(revision)
        values = read_values(options, target or record.target)
        values = values if values.layers else _release_values(record.values)
        values, _ = keep_files(values, record.values)
        chart = _chart_for(record, target, options, values)
        values = decided(chart, values, record.values)
        validate(chart, values)
        rendered = objects(render(chart, release, place.namespace, values.data, cluster.version))
        seen = preview(cluster, state, record, rendered, effective_values(chart, values))
    _show_changes(compare_renders(record.objects, rendered), seen, options["output"])


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


def _chart_for(record: RevisionRecord, target: str | None, options: dict[str, Any], values: Values) -> Chart:
    """Return the chart to compare with: that of the given target, or of the release's own."""
    from chartgen.errors import ChartgenError, Problem

    if not (target or record.target):
        hint = "name the chart's folder with --target"
        raise ChartgenError(Problem(f"release {record.name}: chart {record.chart} is not from chartgen", hint=hint))
    own = record.chart.removeprefix(record.target).removeprefix("-") if not target else ""
    return find_chart(target or record.target, options["path"], options["workload"] or own or None, values=values)


def _release_values(values: dict[str, Any]) -> Values:
    from chartgen.helm.values import load_values

    return load_values(set_json=[json.dumps(values)] if values else ())
