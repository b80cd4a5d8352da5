"""`chartgen diff` and `history`: what an upgrade would change, and what was changed."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.options import (
    context_option,
    find_chart,
    namespace_option,
    open_place,
    output_option,
    path_option,
    read_values,
    values_options,
    workload_option,
)

if TYPE_CHECKING:
    from chartgen.helm.chart import Chart
    from chartgen.helm.values import Values
    from chartgen.releases import Preview
    from chartgen.releases.diff import Change
    from chartgen.releases.history import Record


@click.command()
@click.argument("release")
@values_options
@click.option("--target", help="Another target than the release's; without -f with the release's values.")
@click.option("--revision", type=click.IntRange(min=1), help="Compare with this revision instead of the last one.")
@workload_option
@namespace_option
@context_option
@output_option
@path_option
def diff(release: str, target: str | None, revision: int | None, **options: Any) -> None:
    """Show what an upgrade to these values would change, field by field, and what happens to the run.

    \b
    Examples:
      chartgen diff my-run -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f site.yaml --set steps=200
      chartgen diff my-run --target oke-h100 -f values/gpt3-175b.yaml
    """
    from chartgen.checks import effective_values, validate
    from chartgen.helm.manifests import objects, render
    from chartgen.releases import preview, survey
    from chartgen.releases.diff import compare

    values = read_values(options)
    with open_place(options["context"], options["namespace"]) as (cluster, place):
        state = survey(cluster, release, place.namespace)
        record = state.find(revision)
        values = values if values.layers else _release_values(record.values)
        chart = _chart_for(record, target, options)
        validate(chart, values)
        rendered = objects(render(chart, release, place.namespace, values.data, cluster.version))
        seen = preview(cluster, state, record, rendered, effective_values(chart, values))
    _show_changes(compare(record.objects, rendered), seen, options["output"])


@click.command()
@click.argument("release")
@namespace_option
@context_option
@output_option
def history(release: str, **options: Any) -> None:
    """List the revisions of a release that Helm keeps, with their runs.

    \b
    Example:
      chartgen history my-run
    """
    from chartgen.releases import run_of, survey

    with open_place(options["context"], options["namespace"]) as (cluster, place):
        state = survey(cluster, release, place.namespace)
    state.find(None)
    rows = [
        {
            "revision": record.revision,
            "updated": record.updated.isoformat(timespec="seconds"),
            "status": record.status,
            "chart": f"{record.chart}-{record.chart_version}",
            "run": run_of(record),
            "description": record.description,
        }
        for record in state.records
    ]
    if options["output"] == "json":
        click.echo(json.dumps(rows, indent=2))
    else:
        _show_rows(rows)


def _show_changes(changes: list[Change], seen: Preview, output: str) -> None:
    from chartgen.releases.diff import describe

    if output == "json":
        click.echo(json.dumps({**asdict(seen), "changes": [asdict(change) for change in changes]}, indent=2))
        return
    colours = {"+": "green", "-": "red", "~": "yellow"}
    for line in describe(changes):
        click.secho(line, fg=colours.get(line[0]))
    click.echo(seen.effect or ("nothing changes" if not changes else ""))
    for loss in seen.losses:
        click.secho(f"lost: {loss}", fg="red")


def _show_rows(rows: list[dict[str, Any]]) -> None:
    """Print rows as a table with a head."""
    table = [list(rows[0]), *([str(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _chart_for(record: Record, target: str | None, options: dict[str, Any]) -> Chart:
    """Return the chart to compare with: of the target asked for, or of the release's own."""
    from chartgen.errors import ChartgenError, Problem

    if not (target or record.target):
        hint = "name the chart's folder with --target"
        raise ChartgenError(Problem(f"chart {record.chart} of release {record.name} is not of chartgen", hint=hint))
    own = record.chart.removeprefix(record.target).removeprefix("-") if not target else ""
    return find_chart(target or record.target, options["path"], options["workload"] or own or None)


def _release_values(values: dict[str, Any]) -> Values:
    from chartgen.helm.values import load_values

    return load_values(set_json=[json.dumps(values)] if values else ())


COMMANDS = (diff, history)
