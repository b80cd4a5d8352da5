"""`chartgen uninstall`: uninstall a release; its data stays."""

from __future__ import annotations

import click

from chartgen.cli.options import GivenPlace, output_option, place_options, release_argument
from chartgen.cli.output import note, show_answer
from chartgen.cli.rollout import agree_to, lose_option, untouched


@click.command()
@release_argument
@lose_option
@place_options
@output_option
def uninstall(release: str, lose_progress: bool, where: GivenPlace, output: str) -> None:
    """Uninstall a release: stop its run, remove leftovers of failed upgrades, keep its data.

    Shows first which steps of a live run are not in a checkpoint, and asks for confirmation like `upgrade`.

    \b
    Example:
      chartgen uninstall my-run
    """
    from chartgen.releases.preview import lost_work
    from chartgen.releases.uninstall import check_installed
    from chartgen.releases.uninstall import uninstall as remove

    with where.open() as (cluster, place):
        with untouched():
            state = check_installed(cluster, place, release)
            agree_to("uninstall", release, lost_work(cluster, state, state.runs), lose=lose_progress)
        removal = remove(cluster, place, release, progress=note)
    if output == "json":
        show_answer("removal/v1", removal)
        return
    click.echo(f"{release}: uninstalled" + (f", {removal.chart}" if removal.chart else "") + f" in {removal.namespace}")
    for kept in removal.kept:
        click.echo(f"  kept: {kept}")
    for loss in removal.losses:
        click.echo(f"  lost: {loss}")
    if removal.survival and removal.survival.risk and not removal.losses:
        click.echo(f"  note: {removal.survival.risk}")
