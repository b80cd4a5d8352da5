"""`chartgen top`: all releases on the screen, live."""

from __future__ import annotations

import shutil
import sys
import time
from datetime import datetime, timezone
from itertools import count as forever
from typing import TYPE_CHECKING

import click

from chartgen.cli.options import DURATION, GivenPlace, output_option, place_options, price_option
from chartgen.cli.output import note, show_answer
from chartgen.cli.status import Screen, overview, show_new, unread
from chartgen.visible import counted

if TYPE_CHECKING:
    from chartgen.errors import Problem
    from chartgen.releases.status.readout import Readout


@click.command()
@place_options
@click.option("-A", "--all-namespaces", is_flag=True, help="The releases of all namespaces.")
@click.option("--every", type=DURATION, default="5s", show_default=True, metavar="TIME", help="Time between two looks.")
@click.option("--count", type=click.IntRange(min=1), help="Stop after so many looks; default: on Ctrl-C.")
@price_option
@output_option
def top(
    where: GivenPlace, *, all_namespaces: bool, every: float, count: int | None, price: float | None, output: str
) -> None:
    """Show all releases of chartgen's charts, one row each, and refresh them until Ctrl-C.

    A narrow terminal shows fewer columns. JSON is one line for each look. `chartgen status` shows the same table once.

    \b
    Examples:
      chartgen top -A
      chartgen top --every 1m --output json
    """
    if output == "text" and not sys.stdout.isatty():
        raise click.UsageError("stdout is not a terminal; use --output json, or `chartgen status` for one table")
    from chartgen.errors import ChartgenError
    from chartgen.kube.http import is_passing
    from chartgen.releases.status.overview import read_releases

    screen, answered = Screen(), False
    noted: set[str] = set()
    with where.open() as (cluster, place):
        namespace = "" if all_namespaces else place.namespace
        try:
            for look in forever(1):
                refused: list[Problem] = []
                try:
                    readouts = list(read_releases(cluster, namespace, refused=refused.append))
                except ChartgenError as error:
                    if not is_passing(error) or (look == count and not answered):
                        raise
                    note(str(error))
                else:
                    answered = True
                    unknown = [*unread(readouts), *map(str, refused)]
                    _show(readouts, unknown, namespace, price, screen if output == "text" else None)
                    if output == "json":
                        show_new(unknown, noted, note)
                if look == count:
                    return
                time.sleep(every)
        except KeyboardInterrupt:
            return  # the usual end


def _show(
    readouts: list[Readout], unknown: list[str], namespace: str, price: float | None, screen: Screen | None
) -> None:
    from chartgen.releases.status.overview import glance

    now = datetime.now(timezone.utc)
    found = [glance(readout, now, price) for readout in readouts]
    if screen is None:
        show_answer("releases/v1", {"at": now, "releases": found}, stream=True)
        return
    head = f"{counted(len(readouts), 'release')} in {namespace or 'all namespaces'}, {now:%H:%M:%S} UTC"
    screen.draw("\n".join([head, *overview(found, namespace, shutil.get_terminal_size().columns - 1), *unknown]))
