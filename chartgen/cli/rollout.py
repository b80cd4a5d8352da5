"""Shared parts of commands that change a release: options, confirmations, and execution."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.options import DURATION, Command, output_option, place_options, with_options
from chartgen.cli.output import note, remark, show_answer

if TYPE_CHECKING:
    from chartgen.kube import Cluster
    from chartgen.releases.helm_release import Place, Release
    from chartgen.releases.preview import LostWork
    from chartgen.releases.rollout import Rollout

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask; needed where stdin is not a terminal.")
lose_option = click.option(
    "--lose-progress", is_flag=True, help="Accept the loss of steps of a running job that are in no checkpoint."
)
_PHASES = ("queued", "running", "finished")


def follow_options(command: Command) -> Command:
    """Add the options of every command that starts a run."""
    return with_options(
        command,
        click.option("--description", default="", metavar="TEXT", help="A note for the release's history."),
        click.option("--wait-for", type=click.Choice(_PHASES), help="Wait until the run reaches this phase or fails."),
        click.option("--timeout", type=DURATION, default="2h", show_default=True, metavar="TIME", help="For how long."),
        lose_option,
        place_options,
        output_option,
    )


@contextmanager
def untouched() -> Iterator[None]:
    """Report that an interrupted command has not changed anything yet."""
    from chartgen.releases.stage import UNTOUCHED

    try:
        yield
    except KeyboardInterrupt:
        note(f"interrupted: {UNTOUCHED}")
        raise


def show_preview(rollout: Rollout, output: str) -> None:
    """Show what a rollout would change and lose, and that it changed nothing."""
    if output == "json":
        show_answer("rollout/v1", _answer(rollout, None))
        return
    _show_changes(rollout)
    for loss in rollout.preview.losses:
        remark("lost", loss, "red")
    note(f"dry run: the API server accepts every object of this {rollout.action}; nothing was changed")


def _show_changes(rollout: Rollout) -> None:
    from chartgen.releases.diff import describe_changes

    for line in describe_changes(rollout.changes):
        click.echo(line, err=True)
    click.echo(f"Effect: {rollout.effect or 'nothing runs in this chart'}", err=True)


def _answer(rollout: Rollout, release: Release | None) -> dict[str, Any]:
    from chartgen.answers import plain

    facts = {"action": rollout.action, "release": release, "run": rollout.run, "changes": rollout.changes}
    return {**facts, **plain(rollout.preview)}


def confirm_changes(rollout: Rollout, *, yes: bool, lose: bool) -> None:
    """Show the changes and ask for confirmation if necessary."""
    from chartgen.errors import UsageError

    _show_changes(rollout)
    confirm_losses(rollout, lose=lose)
    has_agreed = bool(rollout.preview.losses) and not lose  # by the release's name, a stronger confirmation than a yes
    if has_agreed or yes or not (rollout.changes or rollout.findings):
        return
    if not can_ask():
        raise UsageError(f"{rollout.action} asks before it changes a release, but stdin is not a terminal; pass --yes")
    click.confirm(f"{rollout.action.capitalize()} {rollout.state.release}?", abort=True, err=True)


def confirm_losses(rollout: Rollout, *, lose: bool) -> None:
    """Show the losses of a rollout, and ask for the release's name."""
    agree_to(rollout.action, rollout.state.release, rollout.preview.losses, lose=lose)


def agree_to(action: str, release: str, lost: list[LostWork], *, lose: bool) -> None:
    """Show losses, and ask for the release's name."""
    from chartgen.errors import Problem, UsageError

    for loss in lost:
        remark("lost", loss, "red")
    if lose or not lost:
        return
    if not can_ask():
        problem = f"{action} loses steps that are in no checkpoint, but stdin is not a terminal"
        raise UsageError(Problem(problem, hint="pass --lose-progress, or let the run finish first"))
    if click.prompt(f"Type {release} to {action} it anyway", default="", show_default=False, err=True) != release:
        raise click.Abort


def can_ask() -> bool:
    """Report whether the command runs in a terminal."""
    return sys.stdin.isatty()


def carry_out(rollout: Rollout, cluster: Cluster, place: Place, options: dict[str, Any]) -> None:
    """Execute a prepared and confirmed rollout; wait for the run if requested."""
    from chartgen.releases.rollout import execute

    for finding in rollout.findings:
        note(finding)
    made = execute(rollout, cluster, place, description=options["description"], progress=note)
    _show(made, rollout, options["output"])
    if phase := options["wait_for"]:
        try:
            _wait(cluster, made, phase, options["timeout"])
        except KeyboardInterrupt:
            note(
                f"interrupted: revision {made.revision} is {made.status}, and its run continues; see `chartgen status`"
            )
            raise


def _wait(cluster: Cluster, made: Release, phase: str, timeout: float) -> None:
    from chartgen.masking import masked
    from chartgen.releases.status.text import describe_readout
    from chartgen.releases.status.watch import wait_for_phase

    readout = wait_for_phase(cluster, made.name, phase, namespace=made.namespace, timeout=timeout, progress=note)
    if readout.phase == "failed":
        click.echo(masked(describe_readout(readout)), err=True)
        sys.exit(1)


def _show(release: Release, rollout: Rollout, output: str) -> None:
    if output == "json":
        show_answer("rollout/v1", _answer(rollout, release))
        return
    click.echo(
        f"{release.name}: {release.status}, revision {release.revision} of {release.chart} in {release.namespace}"
    )
