"""`chartgen doctor`: check whether a live cluster meets the requirements of a release."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.completion import complete_target
from chartgen.cli.options import (
    decided,
    find_chart,
    new_release_argument,
    open_place,
    output_option,
    path_option,
    place_options,
    read_values,
    values_options,
    workload_option,
)
from chartgen.cli.output import show_answer

if TYPE_CHECKING:
    from chartgen.kube import Cluster
    from chartgen.releases.preflight import Diagnosis

_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red"}


@click.command()
@click.argument("target", required=False, shell_complete=complete_target)
@new_release_argument
@values_options
@place_options
@workload_option
@output_option
@path_option
def doctor(target: str | None, namespace: str, context: str | None, output: str, **options: Any) -> None:
    """Check whether a live cluster meets the requirements of a release, and explain how to fix problems.

    Checks versions, permissions, controllers, queue and quota, machines, claims, secrets, networks, privileges, and
    leftovers of earlier releases. Nothing is changed. Without a target it checks the cluster alone.
    `install` and `upgrade` run the same checks first. Exit 1 when a check fails; warnings are only shown.

    \b
    Examples:
      chartgen doctor gke-a3mega my-run --preset gpt3-175b -f site.yaml
      chartgen doctor --context my-cluster
    """
    from chartgen.releases.preflight import examine_cluster

    with open_place(context, namespace) as (cluster, place):
        where = place.namespace
        found = _release(cluster, target, where, **options) if target else examine_cluster(cluster, where)
    _show(found, output)
    if any(diagnosis.status == "fail" for diagnosis in found):
        sys.exit(1)


def _release(
    cluster: Cluster,
    target: str,
    namespace: str,
    release: str,
    workload: str | None,
    path: tuple[Path, ...],
    **options: Any,
) -> list[Diagnosis]:
    from chartgen.checks import validate
    from chartgen.helm.manifests import objects, render
    from chartgen.releases.preflight import examine

    values = read_values(options)
    chart = find_chart(target, path, workload, values=values)
    values = decided(chart, values)
    validate(chart, values)
    return examine(cluster, chart, values, objects(render(chart, release, namespace, values.data)), release, namespace)


def _show(diagnoses: list[Diagnosis], output: str) -> None:
    if output == "json":
        show_answer("diagnoses/v1", {"diagnoses": diagnoses})
    else:
        show_diagnoses(diagnoses)
    counts = {status: sum(diagnosis.status == status for diagnosis in diagnoses) for status in _COLOURS}
    click.echo(f"{counts['pass']} passed, {counts['warn']} warnings, {counts['fail']} failed", err=True)


def show_diagnoses(diagnoses: list[Diagnosis], *, err: bool = False) -> None:
    """Print diagnoses as a table, each fix below its problem.

    Args:
        err: Print to stderr, apart from a command's result.
    """
    from chartgen.masking import masked

    width = max((len(diagnosis.name) for diagnosis in diagnoses), default=0)
    for each in diagnoses:
        click.echo(
            f"{click.style(each.status, fg=_COLOURS[each.status])}  {each.name:{width}}  {masked(each.text)}", err=err
        )
        if each.fix:
            click.echo(f"{'':{width + 6}}  fix: {masked(each.fix)}", err=err)
