"""`chartgen shell`: open a shell in the pod of a rank."""

from __future__ import annotations

import sys

import click

from chartgen.cli.options import GivenPlace, place_options, release_argument
from chartgen.cli.output import note


@click.command()
@release_argument
@click.argument("command", nargs=-1)
@click.option("--rank", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="A global rank.")
@click.option("--machine", default="", help="The pod on this machine instead.")
@place_options
def shell(release: str, command: tuple[str, ...], where: GivenPlace, *, rank: int, machine: str) -> None:
    """Open a shell in the running pod of a rank, or run a command there; exit with its exit code.

    The shell starts beside the program, with the variables of the pod, but not with those of the rank.

    \b
    Examples:
      chartgen shell my-run --rank 11
      chartgen shell my-run --rank 11 -- nvidia-smi
    """
    import subprocess

    from chartgen.releases.status.pod_exec import exec_argv, find_pod

    with where.open() as (cluster, place):
        member = find_pod(cluster, release, place.namespace, rank=rank, machine=machine)
    note(f"pod {member.name} on machine {member.machine}")
    streams = "-it" if sys.stdin.isatty() and sys.stdout.isatty() else "-i"
    sys.exit(subprocess.call(exec_argv(place, member, command or ("bash",), streams=streams)))
