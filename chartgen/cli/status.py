"""`chartgen status`: show the state of a release, once or until its run has ended."""

from __future__ import annotations

import shutil
import sys
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, NamedTuple

import click

from chartgen.cli.options import GivenPlace, any_release_argument, output_option, place_options, price_option
from chartgen.cli.output import note, show_answer, steer
from chartgen.visible import harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from chartgen.errors import Problem
    from chartgen.kube import Cluster
    from chartgen.releases.status.overview import Glance
    from chartgen.releases.status.readout import Readout

_FORM = "status/v1"
_QUIET = 60.0  # seconds between two plain lines that differ only in the step
_COLOURS = {"running": "green", "finished": "green", "failed": "red", "absent": "red"}
_CLEAR = "\x1b[{}F\x1b[J"  # ECMA-48: up to the first line, then erase to the end of the screen


@click.command()
@any_release_argument
@place_options
@click.option("-A", "--all-namespaces", is_flag=True, help="Without a release: those of all namespaces.")
@price_option
@click.option("--follow", is_flag=True, help="Wait until the run has finished (exit 0) or failed (exit 1).")
@output_option
def status(
    release: str | None, where: GivenPlace, all_namespaces: bool, price: float | None, follow: bool, output: str
) -> None:
    """Show the state of a release: why it waits, its progress, which rank failed first.

    Without RELEASE, show all releases of chartgen's charts in the namespace, one row each. GPU-hours and
    cost count from the start of the present phase.

    Exit 1 when the release does not exist, or you may not read it. A failed run is not a failure of this command: exit
    0, as for any other phase; use `chartgen wait`, or --follow, for an exit code that reports how the run ended.

    \b
    Examples:
      chartgen status my-run
      chartgen status my-run --follow
      chartgen status -A --price 98
    """
    from chartgen.releases.status.readout import read_readout

    if release is None and follow:
        raise click.UsageError("--follow needs a release")
    if release is not None and all_namespaces:
        raise click.UsageError("--all-namespaces is for the table of all releases; leave out the release, or use -n")
    with where.open() as (cluster, place):
        if release is None:
            namespace = "" if all_namespaces else place.namespace
            _show_all(look_at(cluster, namespace, price), namespace, output)
            return
        if follow:
            _follow(cluster, release, place.namespace, output)
            return
        readout = read_readout(cluster, release, place.namespace)
    show_readout(readout, output)
    if readout.phase == "absent" and readout.revision is None:
        sys.exit(1)


class Look(NamedTuple):
    """The releases of a namespace, or of all, at one time; and those that the user may not read."""

    at: datetime
    releases: list[Glance]
    refused: list[Problem]


def look_at(cluster: Cluster, namespace: str, price: float | None) -> Look:
    """Check the releases of a namespace, or of all."""
    from chartgen.releases.status.overview import glance, read_releases

    refused: list[Problem] = []
    readouts, now = list(read_releases(cluster, namespace, refused=refused.append)), datetime.now(timezone.utc)
    return Look(now, [glance(readout, now, price) for readout in readouts], refused)


def _show_all(look: Look, namespace: str, output: str) -> None:
    from chartgen.errors import ChartgenError

    if output == "json":
        show_answer("releases/v1", {"at": look.at, "releases": look.releases})
    elif look.releases:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        for line in overview(look.releases, namespace, columns):
            click.echo(line)
    elif not look.refused:
        where = f"namespace {namespace}" if namespace else "any namespace"
        click.echo(f"no release of chartgen's charts in {where}")
    for line in unread(look.releases):
        note(line)
    if look.refused:
        raise ChartgenError(look.refused)


def unread(readouts: Iterable[Readout | Glance]) -> list[str]:
    """Return a line for each permission that readouts lacked."""
    return list(dict.fromkeys(f"unknown: {each}" for readout in readouts for each in readout.unread))


def show_new(lines: Iterable[str], shown: set[str], show: Callable[[str], None]) -> None:
    """Show the lines that were not shown before, and add them to `shown`."""
    for line in lines:
        if line not in shown:
            shown.add(line)
            show(line)


def overview(glances: Sequence[Glance], namespace: str, columns: int | None) -> list[str]:
    """Return the releases as lines, one each, with secrets masked; those of one namespace do not repeat it."""
    from chartgen.releases.status.overview import HEADS, lay_out, overview_rows

    rows = [tuple(_masked(text) for text in row) for row in overview_rows(glances)]
    left_out = {"namespace"} if namespace else set()
    if all(each.cost is None for each in glances):
        left_out.add("cost")
    return lay_out(rows, [head for head in HEADS if head not in left_out], columns)


def _follow(cluster: Cluster, release: str, namespace: str, output: str) -> None:
    """Show a release until its run has ended."""
    from chartgen.releases.status.watch import watch

    view = Screen() if output == "text" and sys.stdout.isatty() else _Lines(output)
    last: Readout | None = None
    noted: set[str] = set()
    for readout in watch(cluster, release, namespace, progress=view.note):
        last = readout
        show_new(unread([readout]), noted, view.note)
        if not readout.gone:  # for a moment, an upgrade leaves no run
            view.show(readout)
        if readout.ended:
            break
    if last and last.gone:
        view.show(last)
    sys.exit(0 if last and last.phase == "finished" else 1)


def _masked(text: str) -> str:
    from chartgen.masking import masked  # its patterns take milliseconds to compile, which --help need not wait for

    return masked(text)


class Screen:
    """A text on a terminal, drawn over the one before."""

    def __init__(self) -> None:
        self._drawn = 0

    def show(self, readout: Readout) -> None:
        """Draw a readout in place of the one before."""
        from chartgen.releases.status.text import describe_readout

        self.draw(_masked(describe_readout(readout)))

    def draw(self, text: str) -> None:
        """Draw a text in place of the one before."""
        size = shutil.get_terminal_size()
        # as shown, so that no line is longer than the screen
        lines = [line[: size.columns - 1] for line in harmless(text).split("\n")][: size.lines - 1]
        steer(_CLEAR.format(self._drawn) if self._drawn else "")
        click.echo("\n".join(lines))
        self._drawn = len(lines)

    def note(self, line: str) -> None:
        """Print a line below the text; the next drawing replaces both."""
        note(line)
        self._drawn += bool(self._drawn)


class _Lines:
    """Readouts one below the other, without repetitions."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._shown = self._state = ""
        self._when = 0.0

    def show(self, readout: Readout) -> None:
        """Print a readout if it differs from the last one."""
        from chartgen.releases.status.text import describe_readout, summarize

        line, state, now = summarize(readout), summarize(readout, progress=False), time.monotonic()
        if state == self._state and (line == self._shown or now - self._when < _QUIET):
            return
        self._shown, self._state, self._when = line, state, now
        if self._output == "json":
            show_answer(_FORM, readout, stream=True)
        else:
            click.echo(f"{datetime.now(timezone.utc):%H:%M:%S} {_masked(line)}")
        if self._output == "text" and readout.ended:
            click.echo(_masked(describe_readout(readout)))

    def note(self, line: str) -> None:
        note(line)


def show_readout(readout: Readout, output: str) -> None:
    """Print a readout, with secrets masked."""
    from chartgen.releases.status.text import describe_readout

    if output == "json":
        show_answer(_FORM, readout)
    else:
        coloured = click.style(readout.phase, fg=_COLOURS.get(readout.phase, "yellow"))
        click.echo(_masked(describe_readout(readout)).replace(f": {readout.phase}", f": {coloured}", 1))
    for line in unread([readout]):
        note(line)
