"""`chartgen metrics`: how fast a run is, from its logs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.options import (
    context_option,
    find_chart,
    namespace_option,
    open_place,
    path_option,
    read_values,
    say,
    values_options,
)
from chartgen.errors import ChartgenError, Problem, UsageError

if TYPE_CHECKING:
    from chartgen.cluster import Cluster
    from chartgen.metrics.compare import Comparison
    from chartgen.metrics.log import Log
    from chartgen.metrics.readout import Readout, Wanted
    from chartgen.runs.members import Member

_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)
# Option -> fact that it tells.
_FACTS = {
    "batch": "batch",
    "sequence": "sequenceLength",
    "gpus": "gpus",
    "machines": "machines",
    "precision": "precision",
    "model_flops": "flops",
}
_COUNT = click.IntRange(min=1)


@click.command()
@click.argument("logs", nargs=-1, required=True, metavar="LOG...|RELEASE")
@values_options
@click.option("--target", help="Target of the values: adds what its chart sets, and the GPU of its machines.")
@click.option("--model", help="A model by name, such as llama2-70b, instead of values.")
@click.option("--model-flops", type=click.FloatRange(min=1), help="FLOPs of one sample, forward and backward.")
@click.option("--batch", type=_COUNT, help="Samples of a step, all GPUs together.")
@click.option("--sequence", type=_COUNT, help="Tokens of a sample.")
@click.option("--gpus", type=_COUNT, help="GPUs of the run.")
@click.option("--gpu", help="GPU model, such as h100 or b200-180gb.")
@click.option("--machines", type=_COUNT, help="Machines of the run, for the cost.")
@click.option("--precision", type=click.Choice(["bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4"]), help="Precision.")
@click.option("--window", default="", metavar="FIRST:LAST", help="Steps to look at, both included, or all.")
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
@click.option("--price", type=click.FloatRange(min=0), help="Price of one machine for an hour.")
@click.option("--baseline", help="A log or --output json of an earlier run, or published:MODEL.")
@click.option("--fail-below", type=click.FloatRange(min=0), metavar="PERCENT", help="Exit 1 when slower by more.")
@click.option("--plot", type=_FILE, help="Also draw the run: .png, .svg or .pdf (needs the extra plots).")
@click.option("--theme", type=click.Choice(["light", "dark"]), default="light", show_default=True, help="Of --plot.")
@click.option("--report", type=_FILE, help="Also write a page: one HTML file that needs nothing else.")
@click.option("--prometheus", is_flag=True, help="Print the figures for Prometheus instead.")
@click.option(
    "--output", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True, help="csv: all steps."
)
@namespace_option
@context_option
@path_option
def metrics(logs: tuple[str, ...], output: str, prometheus: bool, **options: Any) -> None:
    """Tell step time, tokens/s, TFLOPS, MFU, goodput and cost of a run from its logs.

    LOG is a file (gzip too), a folder of files, or - for the standard input: logs of NeMo 1 and 2, DLLogger,
    Megatron-LM, Megatron-Bridge, Automodel and MLPerf, and TensorBoard event files; of launcher nccl-test and of
    nccl-tests it tells, and draws, the bus bandwidth. RELEASE is a release of the
    cluster, whose values and logs are read there. The model, the batch and the GPUs come from the release, from values
    (-f), from options, or from the configuration in the log. Where two of these contradict one another, that is said,
    and the exit code is 1. The first steps of each start are left out as warm-up, unless --window says otherwise.

    \b
    Examples:
      chartgen metrics training.log --window all
      chartgen metrics dllogger.json --gpus 256 --gpu h100 --window 10:30
      chartgen metrics training.log --target oke-h100 -f values/llama2-70b.yaml --baseline published:llama2-70b
      kubectl logs my-run-0 | chartgen metrics - --report run.html
    """
    from chartgen.metrics.log import read_logs
    from chartgen.metrics.readout import read_out

    fail_below, baseline = options["fail_below"], options["baseline"]
    if fail_below is not None and not baseline:
        raise UsageError(Problem("--fail-below compares with a baseline", hint="give --baseline too"))
    if _is_bandwidth(logs, output, options):
        return
    log, facts = _open_release(logs[0], options) if _is_release(logs) else (read_logs(logs), [])
    wanted = _wanted(options, facts)
    found = read_out(log, wanted)
    compared = _compare(found, baseline, wanted) if baseline else None
    labels = {"release": logs[0]} if _is_release(logs) else {}
    _print(found, compared, "prometheus" if prometheus else output, labels)
    _draw(found, options)
    for notice in found.notices:
        click.echo(f"{click.style(notice.severity, fg='yellow')}: {notice}", err=True)
    slower = compared is not None and fail_below is not None and compared.change * 100 < -fail_below
    if slower or any(notice.severity == "error" for notice in found.notices):
        sys.exit(1)


def _is_bandwidth(logs: tuple[str, ...], output: str, options: dict[str, Any]) -> bool:
    """Tell what a test of the network measured; any other log is left to the rest."""
    from chartgen.metrics.bandwidth import bandwidth_dict, bandwidth_lines, find_bandwidths, plot_bandwidths

    rows = find_bandwidths(logs)
    if rows and output == "json":
        import json

        click.echo(json.dumps(bandwidth_dict(rows), indent=2))
    else:
        for line in bandwidth_lines(rows):
            click.echo(line)
    if rows and options["plot"]:
        plot_bandwidths(rows, options["plot"])
        say(f"wrote {options['plot']}")
    return bool(rows)


def _is_release(logs: tuple[str, ...]) -> bool:
    """Tell whether a name is meant for a release: one word that is no file and does not look like one."""
    name = logs[0]
    return len(logs) == 1 and name != "-" and not Path(name).exists() and "/" not in name and "." not in name


def _open_release(release: str, options: dict[str, Any]) -> tuple[Log, list[tuple[str, Any]]]:
    """Read the logs of a release's first and last rank, and its values."""
    from chartgen.metrics.jobs import facts_of_release
    from chartgen.metrics.log import read_streams
    from chartgen.records import read_records, restore_chart
    from chartgen.release import check_name
    from chartgen.runs.logs import find_sources
    from chartgen.values import Values

    check_name(release)
    with open_place(options["context"], options["namespace"]) as (cluster, place):
        namespace = place.namespace
        records = read_records(cluster, release, namespace)
        if not records:
            problem = f"there is no file and no release {release} in namespace {namespace}"
            raise ChartgenError(Problem(problem, hint="name a log, or another namespace with -n"))
        facts = facts_of_release(restore_chart(records[-1]), Values(records[-1].values))
        members = [source.member for source in find_sources(cluster, release, namespace)]
        log = read_streams((each.name, _pod_text(cluster, each, namespace)) for each in members)
    return log, [(f"release {release}", facts)]


