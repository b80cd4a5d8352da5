"""`chartgen build`: compose charts from targets and fragments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chartgen.cli.completion import complete_target
from chartgen.cli.job import GivenJob
from chartgen.cli.options import job_options, workload_option
from chartgen.errors import UsageError

if TYPE_CHECKING:
    from chartgen.composer.target import Target
    from chartgen.helm.chart import Chart


@click.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=complete_target)
@click.option("--all", "every", is_flag=True, help="Build every target.")
@click.option("--prune", is_flag=True, help="Remove templates in a chart's folder that the chart does not have.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 with a diff when a chart is stale.")
@workload_option
@click.option(
    "--launchers",
    metavar="NAME,...",
    default="",
    help="Launchers of the chart, the first as default, or `all`; by default those of the values, or of the presets.",
)
@job_options
@click.option(
    *("-d", "--destination"),
    type=click.Path(path_type=Path),
    default="charts",
    show_default=True,
    help="Folder for the charts' folders.",
)
def build(
    job: GivenJob,
    targets: tuple[str, ...],
    *,
    every: bool,
    prune: bool,
    check: bool,
    launchers: str,
    destination: Path,
) -> None:
    """Compose charts and write them below the destination.

    Each target yields a run chart and, if it needs a one-time setup, a setup chart. A run chart has the launcher of
    the values, and those that prepare its data and test the network; without values, those of the target's presets.

    \b
    Examples:
      chartgen build gke-a3mega
      chartgen build gke-a3mega --workload job
      chartgen build gke-a3mega --preset gpt3-175b
      chartgen build gke-a3mega --launchers nemo-1,download
      chartgen build --all --check
    """
    from chartgen.composer.composed import composed_chart
    from chartgen.composer.target import load_target

    found = job.library
    if every == bool(targets):
        raise UsageError("name the targets to build, or use --all; `chartgen list targets` shows them")
    charts: list[Chart] = []
    for name in found.names("target") if every else targets:
        target = load_target(name, found)
        charts.append(composed_chart("compose", _offering(target, launchers, job), job.workload))
        setup = composed_chart("compose_setup", target, job.workload)
        if setup and setup.name == f"{charts[-1].name}-setup":  # other kinds share that of the target's own
            charts.append(setup)
    stale = [_check(chart, destination) if check else _write(chart, destination, prune=prune) for chart in charts]
    if check and any(stale):
        sys.exit(1)


def _offering(target: Target, launchers: str, job: GivenJob) -> Target:
    """Return a target whose chart has the launchers of the command: named ones, or those of the values or presets."""
    from chartgen.composer.presets import for_presets, for_values
    from chartgen.composer.target import with_launchers

    names = [name.strip() for name in launchers.split(",") if name.strip()]
    if names:
        return target if names == ["all"] else with_launchers(target, names)
    values = job._replace(target=target.name).values
    if values.layers:
        return for_values(target, values.data, job.workload, companions=True)
    return for_presets(target, job.workload)


def _write(chart: Chart, destination: Path, *, prune: bool) -> bool:
    changed = chart.write(destination / chart.name, prune=prune)
    click.echo(f"{destination / chart.name}: {'written' if changed else 'unchanged'}")
    return changed


def _check(chart: Chart, destination: Path) -> bool:
    diff = chart.diff(destination / chart.name)
    click.echo(diff, nl=False)
    hint = "stale; build it again without --check" if diff else "up to date"
    click.echo(f"{destination / chart.name}: {hint}", err=True)
    return bool(diff)
