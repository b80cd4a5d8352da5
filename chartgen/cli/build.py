"""`chartgen build`, `list` and `show`: from targets and fragments to charts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chartgen.cli.options import (
    complete_target,
    library,
    output_option,
    path_option,
    show_table,
    target_argument,
    workload_option,
)
from chartgen.errors import UsageError

if TYPE_CHECKING:
    from chartgen.helm.chart import Chart


@click.command()
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=complete_target)
@click.option("--all", "every", is_flag=True, help="Build every target.")
@click.option("--prune", is_flag=True, help="Remove templates in a chart's folder that the chart does not have.")
@click.option("--check", is_flag=True, help="Write nothing; exit 1 with a diff when a chart is stale.")
@workload_option
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
    destination: Path,
    schemas: Path | None,
    reference: Path | None,
    path: tuple[Path, ...],
) -> None:
    """Compose charts and write them below the destination.

    Each target gives its run chart and, where it has anything to set up once, a setup chart.

    \b
    Examples:
      chartgen build gke-a3mega
      chartgen build gke-a3mega --workload job
      chartgen build --all --check
    """
    from chartgen.composer.assembly import compose, compose_setup
    from chartgen.composer.target import load_target

    found = library(path)
    if every == bool(targets):
        raise UsageError("name the targets to build, or use --all; `chartgen list targets` shows them")
    if schemas and not every:
        raise UsageError("--schemas publishes the schemas of all charts; use it with --all")
    charts: list[Chart] = []
    for name in found.names("target") if every else targets:
        target = load_target(name, found)
        charts.append(compose(target, workload))
        setup = compose_setup(target)
        if setup and not workload:
            charts.append(setup)
    stale: list[object] = [
        _check(chart, destination) if check else _write(chart, destination, prune=prune) for chart in charts
    ]
    if schemas or reference:
        stale += _generated(charts, schemas, reference, check)
    if check and any(stale):
        sys.exit(1)


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


def _generated(charts: list[Chart], schemas: Path | None, reference: Path | None, check: bool) -> list[Path]:
    """Write what readers and editors need besides the charts, or only say which files of it are stale."""
    from chartgen.linter import catalogue

    wanted = [(schemas, catalogue.schemas(charts))] if schemas else []
    wanted += [(reference, catalogue.reference())] if reference else []
    stale = [path for folder, files in wanted for path in catalogue.stale(files, folder)]
    gone = [path for folder, files in wanted for path in catalogue.obsolete(files, folder)]
    for folder, files in () if check else wanted:
        catalogue.write(files, folder)
    for path in stale:
        click.echo(f"{path}: {'stale; run `make charts`' if check else 'written'}", err=check)
    for path in gone:
        click.echo(f"{path}: {'obsolete; run `make charts`' if check else 'removed'}", err=check)
    return [*stale, *gone]


@click.command("list")
@click.argument("kind", type=click.Choice(["targets", "fragments", "launchers", "workloads"]))
@output_option
@path_option
def list_command(kind: str, output: str, path: tuple[Path, ...]) -> None:
    """List what charts are composed from.

    \b
    Example:
      chartgen list targets
    """
    from chartgen.helm.yaml import load_file, require_map

    found = library(path)
    singular = kind.removesuffix("s")
    rows = []
    for name in found.names(singular):
        file = found.find(singular, name)
        document = load_file(file if singular == "target" else file / f"{singular}.yaml")
        rows.append({"name": name, "description": str(require_map(document, kind).get("description", ""))})
    if output == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    show_table([(row["name"], row["description"]) for row in rows])


@click.command()
@target_argument
@output_option
@path_option
def show(target: str, output: str, path: tuple[Path, ...]) -> None:
    """Show which fragment fills which slot of a target's pods.

    \b
    Example:
      chartgen show gke-a3mega
    """
    from chartgen.composer.target import load_target

    found = load_target(target, library(path))
    slots: dict[str, list[str]] = {}
    for fragment in found.fragments:
        templates = [
            *(f"manifests/{name}" for name in fragment.manifests),
            *(f"setup/{name}" for name in fragment.setup),
        ]
        for slot in (*fragment.slots, *templates):
            slots.setdefault(slot, []).append(fragment.name)
    if output == "json":
        facts = {
            "target": target,
            "workload": found.workload,
            "machines": {one.name: {"gpus": one.gpus, "gpu": one.gpu} for one in found.machines.values()},
            "launchers": [launcher.name for launcher in found.launchers],
            "slots": slots,
        }
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(f"{target}: {found.description}\n")
    machines = [("machine", f"{machine.name}: {machine.gpus} x {machine.gpu}") for machine in found.machines.values()]
    launchers = ", ".join(launcher.name for launcher in found.launchers)
    show_table([*machines, ("workload", found.workload), ("launchers", launchers)])
    click.echo()
    show_table([(slot, ", ".join(fragments)) for slot, fragments in sorted(slots.items())])


COMMANDS = (build, list_command, show)