def _pod_text(cluster: Cluster, member: Member, namespace: str) -> Iterator[bytes]:
    """Give the log of a pod; a pod that cannot be asked does not hide the others."""
    from chartgen.cluster import ClusterError
    from chartgen.runs.podlogs import pod_log

    try:
        for line in pod_log(cluster, member, namespace, timestamps="true"):
            yield f"{line}\n".encode()
    except ClusterError as error:
        say(str(error))


def _wanted(options: dict[str, Any], facts: list[tuple[str, Any]]) -> Wanted:
    from chartgen.metrics.readout import Wanted

    given = {fact: options[name] for name, fact in _FACTS.items() if options[name] is not None}
    if options["gpu"]:
        from chartgen.metrics.peak import find_model as find_gpu

        given["gpu"] = find_gpu(options["gpu"])
    sources = [("the options", given), *facts]
    if options["model"]:
        from chartgen.metrics.published import find_model

        name, model = find_model(options["model"])
        # its sequence length is the published one, which a run may change
        sources.append((name, {key: value for key, value in model.items() if key != "sequenceLength"}))
    if any(options[name] for name in ("files", "set_values", "set_strings", "set_json", "set_files")):
        sources.append(("the values", _values(options)))
    keys = ("window", "attention", "peak", "price")
    return Wanted(**{key: options[key] for key in keys}, facts=sources)


def _values(options: dict[str, Any]) -> Any:
    values = read_values(options)
    if options["target"]:
        from chartgen.metrics.jobs import facts_of_release

        return facts_of_release(find_chart(options["target"], options["path"], values_only=True), values)
    from chartgen.metrics.facts import facts_of_values

    return facts_of_values(values.data)


def _compare(found: Readout, baseline: str, wanted: Wanted) -> Comparison:
    from chartgen.metrics.compare import compare

    return compare(found, baseline, wanted)


def _print(found: Readout, compared: Comparison | None, form: str, labels: dict[str, str]) -> None:
    if form == "prometheus":
        from chartgen.metrics.prometheus import exposition

        click.echo(exposition(found, labels), nl=False)
    elif form == "csv":
        from chartgen.metrics.shapes import csv_lines

        for line in csv_lines(found):
            click.echo(line)
    elif form == "json":
        import json
        from dataclasses import asdict

        from chartgen.metrics.shapes import as_dict

        data = as_dict(found) | {"baseline": asdict(compared) if compared else None}
        click.echo(json.dumps(data, indent=2, allow_nan=False))
    else:
        from chartgen.metrics.text import lines

        for line in lines(found):
            click.echo(line)
        if compared:
            click.echo(f"{'baseline':<11} {compared.sentence}")
            for note in compared.notes:
                click.echo(f"{'':<11} {note}")


def _draw(found: Readout, options: dict[str, Any]) -> None:
    if options["plot"]:
        from chartgen.metrics.plot import plot

        plot(found, options["plot"], options["theme"])
        say(f"wrote {options['plot']}")
    if options["report"]:
        from chartgen.metrics.report import page

        options["report"].write_text(page(found), encoding="utf-8")
        say(f"wrote {options['report']}")


COMMANDS = (metrics,)
