"""`chartgen check` and `fit`: whether a job can run, and how it could, before machines are held."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.options import (
    find_chart,
    library,
    path_option,
    read_values,
    target_argument,
    values_options,
    workload_option,
)
from chartgen.cli.output import emit

if TYPE_CHECKING:
    from chartgen.checks.job import Job
    from chartgen.checks.layouts import Layout

_FORMS = ("text", "json", "sarif", "junit", "github")


@click.command()
@target_argument
@values_options
@workload_option
@click.option("--output", type=click.Choice(_FORMS), default="text", show_default=True, help="Form of the findings.")
@click.option("--render", is_flag=True, help="Also let Helm render the chart, and tell what its own rules refuse.")
@click.option("--explain", is_flag=True, help="Also show the estimated memory of a GPU, on the standard error.")
@path_option
def check(
    target: str,
    workload: str | None,
    output: str,
    explain: bool,
    render: bool,
    path: tuple[Path, ...],
    **options: Any,
) -> None:
    """Report whether a job can run at all: everything that is known without a cluster, all findings at once.

    The rules of the chart's own fragments need Helm: `--render` tells what they refuse, once nothing else is wrong.
    `lint`, `install`, `upgrade` and `rehearse` always go through both.

    TARGET is a target or a chart folder. Exit 1 when there is an error; warnings are only shown. Exit 3 when the job
    could not be checked, as that of a chart whose target no folder of --path holds.

    \b
    Examples:
      chartgen check gke-a3mega -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f site.yaml
      chartgen check oke-h100 -f values/llama2-70b.yaml --set nodes=3 --output sarif
    """
    from chartgen.checks import SCHEMA, job_of
    from chartgen.checks import check as find
    from chartgen.findings import exit_code
    from chartgen.linter.reports import report

    values = read_values(options)
    chart = find_chart(target, path, workload, values_only=not render)
    findings = find(chart, values)
    if render and all(found.severity != "error" for found in findings):
        from chartgen.checks.chart_refusals import refusals

        findings += refusals(chart, values)
    show = click.echo if output == "text" else emit
    show(report(findings, output, checked=target), nl=False)
    if explain and all(found.rule != SCHEMA for found in findings):
        _explain(job_of(chart, values))
    sys.exit(exit_code(findings))


def _explain(job: Job | None) -> None:
    from chartgen.checks.memory import unestimated
    from chartgen.checks.memory_fit import load_of

    load = load_of(job) if job else None
    if load is None:
        what = unestimated(job) if job else ""
        click.echo(f"memory      not estimated: {f'no formula covers {what}' if what else 'no such job'}", err=True)
        return
    rows = {"state": load.memory.state, "activations": load.memory.activations, "logits": load.memory.logits}
    click.echo(f"parameters  {load.memory.parameters / 1e9:.2f} billion on the fullest GPU", err=True)
    for name, size in rows.items():
        click.echo(f"{name:<11} {size / 1e9:6.1f} GB", err=True)
    total = f"{load.memory.total / 1e9:6.1f} GB of {load.capacity / 1e9:.0f}, {load.share:.0%}"
    click.echo(f"{'memory':<11} {total}", err=True)


@click.command()
@target_argument
@values_options
@click.option("--gpus", type=click.IntRange(min=1), help="GPUs of the run; default: the values' own.")
@click.option("--most", type=click.IntRange(min=1), default=10, show_default=True, help="Layouts to show.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form.")
@path_option
def fit(target: str, gpus: int | None, most: int, output: str, path: tuple[Path, ...], **options: Any) -> None:
    """List the parallel layouts of a model that pass every check and fit into memory, best guess first.

    The values' own layout is marked, and shown also behind the --most first; the global batch, precision and
    recomputation stay as they are. Exit 1 when nothing fits.

    \b
    Example:
      chartgen fit oke-h100 -f values/llama3-70b.yaml --gpus 64
    """
    from chartgen.checks.layouts import fit as search
    from chartgen.composer.target import load_target

    found = search(load_target(target, library(path)), read_values(options), gpus)
    shown = [(place, each) for place, each in enumerate(found, 1) if place <= most or each.own]
    if output == "json":
        click.echo(json.dumps([_row(*each) for each in shown], indent=2))
    else:
        _show_layouts(shown, len(found))
    if not found:
        sys.exit(1)
    if not any(each.own for each in found):
        click.echo("the values' own layout does not pass or fit: `chartgen check` reports why", err=True)


def _row(place: int, layout: Layout) -> dict[str, Any]:
    """Return a layout's values, and what the table shows beside them."""
    told = {"dataParallel": layout.data_parallel, "microBatches": layout.micro_batches}
    memory = {"memoryGigabytes": round(layout.memory.total / 1e9, 1), "memoryShare": round(layout.share, 3)}
    return {"place": place, **layout.values, **told, **memory, "own": layout.own}


def _show_layouts(shown: list[tuple[int, Layout]], count: int) -> None:
    if not shown:
        click.echo("no layout fits: try more GPUs, recompute=full, or a global batch that divides them", err=True)
        return
    click.echo("place  tensor  pipeline  virtual  context  data  micro  micro-batches  memory")
    for place, each in shown:
        sizes = f"{place:<6} {each.tensor:<7} {each.pipeline:<9} {each.virtual_pipeline:<8} {each.context:<8}"
        batch = f"{each.data_parallel:<5} {each.micro_batch:<6} {each.micro_batches:<14}"
        mark = ", own" if each.own else ""
        click.echo(f"{sizes} {batch} {each.memory.total / 1e9:.0f} GB, {each.share:.0%}{mark}")
    if count > len(shown):
        click.echo(f"{count - len(shown)} more; --most {count} shows them", err=True)


COMMANDS = (check, fit)
