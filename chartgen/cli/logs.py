"""`chartgen logs`: print the logs of a run's ranks."""

from __future__ import annotations

import os

import click

from chartgen.cli.options import DURATION, GivenPlace, place_options, release_argument
from chartgen.cli.output import emit, note


@click.command()
@release_argument
@place_options
@click.option("--rank", default="", metavar="0|last|all|N", help="A global rank; default: the first and the last.")
@click.option("--machine", default="", help="All pods of the run on this machine instead.")
@click.option("--follow", is_flag=True, help="Wait until the run has ended; go on after restarts.")
@click.option("--since", type=DURATION, default="0s", metavar="TIME", help="Only newer lines, such as 10m.")
@click.option("--tail", type=click.IntRange(min=0), default=None, help="Only the last lines of each pod.")
def logs(
    release: str, where: GivenPlace, *, rank: str, machine: str, follow: bool, since: float, tail: int | None
) -> None:
    """Print the logs of a run's ranks.

    Lines of other ranks on the same machine are left out if they are marked (torchrun --tee, mpirun --tag-output).

    \b
    Examples:
      chartgen logs my-run
      chartgen logs my-run --rank 11 --tail 100
      chartgen logs my-run --rank all --since 10m
    """
    from chartgen.releases.status.logs import find_sources, follow_logs, read_pod_logs

    if rank and machine:
        raise click.UsageError("--rank and --machine exclude each other.")
    most = -1 if tail is None else tail
    with where.open() as (cluster, opened):
        place = opened.namespace
        sources = find_sources(cluster, release, place, rank=rank, machine=machine)
        seconds = int(since)
        if follow:
            lines = follow_logs(cluster, release, sources, place, since=seconds, tail=most, progress=note)
        else:
            lines = read_pod_logs(cluster, sources, place, since=seconds, tail=most, progress=note)
        # a CI runner executes commands from lines on any stream
        show = click.echo if "GITHUB_ACTIONS" in os.environ else emit
        for line in lines:
            show(line)
