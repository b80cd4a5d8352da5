"""`chartgen check`: check whether a job can run, before it occupies machines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from chartgen.cli.job import FolderCommand, GivenJob, notes_of
from chartgen.cli.options import job_options, target_argument, workload_option
from chartgen.cli.output import emit, known_rules, note, show_plan

if TYPE_CHECKING:
    from chartgen.helm.chart import Chart
    from chartgen.helm.values import Values

_FORMS = ("text", "json", "sarif", "junit", "github")


@click.command(cls=FolderCommand)
@target_argument
@job_options
@workload_option
@click.option("--output", type=click.Choice(_FORMS), default="text", show_default=True, help="Form of the findings.")
@click.option("--render", is_flag=True, help="Also let Helm render the chart, and report what its own rules refuse.")
def check(job: GivenJob, output: str, render: bool) -> None:
    """Check whether a job can run, without a cluster, and report all findings at once.

    Rules of fragments (rules.yaml) count, also your own. Only Helm knows what a validate.tpl refuses: `--render` checks
    that too, if no other error is found. `lint`, `install`, `upgrade` and `rehearse` always run both.

    TARGET is a target or a chart folder. Exit 1 on an error; warnings are only shown. Exit 3 when the job cannot be
    checked, for example when no folder of --path contains the chart's target.

    \b
    Examples:
      chartgen check gke-a3mega --preset gpt3-175b -f site.yaml
      chartgen check oke-h100 --preset llama2-70b --set nodes=3 --output sarif
    """
    from chartgen.findings import exit_code, finding_of
    from chartgen.reports import format_findings

    values = job.values
    chart = job.chart() if render else job.interface()
    seen, values = _examined(chart, values) if render else (_examined_before(chart, values), values)
    findings = [finding_of(row) for row in seen["findings"]]
    for line in [*seen["notes"], *([] if render else seen["unchecked"])]:
        note(line)
    if render and all(finding.severity != "error" for finding in findings):
        from chartgen.checks.charts import render_refusals

        findings += render_refusals(chart, values)
    text = format_findings(findings, output, checked=job.target, rules=known_rules)
    if output == "text":
        if seen["plan"] and exit_code(findings) == 0:
            own = "" if render else "; --render also renders it, install and rehearse ask a cluster"
            show_plan([*map(tuple, seen["plan"]), ("checked", seen["rules"] + own)])
        lines, end, total = text.rstrip("\n").rpartition("\n")
        severities = {finding.severity for finding in findings}
        colour = "red" if "error" in severities else "yellow" if severities else "green"
        click.echo(f"{lines}{end}{click.style(total, fg=colour)}")
    else:
        emit(text, nl=False)
    has_site = any(isinstance(layer.source, Path) for layer in values.layers[values.presets :])
    if exit_code(findings) and values.presets and not has_site:
        note(f"no file with the names in your cluster was given with -f; chartgen init {job.target} writes one")
    sys.exit(exit_code(findings))


def _examined_before(chart: Chart, values: Values) -> dict[str, Any]:
    """Return what `_examined` does, from the cache if nothing has changed: most of its time is that of its imports."""
    from chartgen.cached import read_cached, write_cached

    key = _key(chart, values)
    seen = read_cached("checks", key) if key else None
    if seen is None:
        seen, _ = _examined(chart, values)
        if key:
            write_cached("checks", key, seen)
    return cast("dict[str, Any]", seen)


def _key(chart: Chart, values: Values) -> str:
    """Return a digest of all that findings depend on; empty for a chart of a folder, and for values of a pipe."""
    from chartgen.composer.composed import key_of_inputs
    from chartgen.composer.origin import Composed

    files = [layer.source for layer in values.layers if isinstance(layer.source, Path)]
    if not isinstance(chart.origin, Composed) or chart.origin.by_annotation or not all(map(Path.is_file, files)):
        return ""
    layers = [str(layer.source) for layer in values.layers]
    texts = [file.read_bytes().decode("utf-8", "replace") for file in files]
    given = [chart.origin.workload, values.data, values.presets, layers, texts]
    return key_of_inputs(chart.origin.target, "check", json.dumps(given))


def _examined(chart: Chart, values: Values) -> tuple[dict[str, Any], Values]:
    """Return what to show of a job, as JSON data, and its values with the layout that chartgen has chosen."""
    from chartgen.checks import CHECKS, SCHEMA, checked
    from chartgen.checks.charts import unchecked_refusals
    from chartgen.checks.outline import outline
    from chartgen.checks.rules import rules_for
    from chartgen.findings import exit_code, row_of

    findings, decision = checked(chart, values)
    job = decision.job if decision else None
    seen: dict[str, Any] = {"findings": [row_of(each) for each in findings], "notes": [], "plan": [], "rules": ""}
    if decision and all(finding.rule != SCHEMA for finding in findings):
        values, seen["notes"] = decision.values, notes_of(decision, values)
    what = "what only Helm can check is not checked; --render checks it"
    seen["unchecked"] = [f"{refusal}: {what}" for refusal in unchecked_refusals(chart)]
    if job and not exit_code(findings):
        seen["plan"] = [*outline(job)]
        seen["rules"] = f"the values' schema and {len(CHECKS) + len(list(rules_for(job)))} rules"
    return seen, values
