"""`chartgen doctor`: check whether a live cluster meets the requirements of a release."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from chartgen.cli.completion import complete_target
from chartgen.cli.job import FolderCommand, GivenJob
from chartgen.cli.options import (
    GivenPlace,
    job_options,
    new_release_argument,
    output_option,
    place_options,
    workload_option,
)
from chartgen.cli.output import show_answer

if TYPE_CHECKING:
    from chartgen.releases.preflight import Diagnosis

_COLOURS = {"pass": "green", "warn": "yellow", "fail": "red"}


@click.command(cls=FolderCommand)
@click.argument("target", required=False, shell_complete=complete_target)
@new_release_argument
@job_options
@place_options
@workload_option
@output_option
def doctor(job: GivenJob, release: str, where: GivenPlace, output: str) -> None:
    """Check whether a live cluster meets the requirements of a release, and explain how to fix problems.

    Checks versions, permissions, controllers, queue and quota, machines, claims, secrets, networks, privileges, and
    leftovers of earlier releases. Nothing is changed. Without a target, here or in chartgen.yaml, it checks the
    cluster alone.
    `install` and `upgrade` run the same checks first. Exit 1 when a check fails; warnings are only shown.

    \b
    Examples:
      chartgen doctor gke-a3mega my-run --preset gpt3-175b -f site.yaml
      chartgen doctor --context my-cluster
    """
    from chartgen.helm.manifests import objects, render
    from chartgen.releases.preflight import examine, examine_cluster

    with where.open() as (cluster, place):
        if job.target:
            chart, values = job.checked()
            rendered = objects(render(chart, release, place.namespace, values.data))
            found = examine(cluster, chart, values, rendered, release, place.namespace)
        else:
            found = examine_cluster(cluster, place.namespace)
    _show(found, output)
    if any(diagnosis.status == "fail" for diagnosis in found):
        sys.exit(1)


def _show(diagnoses: list[Diagnosis], output: str) -> None:
    if output == "json":
        show_answer("diagnoses/v1", {"diagnoses": diagnoses})
    else:
        show_diagnoses(diagnoses)
    counts = {status: sum(diagnosis.status == status for diagnosis in diagnoses) for status in _COLOURS}
    click.echo(f"{counts['pass']} passed, {counts['warn']} warnings, {counts['fail']} failed", err=True)


def show_diagnoses(diagnoses: list[Diagnosis], *, err: bool = False) -> None:
    """Print diagnoses as a table, each fix below its problem; `err` prints to stderr, apart from a command's result."""
    from chartgen.masking import masked

    width = max((len(diagnosis.name) for diagnosis in diagnoses), default=0)
    for each in diagnoses:
        click.echo(
            f"{click.style(each.status, fg=_COLOURS[each.status])}  {each.name:{width}}  {masked(each.text)}", err=err
        )
        if each.fix:
            click.echo(f"{'':{width + 6}}  fix: {masked(each.fix)}", err=err)
