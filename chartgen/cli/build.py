"""`chartgen build`: compose charts from targets and fragments."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.completion import complete_target
from chartgen.cli.options import library, path_option, read_values, values_options, workload_option
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
@values_options
@click.option(
    "-d",
    "--destination",
    type=click.Path(path_type=Path),
    default="charts",
    show_default=True,
    help="Folder for the charts' folders.",
)
@click.option("--schemas", type=click.Path(path_type=Path), help="With --all: also publish the JSON Schemas there.")
@click.option("--reference", type=click.Path(path_type=Path), help="Also write the reference pages there.")
@path_option
def build(
    targets: tuple[str, ...],
    *,
    every: bool,
    prune: bool,
    check: bool,
    workload: str | None,
    launchers: str,
    destination: Path,
    schemas: Path | None,
    reference: Path | None,
    path: tuple[Path, ...],
    **options: Any,
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

    found = library(path)
    if every == bool(targets):
        raise UsageError("name the targets to build, or use --all; `chartgen list targets` shows them")
    if schemas and not every:
        raise UsageError("--schemas publishes the schemas of all charts; use it with --all")
    charts: list[Chart] = []
    interfaces: list[Chart] = []
    for name in found.names("target") if every else targets:
        target = load_target(name, found)
        charts.append(composed_chart("compose", _offering(target, workload, launchers, options), workload))
        interfaces += [composed_chart("compose_interface", target, workload)] if schemas else []
        setup = composed_chart("compose_setup", target, workload)
        if setup and setup.name == f"{charts[-1].name}-setup":  # other kinds share that of the target's own
            charts.append(setup)
            interfaces.append(setup)
    stale: list[object] = [
        _check(chart, destination) if check else _write(chart, destination, prune=prune) for chart in charts
    ]
    if schemas or reference:
        stale += _generated(interfaces, schemas, reference, check)
    if check and any(stale):
        sys.exit(1)


def _offering(target: Target, workload: str | None, launchers: str, options: dict[str, Any]) -> Target:
    """Return a target whose chart has the launchers of the command: named ones, or those of the values or presets."""
    from chartgen.composer.programs import for_presets, for_values
    from chartgen.composer.target import with_launchers

    names = [name.strip() for name in launchers.split(",") if name.strip()]
    if names:
        return target if names == ["all"] else with_launchers(target, names)
    values = read_values(dict(options), target.name)
    return (
        for_values(target, values.data, workload, companions=True) if values.layers else for_presets(target, workload)
    )


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


def _generated(interfaces: list[Chart], schemas: Path | None, reference: Path | None, check: bool) -> list[Path]:
    """Write the other generated files for readers and editors, or only return those that are stale."""
    from chartgen.cli import answers
    from chartgen.linter import catalogue

    wanted = []
    if schemas:
        wanted = [
            (schemas, catalogue.published_schemas(interfaces)),
            (schemas / "output", catalogue.marked(answers.answer_schemas())),
        ]
    if reference:
        from chartgen.cli import main
        from chartgen.cli.commands_page import commands_page

        commands = {"commands.md": catalogue.marked_page(commands_page(main))}
        wanted.append((reference, catalogue.reference() | commands))
    stale = [path for folder, files in wanted for path in catalogue.stale(files, folder)]
    gone = [path for folder, files in wanted for path in catalogue.obsolete(files, folder)]
    for folder, files in () if check else wanted:
        catalogue.write(files, folder)
    for path in stale:
        click.echo(f"{path}: {'stale; run `make charts`' if check else 'written'}", err=check)
    for path in gone:
        click.echo(f"{path}: {'obsolete; run `make charts`' if check else 'removed'}", err=check)
    return [*stale, *gone]
