"""`chartgen fit`: list the parallel layouts with which a job can run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.job import FolderCommand, GivenJob
from chartgen.cli.options import job_options, target_argument
from chartgen.cli.output import emit, show_answer

if TYPE_CHECKING:
    from chartgen.checks.layouts import Layout


@click.command(cls=FolderCommand)
@target_argument
@job_options
@click.option("--gpus", type=click.IntRange(min=1), help="GPUs of the run; default: the values' own.")
@click.option("--most", type=click.IntRange(min=1), default=10, show_default=True, help="Layouts to show.")
@click.option(
    "--output",
    type=click.Choice(["text", "json", "values"]),
    default="text",
    show_default=True,
    help="Form; values: the first layout as a values file.",
)
def fit(job: GivenJob, gpus: int | None, most: int, output: str) -> None:
    """List the parallel layouts of a model that pass every check and fit into memory, fastest first.

    Of layouts that are about as fast, those with smaller micro-batches and fewer pieces of the model come first. The
    first one without FSDP is what `parallelism: auto`, `batch.micro: auto` and `recompute: auto` become. Plain Helm
    needs it as a file: `chartgen plan`, or --output values.

    The layout of the values is marked, and shown even if it is not among the first --most; the global batch and the
    precision stay unchanged. Then the nearest published run of the model and GPU. Exit 1 when no layout fits.

    \b
    Examples:
      chartgen fit oke-h100 --preset llama3-70b --gpus 64
      chartgen fit gke-a4 --preset llama3-70b --set nodes=4 --output values
    """
    from chartgen.checks.automatic import fitting_layouts
    from chartgen.checks.memory_fit import nested_values
    from chartgen.checks.published import published_layout
    from chartgen.checks.speed import run_of_job
    from chartgen.composer.target import load_target
    from chartgen.helm.yaml import values_text

    found = fitting_layouts(load_target(job.target, job.library), job.values, gpus)
    shown = [(place, layout) for place, layout in enumerate(found, 1) if place <= most or layout.own]
    published = published_layout(run_of_job(found[0].job)) if found else None
    if output == "json":
        rows = {"layouts": [_row(*each) for each in shown], "found": len(found)}
        show_answer("layouts/v1", {**rows, "published": published})
    elif output == "values" and found and found[0].fits:
        emit(values_text(nested_values(found[0].values, {})), nl=False)
        return
    else:
        _show_layouts(shown, len(found))
        if published:
            click.echo(f"published: {published}", err=True)
    if not any(layout.fits for layout in found):
        sys.exit(1)
    if not any(layout.own for layout in found):
        click.echo("the values' own layout does not pass or fit: `chartgen check` reports why", err=True)


def _row(place: int, layout: Layout) -> dict[str, Any]:
    """Return the table row of a layout: its values and further columns."""
    counts = {"dataParallel": layout.job.data_parallel, "microBatches": layout.job.micro_batches}
    memory = {"memoryGigabytes": round(layout.memory / 1e9, 1), "memoryShare": round(layout.share, 3)}
    values = {key: value for key, value in layout.values.items() if key.startswith(("parallelism.", "batch."))}
    values |= {"parallelism.expertTensor": layout.job.parallel("expertTensor"), "sharded": layout.sharded}
    values["recompute"] = layout.job.recompute.granularity
    return {"place": place, **values, **counts, **memory, "stepSeconds": layout.step_seconds, "own": layout.own}


_COLUMNS = ("tensor", "pipeline", "virtual", "context", "expert", "data", "micro", "micro-batches")


def _show_layouts(shown: list[tuple[int, Layout]], count: int) -> None:
    if not shown:
        click.echo("no layout fits: try more GPUs, or a global batch that divides them", err=True)
        return
    click.echo(f"place  {'  '.join(_COLUMNS)}  memory")
    for place, layout in shown:
        job = layout.job
        sizes = [job.parallel(name) for name in ("tensor", "pipeline", "virtualPipeline", "context", "expert")]
        row = zip(_COLUMNS, (*sizes, job.data_parallel, job.micro_batch, job.micro_batches), strict=True)
        cells = "".join(f"{size:<{len(name) + 2}}" for name, size in row)
        again = ", recompute full" if job.recompute.granularity == "full" else ""
        again += ", FSDP" if layout.sharded else ""
        step = f", {layout.step_seconds:.3g} s a step" if layout.step_seconds else ""
        mark = ", own" if layout.own else ""
        click.echo(f"{place:<6} {cells}{layout.memory / 1e9:.0f} GB, {layout.share:.0%}{again}{step}{mark}")
    if count > len(shown):
        click.echo(f"{count - len(shown)} more; --most {count} shows them", err=True)
