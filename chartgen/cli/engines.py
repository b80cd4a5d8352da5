"""`chartgen engines`, `rehearse` and `sandbox`: a real control plane on this machine."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.options import (
    library,
    output_option,
    path_option,
    read_values,
    say,
    show_plan,
    target_argument,
    values_options,
    workload_option,
)

if TYPE_CHECKING:
    from chartgen.rehearsal.rehearse import Rehearsal
    from chartgen.rehearsal.sandbox import Sandbox
    from chartgen.releases.status.verdict import Verdict


@click.group()
def engines() -> None:
    """Build or list the programs of a rehearsal: Helm, etcd, Kubernetes, kwok and the controllers.

    They are built from the Go module proxy at pinned versions, once, into your cache; those on PATH are used where
    they fit.
    """


@engines.command("build")
@click.argument("names", nargs=-1, metavar="[NAME]...")
def engines_build(names: tuple[str, ...]) -> None:
    """Build the named engines, or all of them, unless they are there already.

    \b
    Example:
      chartgen engines build helm
    """
    from chartgen.rehearsal import engines as table
    from chartgen.rehearsal.engine_build import build

    for name, path in build(names or table.engines(), progress=say).items():
        click.echo(f"{name}: {path}")


@engines.command("list")
@output_option
def engines_list(output: str) -> None:
    """List the engines: pinned version, and where each one is.

    \b
    Example:
      chartgen engines list --output json
    """
    from chartgen.rehearsal import engines as table

    rows = table.status()
    if output == "json":
        click.echo(json.dumps([{**asdict(row), "path": str(row.path) if row.path else None} for row in rows], indent=2))
        return
    width = max(len(row.name) for row in rows)
    for row in rows:
        click.echo(f"{row.name:{width}}  {row.version:8}  {row.source or 'missing':8} {row.path or ''}".rstrip())


@click.command()
@target_argument
@values_options
@click.option("--release", default="rehearsal", show_default=True, help="Release name.")
@click.option(
    "--machines", type=click.IntRange(min=0), help="Simulated machines; default: as many as the run asks for."
)
@click.option("--context", help="Use this disposable cluster (with kwok and the controllers) instead of a new one.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=1),
    help="Seconds without progress until it is given up; default: 120, and 1 for every 10 machines.",
)
@workload_option
@output_option
@path_option
def rehearse(target: str, path: tuple[Path, ...], output: str, **options: Any) -> None:
    """Install a release on a throw-away control plane with simulated machines, say what becomes of it, remove it all.

    etcd, Kubernetes, the queue and the job controllers are the real ones; the machines are simulated, so nothing is
    trained. Exit 0 when every pod was admitted, placed and started, 1 when not, and 3 without a verdict: when this
    machine is too slow for so many simulated ones.

    \b
    Example:
      chartgen rehearse gke-a3mega -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f site.yaml
    """
    from chartgen.composer.target import load_target
    from chartgen.rehearsal.rehearse import rehearse as run

    values = read_values(options)
    result = run(load_target(target, library(path)), values, on_plan=show_plan, progress=say, **options)
    _show(result, output)
    if not result.verdict.ok:
        sys.exit(3 if result.verdict.overloaded else 1)


def _show(result: Rehearsal, output: str) -> None:
    plan, verdict = result.plan, result.verdict
    if output == "json":
        facts = asdict(result)
        facts["plan"]["apis"] = sorted(plan.apis)
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(
        f"Verdict: {plan.release} {_word(verdict)} on {result.machines} simulated machines ({verdict.seconds:.1f} s)"
    )
    queue = f"by queue {plan.queue}" if plan.queue else "without a queue"
    click.echo(f"  admitted    {'yes, ' + queue if verdict.admitted else 'no'}")
    click.echo(f"  pods        {verdict.running} of {verdict.pods_expected} running, on {verdict.machines} machines")
    click.echo(f"  GPUs        {verdict.gpus} of {plan.gpus}")
    click.echo(f"  rendezvous  {verdict.rendezvous or plan.rendezvous}")
    click.echo(f"  logs        {plan.logs}")
    for each in result.simulated:
        click.echo(f"  simulated   {each}")
    for reason in verdict.reasons:
        click.echo(f"  why         {reason}")


def _word(verdict: Verdict) -> str:
    if verdict.overloaded:
        return click.style("is not judged, the simulation is overloaded,", fg="yellow")
    return click.style("runs", fg="green") if verdict.ok else click.style("does not run", fg="red")


@click.group()
def sandbox() -> None:
    """Keep a control plane running, to try helm, kubectl and chartgen by hand."""


@sandbox.command("up")
@target_argument
@values_options
@click.option("--name", default="sandbox", show_default=True, help="Name of the sandbox.")
@click.option("--machines", type=click.IntRange(min=0), help="Simulated machines; default: the values' nodes.")
@click.option("--setup/--no-setup", default=True, help="Install the setup chart, or leave that to you.")
@output_option
@path_option
def sandbox_up(target: str, name: str, output: str, path: tuple[Path, ...], **options: Any) -> None:
    """Start a control plane with a target's simulated machines, controllers and setup chart.

    \b
    Example:
      chartgen sandbox up gke-a3mega -f values/site.gke-a3mega.example.yaml --machines 32
    """
    from chartgen.composer.target import load_target
    from chartgen.rehearsal.rehearse import open_sandbox

    values = read_values(options)
    started = open_sandbox(name, load_target(target, library(path)), values, progress=say, **options)
    _show_sandboxes([started], output)
    if output == "text":
        click.echo(f'\nUse it:  eval "$(chartgen sandbox env {name})"\nEnd it:  chartgen sandbox down {name}')


class _Env(click.Command):
    """Prints shell that leads nowhere when it fails: `eval` runs what is printed, and ignores the exit code."""

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
@click.argument("name", default="sandbox")
def sandbox_env(name: str) -> None:
    """Print the shell lines that make helm, kubectl and chartgen use a sandbox: eval "$(chartgen sandbox env)".

    Where helm or kubectl is not on PATH, those that `chartgen engines build` made are put there. When there is no such
    sandbox the lines lead to no cluster at all, so that what follows never reaches a real one.

    \b
    Example:
      chartgen sandbox env oke
    """
    from chartgen.rehearsal.sandbox import environment, missing_programs

    for key, value in environment(name).items():
        click.echo(f"export {key}={shlex.quote(value)}")
    for program in missing_programs():
        say(f"{program} is missing; build it once with `chartgen engines build {program}`")


@sandbox.command("down")
@click.argument("name", default="sandbox")
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


def _show_sandboxes(found: list[Sandbox], output: str) -> None:
    if output == "json":
        click.echo(json.dumps([asdict(one) for one in found], indent=2, default=str))
        return
    if not found:
        click.echo("no sandbox is running; `chartgen sandbox up TARGET` starts one")
    for one in found:
        controllers = ", ".join(one.controllers) or "no controllers"
        click.echo(f"{one.name}: {one.machines} machines, {controllers}, {one.kubeconfig}")


COMMANDS = (engines, rehearse, sandbox)
