"""`chartgen render`, `lint`, `install`, `upgrade`, `uninstall` and `status`: charts as releases."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.options import (
    F,
    context_option,
    find_chart,
    namespace_option,
    output_option,
    path_option,
    read_values,
    target_argument,
    values_options,
    workload_option,
)

if TYPE_CHECKING:
    from chartgen.plan import Plan
    from chartgen.release import Place, Release


@click.command()
@target_argument
@click.argument("release", default="my-run")
@values_options
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace that the templates see.")
@workload_option
@path_option
def render(
    target: str, release: str, namespace: str, workload: str | None, path: tuple[Path, ...], **options: Any
) -> None:
    """Print the manifests of a target or chart folder, as `helm template` renders them.

    \b
    Example:
      chartgen render gke-a3mega my-run -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f site.yaml
    """
    from chartgen.checks import validate
    from chartgen.manifests import render as render_chart
    from chartgen.release import check_name

    check_name(release)
    values = read_values(options)
    chart = find_chart(target, path, workload)
    validate(chart, values)
    click.echo(render_chart(chart, release, namespace, values.data), nl=False)


@click.command()
@target_argument
@values_options
@click.option(
    "--presets",
    type=click.Path(path_type=Path),
    default="values",
    show_default=True,
    help="Folder of presets, overlays (in a folder named like the target) and site.TARGET.example.yaml.",
)
@workload_option
@output_option
@path_option
def lint(target: str, presets: Path, workload: str | None, output: str, path: tuple[Path, ...], **options: Any) -> None:
    """Check a target's chart or a chart folder: helm lint --strict, helm template and the structure of what it renders.

    It is checked with no values, with every preset of the target, and with the values given. Exit 1 when anything is
    found.

    \b
    Examples:
      chartgen lint gke-a3mega
      chartgen lint charts/gke-a3mega -f site.yaml
    """
    from chartgen.linter import find_presets
    from chartgen.linter import lint as lint_chart

    files = list(options["files"])
    values = read_values(options)
    chart = find_chart(target, path, workload)
    layers: dict[str, Any] = dict(find_presets(chart.name, presets))
    if values.layers:
        layers[" + ".join(str(file) for file in files) or "the given values"] = values
    findings = lint_chart(chart, layers)
    if output == "json":
        rows = [{"rule": found.rule, "severity": found.severity, **_problem(found.problem)} for found in findings]
        click.echo(json.dumps(rows, indent=2))
    else:
        for found in findings:
            click.echo(str(found))
        checked = ", ".join(["no values", *layers])
        click.echo(f"{chart.name}: {len(findings) or 'no'} findings with {checked}", err=True)
    if any(found.severity == "error" for found in findings):
        sys.exit(1)


def _chart_options(command: F) -> F:
    """Add what `install` and `upgrade` take alike."""
    place = (namespace_option, context_option)
    options = (target_argument, click.argument("release"), values_options, *place, workload_option, output_option)
    for option in reversed((*options, path_option)):
        command = option(command)
    return command


@click.command()
@_chart_options
def install(**options: Any) -> None:
    """Install a target's chart, or a chart folder, as a new release.

    The values are checked first; the plan is shown; Helm is never asked to wait for a training run.

    \b
    Example:
      chartgen install gke-a3mega my-run -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f site.yaml
    """
    from chartgen.release import install as act

    _act(act, options)


@click.command()
@_chart_options
def upgrade(**options: Any) -> None:
    """Upgrade a release to these values; values of earlier revisions are not carried over.

    Unchanged values change nothing; changed ones replace the run, which resumes from the release's checkpoints.

    \b
    Example:
      chartgen upgrade gke-a3mega my-run -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f site.yaml
    """
    from chartgen.release import upgrade as act

    _act(act, options)


@click.command()
@click.argument("release")
@namespace_option
@context_option
@output_option
def uninstall(release: str, namespace: str, context: str | None, output: str) -> None:
    """Uninstall a release: its run stops, its data stays.

    \b
    Example:
      chartgen uninstall my-run
    """
    from chartgen.release import uninstall as act

    _show(act(release, _place(namespace, context)), output, done="uninstalled")


@click.command()
@click.argument("release")
@namespace_option
@context_option
@output_option
def status(release: str, namespace: str, context: str | None, output: str) -> None:
    """Show what Helm has recorded of a release.

    \b
    Example:
      chartgen status my-run
    """
    from chartgen.release import status as act

    _show(act(release, _place(namespace, context)), output)


def show_plan(plan: Plan) -> None:
    """Print a plan, apart from the command's result."""
    from chartgen.plan import describe

    click.echo("Plan", err=True)
    for label, text in describe(plan):
        click.echo(f"  {label:<11} {text}", err=True)


def _act(act: Callable[..., Release], options: dict[str, Any]) -> None:
    from chartgen.checks import check, validate
    from chartgen.plan import plan_release
    from chartgen.release import check_name

    release = options["release"]
    check_name(release)
    values = read_values(options)
    chart = find_chart(options["target"], options["path"], options["workload"])
    place = _place(options["namespace"], options["context"])
    if chart.name.endswith("-setup"):
        validate(chart, values)
    else:
        for found in check(chart, values):
            if found.severity == "warning":
                click.echo(f"{click.style('warning', fg='yellow')}: {found}", err=True)
        show_plan(plan_release(chart, values, release, place.namespace))
    _show(act(chart, release, values.data, place), options["output"])


def _place(namespace: str, context: str | None) -> Place:
    from chartgen.release import Place

    return Place(namespace, context=context) if namespace else Place(context=context)


def _show(release: Release, output: str, done: str = "") -> None:
    facts = asdict(release)
    facts["updated"] = release.updated.isoformat()
    if output == "json":
        click.echo(json.dumps(facts, indent=2))
        return
    where = f"revision {release.revision} of {release.chart} in {release.namespace}"
    click.echo(f"{release.name}: {done or release.status}, {where}")


def _problem(problem: Any) -> dict[str, Any]:
    names = ("path", "line", "column", "message", "hint")
    return {name: str(value) if isinstance(value := getattr(problem, name), Path) else value for name in names}


COMMANDS = (render, lint, install, upgrade, uninstall, status)
