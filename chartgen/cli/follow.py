"""`chartgen status`, `logs` and `wait`: what is going on with a release, what its ranks print, when it is done."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import click

from chartgen.cli.options import context_option, namespace_option, output_option, say
from chartgen.cli.output import emit, steer
from chartgen.masking import masked, masked_value
from chartgen.visible import harmless

if TYPE_CHECKING:
    from chartgen.kube import Cluster
    from chartgen.releases.status.readout import Readout

_QUIET = 60.0  # seconds between two plain lines that differ in the step only
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_CLEAR = "\x1b[{}F\x1b[J"  # ECMA-48: up to the first line, then erase to the end of the screen


class Duration(click.ParamType[float]):
    """A time span such as 90s, 10m or 2h, as seconds."""

    name = "time"

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+)([smhd])", value)
        if match is None:
            self.fail(f"{value!r} is no time span such as 90s, 10m or 2h", param, ctx)
        return float(int(match[1]) * _UNITS[match[2]])


@click.command()
@click.argument("release")
@namespace_option
@context_option
@click.option("--follow", is_flag=True, help="Wait until the run has finished (exit 0) or failed (exit 1).")
@output_option
def status(release: str, namespace: str, context: str | None, follow: bool, output: str) -> None:
    """Show what is going on with a release: why it waits, how far it is, which rank failed first.

    Exit 1 when there is no such release. A run that has failed is no failure of this command: exit 0, as for any other
    phase; use `chartgen wait`, or --follow, for an exit code that tells how the run ended.

    \b
    Examples:
      chartgen status my-run
      chartgen status my-run --follow
    """
    from chartgen.releases.status.readout import read

    with _connection(release, context) as cluster:
        if follow:
            _follow(cluster, release, namespace, output)
            return
        readout = read(cluster, release, namespace)
    _show(readout, output)
    if readout.phase == "absent" and readout.revision is None:
        sys.exit(1)


@click.command()
@click.argument("release")
@namespace_option
@context_option
@click.option("--rank", default="", metavar="0|last|all|N", help="A global rank; default: the first and the last.")
@click.option("--machine", default="", help="All pods of the run on this machine instead.")
@click.option("--follow", is_flag=True, help="Wait until the run has ended; go on after restarts.")
@click.option("--since", type=Duration(), default="0s", metavar="TIME", help="Only what is newer, such as 10m.")
@click.option("--tail", type=click.IntRange(min=0), default=None, help="Only the last lines of each pod.")
def logs(
    release: str,
    *,
    namespace: str,
    context: str | None,
    rank: str,
    machine: str,
    follow: bool,
    since: float,
    tail: int | None,
) -> None:
    """Print what the ranks of a run print.

    Lines of one machine's other ranks are left out when they say whose they are (torchrun --tee, mpirun --tag-output).

    \b
    Examples:
      chartgen logs my-run
      chartgen logs my-run --rank 11 --tail 100
      chartgen logs my-run --rank all --since 10m
    """
    from chartgen.releases.status.logs import find_sources, follow_logs, read_logs

    if rank and machine:
        raise click.UsageError("--rank and --machine exclude each other.")
    most = -1 if tail is None else tail
    with _connection(release, context) as cluster:
        place = namespace or cluster.namespace
        sources = find_sources(cluster, release, place, rank=rank, machine=machine)
        seconds = int(since)
        if follow:
            lines = follow_logs(cluster, release, sources, place, since=seconds, tail=most, progress=say)
        else:
            lines = read_logs(cluster, sources, place, since=seconds, tail=most, progress=say)
        # a runner of CI obeys lines on any stream
        show = click.echo if "GITHUB_ACTIONS" in os.environ else emit
        for line in lines:
            show(line)


@click.command()
@click.argument("release")
@namespace_option
@context_option
@click.option(
    "--for",
    "phase",
    type=click.Choice(["finished", "running", "queued"]),
    default="finished",
    show_default=True,
    help="What to wait for; what is further counts too.",
)
@click.option("--timeout", type=Duration(), default="2h", show_default=True, metavar="TIME", help="How long to wait.")
@output_option
def wait(release: str, namespace: str, context: str | None, phase: str, timeout: float, output: str) -> None:
    """Wait until a run is queued, runs or has finished: exit 0 then, 1 when it fails or takes too long.

    \b
    Example:
      chartgen wait prep && chartgen install gke-a3mega my-run -f values/gpt3-175b.yaml -f site.yaml
    """
    from chartgen.releases.status.watch import wait_for_phase

    with _connection(release, context) as cluster:
        readout = wait_for_phase(cluster, release, phase, namespace=namespace, timeout=timeout, progress=say)
    _show(readout, output)
    if readout.phase == "failed":
        sys.exit(1)


@contextmanager
def _connection(release: str, context: str | None) -> Iterator[Cluster]:
    from chartgen.kube import connect
    from chartgen.releases.helm_release import check_name

    check_name(release)
    with connect(context=context) as cluster:
        yield cluster


def _follow(cluster: Cluster, release: str, namespace: str, output: str) -> None:
    """Show a release until its run has ended."""
    from chartgen.releases.status.watch import watch

    view = _Screen() if output == "text" and sys.stdout.isatty() else _Lines(output)
    phase = ""
    for readout in watch(cluster, release, namespace, progress=view.note):
        view.show(readout)
        phase = readout.phase
        if readout.ended or phase == "absent":
            break
    sys.exit(0 if phase == "finished" else 1)


class _Screen:
    """A readout on a terminal, drawn over the one before."""

    def __init__(self) -> None:
        self._drawn = 0

    def show(self, readout: Readout) -> None:
        """Draw a readout in place of the one before."""
        from chartgen.releases.status.text import describe

        size = shutil.get_terminal_size()
        # as it will be shown, so that no line is longer than the screen
        lines = [line[: size.columns - 1] for line in harmless(masked(describe(readout))).split("\n")][: size.lines - 1]
        steer(_CLEAR.format(self._drawn) if self._drawn else "")
        click.echo("\n".join(lines))
        self._drawn = len(lines)

    def note(self, line: str) -> None:
        say(line)
        self._drawn += bool(self._drawn)


class _Lines:
    """Readouts one below the other, only those that differ."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._shown = self._state = ""
        self._when = 0.0

    def show(self, readout: Readout) -> None:
        """Print a readout, when it says something new."""
        from chartgen.releases.status.text import describe, summarize

        line, state, now = summarize(readout), summarize(readout, progress=False), time.monotonic()
        if state == self._state and (line == self._shown or now - self._when < _QUIET):
            return
        self._shown, self._state, self._when = line, state, now
        if self._output == "json":
            click.echo(json.dumps(_plain(readout)))
        else:
            click.echo(f"{datetime.now(timezone.utc):%H:%M:%S} {masked(line)}")
        if self._output == "text" and readout.ended:
            click.echo(masked(describe(readout)))

    def note(self, line: str) -> None:
        say(line)


def _show(readout: Readout, output: str) -> None:
    from chartgen.releases.status.text import describe

    click.echo(json.dumps(_plain(readout), indent=2) if output == "json" else masked(describe(readout)))


def _plain(readout: Readout) -> dict[str, object]:
    plain: dict[str, object] = json.loads(json.dumps(asdict(readout), default=datetime.isoformat))
    hidden: dict[str, object] = masked_value(plain)
    return hidden


COMMANDS = (status, logs, wait)
