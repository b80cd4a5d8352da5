"""`chartgen metrics`: report the speed of a run from its logs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.completion import complete_gpu, complete_model, complete_release_or_file, complete_target
from chartgen.cli.job import GivenJob
from chartgen.cli.options import FiniteRange, GivenPlace, job_options, named_release, place_options
from chartgen.cli.output import emit, note, remark, show_answer
from chartgen.errors import ChartgenError, Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chartgen.checks.job import Job
    from chartgen.checks.line_patterns import LinePatterns
    from chartgen.metrics.read.log import Log
    from chartgen.metrics.report_data import RunFigures, Wanted
    from chartgen.metrics.show.compare import ComparedRun

_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)
# Option -> fact that it sets.
_FACTS = {
    **{name: name for name in ("batch", "gpus", "machines", "precision")},
    "sequence": "sequenceLength",
    "model_flops": "flops",
}
_COUNT = click.IntRange(min=1)


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG...|RELEASE", shell_complete=complete_release_or_file)
@job_options
@click.option(
    "--target",
    shell_complete=complete_target,
    help="Target of the values: adds what its chart sets, and the GPU of its machines.",
)
@click.option("--model", shell_complete=complete_model, help="A model by name, such as llama2-70b, instead of values.")
@click.option("--model-flops", type=FiniteRange(min=1), help="FLOPs of one sample, forward and backward.")
@click.option("--batch", type=_COUNT, help="Samples of a step, all GPUs together.")
@click.option("--sequence", type=_COUNT, help="Tokens of a sample.")
@click.option("--gpus", type=_COUNT, help="GPUs of the run.")
@click.option("--gpu", shell_complete=complete_gpu, help="GPU model, such as h100 or b200-180gb.")
@click.option("--machines", type=_COUNT, help="Machines of the run, for the cost.")
@click.option("--precision", type=click.Choice(["bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4"]), help="Precision.")
@click.option("--window", default="", metavar="FIRST:LAST", help="Steps to evaluate, both included, or all.")
@click.option("--run", type=_COUNT, metavar="N", help="Of several runs in a log the Nth; default: the last.")
@click.option(
    "--attention",
    type=click.Choice(["full", "causal"]),
    default="full",
    show_default=True,
    help="Convention of the MFU.",
)
@click.option(
    "--peak", default="", help="What the MFU is a share of: bf16, fp8, fp4 or TFLOPS; default: the precision."
)
@click.option("--price", type=FiniteRange(min=0), help="Price of one machine for an hour.")
@click.option("--gpu-price", type=FiniteRange(min=0), help="Price of one GPU for an hour, instead.")
@click.option("--currency", default="", metavar="NAME", help="Currency of the price, such as EUR.")
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    help="A log or --output json of an earlier run, run:N of this log, or published:MODEL; repeatable.",
)
@click.option("--fail-below", type=FiniteRange(min=0), metavar="PERCENT", help="Exit 1 when slower by more.")
@click.option("--plot", type=_FILE, help="Also draw the run: .svg.")
@click.option("--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True, help="Of --plot.")
@click.option("--report", type=_FILE, help="Also write a page: one HTML file that needs nothing else.")
@click.option("--prometheus", is_flag=True, help="Print the figures for Prometheus instead.")
@click.option(
    "--output", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True, help="csv: all steps."
)
@place_options
def metrics(
    job: GivenJob, logs: tuple[str, ...], where: GivenPlace, output: str, prometheus: bool, **options: Any
) -> None:
    """Report step time, tokens/s, TFLOPS, MFU, goodput and cost of a run from its logs.

    LOG is a file (gzip too), a folder or an archive of files (.tgz, .tar, .zip), or - for the standard input: logs of
    NeMo 1 and 2, DLLogger, Megatron-LM and its forks, Megatron-Bridge, Automodel, torchtitan, NeMo RL and MLPerf, and
    TensorBoard event files. For launcher nccl-test and for nccl-tests it reports, and draws, the bus bandwidth.
    RELEASE is a release of the cluster; its values and logs are read from there. The model, the batch and the GPUs
    come from the release, from values (-f), from options, or from the configuration in the log. Contradictions between
    these are reported, with exit code 1. The first steps of each start are left out as warm-up, unless --window
    includes them.

    \b
    Examples:
      chartgen metrics training.log --window all
      chartgen metrics dllogger.json --gpus 256 --gpu h100 --window 10:30
      chartgen metrics training.log --target oke-h100 --preset llama2-70b --baseline published:llama2-70b
      kubectl logs my-run-0 | chartgen metrics - --report run.html
    """
    from chartgen.metrics.read.log import read_logs
    from chartgen.metrics.read.pauses import name_causes, text_logs
    from chartgen.metrics.report_data import read_out

    fail_below, baselines = options["fail_below"], options["baselines"]
    if fail_below is not None and not baselines:
        raise UsageError(Problem("--fail-below compares with a baseline", hint="give --baseline too"))
    release = named_release(logs)
    if release:
        log, facts, planned = _open_release(release, where)
    else:
        log, facts, planned = read_logs(logs, _patterns(job)), [], None
        name_causes(log, text_logs(logs), _explain)
    if not len(log.track):
        _show_bandwidths(log, "prometheus" if prometheus else output, options)
        return
    wanted = _wanted(options, facts, job, planned)
    figures = read_out(log, wanted)
    others = _compare(figures, baselines, wanted, log)
    compared = others[0].comparison if others else None
    if output == "text" and not prometheus and options["run"] is None:
        _show_runs(log, wanted)
    labels = {"release": release} if release else {}
    _print(figures, others, "prometheus" if prometheus else output, labels)
    _draw(figures, release or Path(figures.log.places[0]).name, options, others)
    for notice in figures.notices:
        remark(notice.severity, notice)
    if compared and compared.other and fail_below is not None:
        problem = f"--fail-below does not judge runs that differ: {'; '.join(compared.notes)}"
        raise ChartgenError(
            Problem(problem, baselines[0], hint="name a baseline with the same batch, machines and precision")
        )
    slower = compared is not None and fail_below is not None and compared.change * 100 < -fail_below
    if slower or any(notice.severity == "error" for notice in figures.notices):
        sys.exit(1)


def _explain(lines: Mapping[str, Sequence[str]]) -> tuple[str, float | None]:
    from chartgen.releases.why.explanation import explain_lines  # most logs have no restart

    return explain_lines(lines)


def _show_bandwidths(log: Log, form: str, options: dict[str, Any]) -> None:
    """Report the bandwidths that a network test measured."""
    rows = log.bandwidths
    from chartgen.metrics.show.bandwidth import bandwidth_lines, best, plot_bandwidths

    refused = [f"--{name.removesuffix('s')}" for name in ("report", "baselines", "run") if options[name]]
    refused += [f"--{form}" if form == "prometheus" else f"--output {form}"] if form not in ("text", "json") else []
    if refused:
        problem = f"a test of the network has no {', '.join(refused)}"
        raise UsageError(Problem(problem, hint="--output json has all rows, --plot draws them"))
    if form == "json":
        show_answer("bandwidths/v1", {"best": best(rows), "rows": rows})
    else:
        for line in bandwidth_lines(rows):
            click.echo(line)
    if options["plot"]:
        plot_bandwidths(rows, options["plot"], f"Test of the network, {Path(log.places[0]).name}", options["theme"])
        note(f"wrote {options['plot']}")


def _open_release(release: str, where: GivenPlace) -> tuple[Log, list[tuple[str, Any]], Job | None]:
    from chartgen.releases.status.training_log import read_release

    with where.open_for(release) as (cluster, place):
        log, facts, planned = read_release(cluster, release, place.namespace, progress=note)
    return log, [(f"release {release}", facts)], planned


def _wanted(options: dict[str, Any], facts: list[tuple[str, Any]], job: GivenJob, planned: Job | None) -> Wanted:
    from chartgen.metrics.report_data import Wanted

    given = {fact: options[name] for name, fact in _FACTS.items() if options[name] is not None}
    if options["gpu"]:
        from chartgen.metrics.figures.peak import gpu_name as find_gpu

        given["gpu"] = find_gpu(options["gpu"])
    sources = [("the options", given), *facts]
    if options["model"]:
        from chartgen.checks.published import find_model

        name, model = find_model(options["model"])
        # the sequence length is the published one, which a run may change
        sources.append((name, {key: value for key, value in model.items() if key != "sequenceLength"}))
    if any(job.options.values()):
        known, own = _facts_of(job)
        sources.append(("the values", known))
        planned = planned or own
    keys = ("window", "attention", "peak", "price", "run", "gpu_price", "currency")
    return Wanted(**{key: options[key] for key in keys}, facts=sources, job=planned)


def _facts_of(job: GivenJob) -> tuple[Mapping[str, Any], Job | None]:
    if job.target:
        from chartgen.metrics.figures.jobs import facts_of_release

        return facts_of_release(job.interface(), job.values)
    from chartgen.metrics.figures.facts import facts_of_values

    return facts_of_values(job.values.data), None


def _patterns(job: GivenJob) -> LinePatterns | None:
    """Return the expressions for lines of a program that only the values describe."""
    if not any(job.options.values()):  # without an option of values, nothing is loaded that reads them
        return None
    from chartgen.metrics.read.readers.own import patterns_of

    return patterns_of(job.values.data)


def _compare(figures: RunFigures, baselines: tuple[str, ...], wanted: Wanted, log: Log) -> list[ComparedRun]:
    if not baselines:
        return []
    from chartgen.metrics.show.compare import compare_runs

    return [compare_runs(figures, name, wanted, log) for name in baselines]


def _show_runs(log: Log, wanted: Wanted) -> None:
    """Print a table of the runs in a log with several."""
    from chartgen.metrics.choose_run import count_runs
    from chartgen.metrics.report_data import read_out
    from chartgen.metrics.show.text import run_table

    if (count := count_runs(log)) > 1:
        for line in run_table([read_out(log, wanted._replace(run=number)) for number in range(1, count + 1)]):
            click.echo(line)
        click.echo()


def _print(figures: RunFigures, compared: list[ComparedRun], form: str, labels: dict[str, str]) -> None:
    if form == "prometheus":
        from chartgen.metrics.show.export import exposition

        emit(exposition(figures, labels), nl=False)
    elif form == "csv":
        from chartgen.metrics.show.export import csv_lines

        for line in csv_lines(figures):
            emit(line)
    elif form == "json":
        from chartgen.metrics.show.export import NAME, as_dict

        show_answer(NAME, {**as_dict(figures), "baseline": compared[0].comparison if compared else None})
    else:
        from chartgen.metrics.show.text import lines

        for line in lines(figures, drawn=sys.stdout.isatty()):
            click.echo(line)
        if figures.log.bandwidths:
            from chartgen.metrics.show.bandwidth import bandwidth_lines

            for line in bandwidth_lines(figures.log.bandwidths):
                click.echo(f"{'network':<11} {line}")
        for each in compared:
            click.echo(f"{'baseline':<11} {each.comparison.sentence}")
            for line in each.comparison.notes:
                click.echo(f"{'':<11} {line}")


def _draw(figures: RunFigures, run: str, options: dict[str, Any], compared: list[ComparedRun]) -> None:
    if options["plot"]:
        from chartgen.metrics.show.svg import plot

        plot(figures, options["plot"], options["theme"], compared)
        note(f"wrote {options['plot']}")
    if options["report"]:
        from datetime import datetime, timezone

        from chartgen.files import write_whole
        from chartgen.metrics.show.html import html_report

        written = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
        write_whole(options["report"], html_report(figures, run=run, written=written, compared=compared))
        note(f"wrote {options['report']}")
