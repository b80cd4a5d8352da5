"""`chartgen rollback`: return to an earlier revision."""

from __future__ import annotations

from typing import Any

import click

from chartgen.cli.options import GivenPlace, release_argument
from chartgen.cli.rollout import carry_out, confirm_changes, follow_options, untouched, yes_option


@click.command()
@release_argument
@click.argument("revision", type=click.IntRange(min=1), required=False)
@click.option("--again", default="", metavar="WORD", help="Run it once more although that run has finished.")
@yes_option
@follow_options
def rollback(release: str, revision: int | None, again: str, where: GivenPlace, *, yes: bool, **options: Any) -> None:
    """Return to the chart and values of an earlier revision, as a new revision; default: the one before.

    \b
    Example:
      chartgen rollback my-run 3
    """
    from chartgen.releases.rollout import prepare_rollback

    with where.open() as (cluster, place):
        with untouched():
            rollout = prepare_rollback(cluster, place, release, revision, again=again)
            confirm_changes(rollout, yes=yes, lose=options["lose_progress"])
        carry_out(rollout, cluster, place, options)
