"""`chartgen wait`: wait until a run is queued, runs or has finished."""

from __future__ import annotations

import sys

import click

from chartgen.cli.options import DURATION, GivenPlace, output_option, place_options, release_argument
from chartgen.cli.output import note
from chartgen.cli.status import show_readout


@click.command()
@release_argument
@place_options
@click.option(
    "--for",
    "phase",
    type=click.Choice(["finished", "running", "queued"]),
    default="finished",
    show_default=True,
    help="Phase to wait for; a later phase counts too.",
)
@click.option("--timeout", type=DURATION, default="2h", show_default=True, metavar="TIME", help="Time limit.")
@output_option
def wait(release: str, where: GivenPlace, phase: str, timeout: float, output: str) -> None:
    """Wait until a run is queued, runs or has finished: exit 0, or 1 when it fails or takes too long.

    \b
    Example:
      chartgen wait prep && chartgen install gke-a3mega my-run --preset gpt3-175b -f site.yaml
    """
    from chartgen.releases.status.watch import wait_for_phase

    with where.open() as (cluster, place):
        readout = wait_for_phase(cluster, release, phase, namespace=place.namespace, timeout=timeout, progress=note)
    show_readout(readout, output)
    if readout.phase == "failed":
        sys.exit(1)
