"""`chartgen sandbox`: manage control planes that keep running on this machine."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.completion import complete_sandbox
from chartgen.cli.job import FolderCommand, GivenJob
from chartgen.cli.options import build_option, job_options, output_option, target_argument, team_option
from chartgen.cli.output import note, show_answer
from chartgen.visible import counted

if TYPE_CHECKING:
    from chartgen.rehearsal.sandbox import Sandbox


@click.group()
def sandbox() -> None:
    """Keep a control plane running, to try helm, kubectl and chartgen by hand."""


@sandbox.command("up", cls=FolderCommand)
@target_argument
@job_options
@click.option("--name", default="sandbox", show_default=True, help="Name of the sandbox.")
@click.option("--machines", type=click.IntRange(min=0), help="Simulated machines; default: the values' nodes.")
@click.option("--setup/--no-setup", default=True, help="Install the setup chart, or leave that to you.")
@build_option
@team_option
@output_option
def sandbox_up(job: GivenJob, name: str, output: str, **options: Any) -> None:
    """Start a control plane with a target's simulated machines, controllers and setup chart.

    \b
    Example:
      chartgen sandbox up gke-a3mega -f values/site.gke-a3mega.example.yaml --machines 32
    """
    from chartgen.rehearsal.rehearse import open_sandbox

    started = open_sandbox(name, *job.decided()[:2], progress=note, **options)
    _show_sandboxes([started], output)
    if output == "text":
        click.echo(f'\nUse it:  eval "$(chartgen sandbox env {name})"\nEnd it:  chartgen sandbox down {name}')


class _Env(click.Command):
    """Prints shell lines that disable cluster access on failure: `eval` runs the output and ignores the exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError:
            _lead_nowhere()
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BaseException:  # Ctrl-C too
            _lead_nowhere()
            raise


def _lead_nowhere() -> None:
    from chartgen.rehearsal.sandbox import NOWHERE

    click.echo(f"export KUBECONFIG={shlex.quote(str(NOWHERE))}; false")


@sandbox.command("env", cls=_Env)
@click.argument("name", default="sandbox", shell_complete=complete_sandbox)
def sandbox_env(name: str) -> None:
    """Print the shell lines that make helm, kubectl and chartgen use a sandbox: eval "$(chartgen sandbox env)".

    If helm or kubectl is not on PATH, the lines add the programs of `chartgen engines get` to PATH. If the sandbox
    does not exist, the lines disable access to any cluster, so that later commands never reach a real one.

    \b
    Example:
      chartgen sandbox env oke
    """
    from chartgen.rehearsal.sandbox import environment, missing_programs

    for key, value in environment(name).items():
        click.echo(f"export {key}={shlex.quote(value)}")
    for program in missing_programs():
        note(f"{program} is missing; get it once with `chartgen engines get {program}`")


@sandbox.command("down")
@click.argument("name", default="sandbox", shell_complete=complete_sandbox)
def sandbox_down(name: str) -> None:
    """End a sandbox and remove its files.

    \b
    Example:
      chartgen sandbox down
    """
    from chartgen.rehearsal.sandbox import down

    click.echo(f"{down(name).name}: ended")


@sandbox.command("list")
@output_option
def sandbox_list(output: str) -> None:
    """List the running sandboxes.

    \b
    Example:
      chartgen sandbox list
    """
    from chartgen.rehearsal.sandbox import list_sandboxes

    _show_sandboxes(list_sandboxes(), output)


def _show_sandboxes(sandboxes: list[Sandbox], output: str) -> None:
    if output == "json":
        show_answer("sandboxes/v1", {"sandboxes": sandboxes})
        return
    if not sandboxes:
        click.echo("no sandbox is running; `chartgen sandbox up TARGET` starts one")
    for one in sandboxes:
        controllers = ", ".join(one.controllers) or "no controllers"
        click.echo(f"{one.name}: {counted(one.machines, 'machine')}, {controllers}, {one.kubeconfig}")
