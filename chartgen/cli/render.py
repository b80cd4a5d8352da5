"""`chartgen render`: print the manifests of a chart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from chartgen.cli.folder import FolderCommand
from chartgen.cli.options import (
    decided,
    find_chart,
    new_release_argument,
    path_option,
    read_values,
    target_argument,
    values_options,
    workload_option,
)
from chartgen.cli.output import emit


@click.command(cls=FolderCommand)
@target_argument
@new_release_argument
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
      chartgen render gke-a3mega my-run --preset gpt3-175b -f site.yaml
    """
    from chartgen.checks import validate
    from chartgen.helm.manifests import render as render_chart
    from chartgen.helm.program_errors import HelmError

    values = read_values(options)
    chart = find_chart(target, path, workload, values=values)
    values = decided(chart, values)
    validate(chart, values)
    try:
        text = render_chart(chart, release, namespace, values.data)
    except HelmError as error:
        from chartgen.linter.sources import in_source

        raise in_source(error, chart) from None
    emit(text, nl=False)
