"""`chartgen history`: list the revisions of a release."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from chartgen.cli.options import GivenPlace, output_option, place_options, release_argument
from chartgen.cli.output import show_answer
from chartgen.visible import one_line


@click.command()
@release_argument
@place_options
@output_option
def history(release: str, where: GivenPlace, output: str) -> None:
    """List the revisions of a release in Helm's store, with their runs.

    \b
    Example:
      chartgen history my-run
    """
    from chartgen.releases.state import run_of, survey_release

    with where.open() as (cluster, place):
        state = survey_release(cluster, release, place.namespace)
    state.find(None)
    rows = [
        {
            "revision": record.revision,
            "updated": record.updated,
            "status": record.status,
            "chart": f"{record.chart}-{record.chart_version}",
            "run": run_of(record),
            "description": record.description,
        }
        for record in state.records
    ]
    if output == "json":
        show_answer("history/v1", {"revisions": rows})
    else:
        _show_rows(rows)


def _cell(value: object) -> str:
    from chartgen.masking import masked

    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else one_line(masked(str(value)))


def _show_rows(rows: list[dict[str, Any]]) -> None:
    """Print rows as a table with a head."""
    table = [list(rows[0]), *([*map(_cell, row.values())] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
