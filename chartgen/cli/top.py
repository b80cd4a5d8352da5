"""`chartgen top`: all releases on the screen, live."""

from __future__ import annotations

import shutil
import sys
import time
from itertools import count as forever

import click

from chartgen.cli.options import DURATION, GivenPlace, output_option, place_options, price_option
from chartgen.cli.output import note, show_answer
from chartgen.cli.status import Look, Screen, look_at, overview, show_new, unread
from chartgen.visible import counted


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

    screen, answered = Screen(), False
    noted: set[str] = set()
    with where.open() as (cluster, place):
        namespace = "" if all_namespaces else place.namespace
        try:
            for number in forever(1):
                try:
                    look = look_at(cluster, namespace, price)
                except ChartgenError as error:
                    if not is_passing(error) or (number == count and not answered):
                        raise
                    note(str(error))
                else:
                    answered = True
                    _show(look, namespace, noted, screen if output == "text" else None)
                if number == count:
                    return
                time.sleep(every)
        except KeyboardInterrupt:
            return  # the usual end


def _show(look: Look, namespace: str, noted: set[str], screen: Screen | None) -> None:
    unknown = [*unread(look.releases), *map(str, look.refused)]
    if screen is None:
        show_answer("releases/v1", {"at": look.at, "releases": look.releases}, stream=True)
        show_new(unknown, noted, note)
        return
    head = f"{counted(len(look.releases), 'release')} in {namespace or 'all namespaces'}, {look.at:%H:%M:%S} UTC"
    rows = overview(look.releases, namespace, shutil.get_terminal_size().columns - 1)
    screen.draw("\n".join([head, *rows, *unknown]))
