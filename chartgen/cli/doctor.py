"""`chartgen doctor`: whether a live cluster has what a release needs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.options import (
    complete_target,
    context_option,
    find_chart,
    namespace_option,
    open_place,
    output_option,
    path_option,
    read_values,
    values_options,
    workload_option,
)

if TYPE_CHECKING:
    from chartgen.kube import Cluster
    from chartgen.releases.preflight import Diagnosis

_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red"}


@click.command()
@click.argument("target", required=False, shell_complete=complete_target)
@click.argument("release", default="my-run")
@values_options
@namespace_option
@context_option
@workload_option
@output_option
@path_option
def doctor(target: str | None, namespace: str, context: str | None, output: str, **options: Any) -> None:
    """Look up in a live cluster whether it has what a release needs, and explain how to fix what is missing.

    Versions, permissions, controllers, queue and quota, machines, claims, secrets, networks, privileges, and what
    earlier releases left behind. Nothing is changed. Without a target it says what the cluster has. `install` and
    `upgrade` look at the same first. Exit 1 when anything fails; warnings are only shown.

    \b
    Examples:
      chartgen doctor gke-a3mega my-run -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f site.yaml
      chartgen doctor --context my-cluster
    """
    from chartgen.releases.preflight import examine_cluster

    with open_place(context, namespace) as (cluster, place):
        where = place.namespace
        found = _release(cluster, target, where, **options) if target else examine_cluster(cluster, where)
    _show(found, output)
    if any(each.status == "fail" for each in found):
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
    from chartgen.releases.helm_release import check_name
    from chartgen.releases.preflight import examine

    check_name(release)
    values = read_values(options)
    chart = find_chart(target, path, workload)
    validate(chart, values)
    return examine(cluster, chart, values, objects(render(chart, release, namespace, values.data)), release, namespace)


def _show(found: list[Diagnosis], output: str) -> None:
    from chartgen.masking import masked_value

    if output == "json":
        click.echo(json.dumps([masked_value(asdict(each)) for each in found], indent=2))
    else:
        show_diagnoses(found)
    counts = {status: sum(each.status == status for each in found) for status in _COLOURS}
    click.echo(f"{counts['pass']} passed, {counts['warn']} warnings, {counts['fail']} failed", err=True)


def show_diagnoses(found: list[Diagnosis], *, err: bool = False) -> None:
    """Print diagnoses as a table, each fix below what it cures.

    Args:
        found: The diagnoses.
        err: Print them apart from a command's result.
    """
    from chartgen.masking import masked

    width = max((len(each.name) for each in found), default=0)
    for each in found:
        click.echo(
            f"{click.style(each.status, fg=_COLOURS[each.status])}  {each.name:{width}}  {masked(each.text)}", err=err
        )
        if each.fix:
            click.echo(f"{'':{width + 6}}  fix: {masked(each.fix)}", err=err)


COMMANDS = (doctor,)
