"""`chartgen rehearse`: rehearse a release on a throw-away control plane."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.job import FolderCommand, GivenJob
from chartgen.cli.options import (
    PATIENCE,
    build_option,
    job_options,
    namespace_option,
    output_option,
    target_argument,
    team_option,
    workload_option,
)
from chartgen.cli.output import note, show_answer, show_plan
from chartgen.visible import counted

if TYPE_CHECKING:
    from chartgen.rehearsal.rehearse import Rehearsal
    from chartgen.rehearsal.verdict import Verdict


@click.command(cls=FolderCommand)
@target_argument
@job_options
@click.option("--release", default="rehearsal", show_default=True, help="Release name.")
@namespace_option("default", "Its namespace, such as a team's.")
@click.option(
    "--machines", type=click.IntRange(min=0), help="Simulated machines; default: as many as the run asks for."
)
@click.option(
    "--timeout",
    type=PATIENCE,
    metavar="TIME",
    help="Time without progress, such as 90s, until it is given up; default: 120s, and 1s for every 10 machines.",
)
@build_option
@team_option
@workload_option
@output_option
def rehearse(job: GivenJob, output: str, **options: Any) -> None:
    """Install a release on a throw-away control plane with simulated machines, print the verdict, remove it all.

    etcd, Kubernetes, the queue and the job controllers are real; the machines are simulated, so no training runs.
    Exit 0 when every pod was admitted, placed and started, 1 when not, and 3 without a verdict, when this machine is
    too slow for so many simulated ones.

    \b
    Example:
      chartgen rehearse gke-a3mega --preset gpt3-175b -f site.yaml
    """
    from chartgen.composer.target import load_target
    from chartgen.rehearsal.rehearse import rehearse as rehearse_target
    from chartgen.releases.plan import describe_plan

    result = rehearse_target(
        load_target(job.target, job.library),
        job.checked()[1],
        workload=job.workload,
        on_plan=lambda plan: show_plan(describe_plan(plan)),
        progress=note,
        **options,
    )
    _show(result, output)
    if not result.verdict.ok:
        sys.exit(3 if result.verdict.overloaded else 1)


def _show(result: Rehearsal, output: str) -> None:
    plan, verdict = result.plan, result.verdict
    if output == "json":
        show_answer("rehearsal/v1", result)
        return
    simulated = counted(result.machines, "simulated machine")
    click.echo(f"Verdict: {plan.release} {_word(verdict)} on {simulated} ({verdict.seconds:.1f} s)")
    queue = f"by queue {plan.queue}" if plan.queue else "without a queue"
    click.echo(f"  admitted    {'yes, ' + queue if verdict.admitted else 'no'}")
    click.echo(
        f"  pods        {verdict.running} of {verdict.pods_expected} running, on {counted(verdict.machines, 'machine')}"
    )
    click.echo(f"  GPUs        {verdict.gpus} of {plan.gpus}")
    if meeting := verdict.rendezvous or plan.rendezvous:
        click.echo(f"  rendezvous  {meeting}")
    click.echo(f"  logs        {plan.logs}")
    for each in result.simulated:
        click.echo(f"  simulated   {each}")
    for reason in verdict.reasons:
        click.echo(f"  why         {reason}")


def _word(verdict: Verdict) -> str:
    if verdict.overloaded:
        return click.style("cannot be judged: the simulation is overloaded,", fg="yellow")
    return click.style("runs", fg="green") if verdict.ok else click.style("does not run", fg="red")
