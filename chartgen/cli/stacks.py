"""`chartgen stacks`: show where each rank of a run is."""

from __future__ import annotations

import click

from chartgen.cli.options import GivenPlace, output_option, place_options, release_argument
from chartgen.cli.output import show_answer

_SHOWN = 12  # innermost calls


@click.command()
@release_argument
@place_options
@click.option("--all", "complete", is_flag=True, help="Whole stacks; default: the innermost 12 calls.")
@output_option
def stacks(release: str, where: GivenPlace, *, complete: bool, output: str) -> None:
    """Show where each rank of a running release is, grouped by equal stacks; name the odd one out.

    Each pod dumps the main thread of its ranks with py-spy, which its image must have. The program continues.

    \b
    Example:
      chartgen stacks my-run
    """
    from chartgen.masking import masked
    from chartgen.releases.status.stacks import odd, read_stacks, span
    from chartgen.visible import one_line

    with where.open() as (cluster, place):
        groups = read_stacks(cluster, release, place)
    if output == "json":
        show_answer("stacks/v1", {"groups": groups})
        return
    for group in groups:
        on = f" on machine {group.machines[0]}" if len(group.machines) == 1 else ""
        click.echo(f"{len(group.ranks)} rank{'s' if len(group.ranks) > 1 else ''}: {span(group.ranks)}{on}")
        if group.error:
            click.echo(f"  unknown: {one_line(masked(group.error))}")
        for frame in group.frames if complete else group.frames[:_SHOWN]:
            click.echo(f"  {one_line(masked(frame))}")
        if not complete and len(group.frames) > _SHOWN:
            click.echo(f"  {len(group.frames) - _SHOWN} more calls; --all shows them")
    if different := odd(groups):
        click.echo(f"The odd one out: rank {span(different.ranks)} on {', '.join(different.machines)}")
