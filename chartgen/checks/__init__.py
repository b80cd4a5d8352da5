"""Everything that can be known of a job before it occupies machines: schema first, then a small rule for each limit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen.checks.claim import KeyProblem
from chartgen.checks.compatibility import COMPAT
from chartgen.checks.inputs import INPUTS
from chartgen.checks.job import Job
from chartgen.checks.known_options import KNOWN
from chartgen.checks.kueue import KUEUE
from chartgen.checks.machine import MACHINE
from chartgen.checks.memory_fit import CAPACITY
from chartgen.checks.parallelism import PARALLELISM
from chartgen.checks.pod_parts import PODS
from chartgen.checks.policies import POLICY, unknown_policies
from chartgen.checks.program_settings import SETTINGS
from chartgen.checks.rules import check_users_rules, judge
from chartgen.checks.secrets import SECRETS
from chartgen.checks.site_file import foreign_sites, placeholders
from chartgen.checks.training import TRAINING
from chartgen.checks.values import check_values, effective_values, place
from chartgen.checks.yaml_pitfalls import PITFALLS, pitfalls
from chartgen.composer.composed import composed_chart
from chartgen.composer.origin import TARGET, Composed, Unknown, origin_of
from chartgen.composer.target import Target
from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.findings import NOT_OURS, TARGET_UNKNOWN, Finding, Rule, in_order
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.values import Values
from chartgen.helm.yaml import load, require_map

if TYPE_CHECKING:
    from chartgen.checks.automatic import Decision

__all__ = [
    "CHECKS",
    "check",
    "check_values",
    "effective_values",
    "job_of",
    "place",
    "raise_errors",
    "readable_job",
    "unanswered",
    "validate",
]

# What a rule of rules.yaml cannot say: the memory of a GPU, versions of images, quantities, parts of pods.
CHECKS: tuple[Rule, ...] = (
    *(*PARALLELISM, *CAPACITY, *COMPAT, *MACHINE, *SETTINGS, *KNOWN, *TRAINING, *INPUTS),
    *(*SECRETS, *PODS, *KUEUE, *POLICY),
)
SCHEMA = "values-schema"


def check(chart: Chart, values: Values) -> list[Finding]:
    """Check whether a job can run at all, without a cluster and without Helm.

    Args:
        chart: A chart that was composed, or read from a folder. A setup chart has no job: only the schema counts.
        values: The user's layers.

    Returns:
        Everything that was found, sorted by place. Values that do not fit the schema hide the rest: their meaning is
        not known. Unknown keys do not: the others are judged as if these were not there. One `unchecked` finding
        reports that the job was not checked, because chartgen does not know the chart's target or did not make it.
    """
    return checked(chart, values)[0]


def checked(chart: Chart, values: Values) -> tuple[list[Finding], Decision | None]:
    """Check a job as `check` does; return the layout that was chosen for it too, None without one."""
    caught = [found for layer in values.layers if layer.document for found in pitfalls(layer.document)]
    origin = origin_of(chart)
    caught += foreign_sites(origin, values) if isinstance(origin, Composed) else []
    places = {(finding.problem.path, finding.problem.line, finding.problem.column) for finding in caught}
    if misfits := check_values(chart, values):
        # what YAML made of a word says more than that the schema wants another type
        misplaced = [problem for problem in misfits if (problem.path, problem.line, problem.column) not in places]
        caught += [Finding(SCHEMA, problem) for problem in misplaced]
        if check_values(_opened(chart, chart.files[SCHEMA_FILE]), values):
            return in_order([*caught, *unanswered(chart)]), None
    from chartgen.checks.automatic import FITTING, decide, open_keys

    hidden: tuple[str, ...] = ()
    decision = None
    try:
        decision = decide(chart, values)
        values = decision.values
    except ChartgenError as error:
        caught += [Finding(FITTING.id, problem, key="nodes") for problem in error.problems]
        if open_keys(values):
            return in_order(caught), None
        hidden = ("nodes", "parallelism", "recompute", "batch")  # what the layout of the preset would add says the same
    job = job_of(chart, values)
    unchecked = unknown_policies(job, chart) or _misfits_of_target(job, chart, values) if job else []
    if isinstance(origin, Composed):
        caught += placeholders(origin, values, job.launcher.name if job and not unchecked else "")
    if not job:
        return in_order([*caught, *unanswered(chart)]), decision
    claims = unchecked or _claims(job, chart, values)
    return in_order([*caught, *(claim for claim in claims if claim.key.partition(".")[0] not in hidden)]), decision


def validate(chart: Chart, values: Values) -> None:
    """Check values and raise all errors at once; warnings are left out.

    Raises:
        ChartgenError: At least one value does not fit.
        MissingToolError: The chart is of a target that is not known here, so the job cannot be checked.
    """
    raise_errors(check(chart, values))


def raise_errors(findings: Iterable[Finding]) -> None:
    """Raise all errors among findings at once; warnings are left out.

    Raises:
        ChartgenError: There is at least one.
        MissingToolError: No errors, but the chart is of a target that is not known here.
    """
    findings = list(findings)
    errors = [finding.problem for finding in findings if finding.severity == "error"]
    if errors:
        raise ChartgenError(errors)
    if unknown := [finding.problem for finding in findings if finding.rule == TARGET_UNKNOWN]:
        raise MissingToolError(unknown)


def unanswered(chart: Chart) -> list[Finding]:
    """Report that the jobs of a chart cannot be checked; nothing for charts of known targets, and for setup charts."""
    origin = origin_of(chart)
    if isinstance(origin, Composed) or (isinstance(origin, Unknown) and origin.setup):
        return []
    document = load(chart.files.get("Chart.yaml", ""), "Chart.yaml")
    if isinstance(origin, Unknown):
        message = f"target {origin.name} of this chart is not known here, so its job was not checked"
        hint = "give the folder that contains it with --path or CHARTGEN_PATH"
        problem = Problem(message, "Chart.yaml", *document.position(("annotations", TARGET)), hint)
        return [Finding(TARGET_UNKNOWN, problem, "unchecked")]
    message, hint = "chartgen did not make this chart, so its job was not checked", "check a target, or a chart of one"
    return [Finding(NOT_OURS, Problem(message, "Chart.yaml", *document.position(("name",)), hint), "unchecked")]


def job_of(chart: Chart, values: Values) -> Job | None:
    """Return the job that values which fit the schema describe; None for setup charts, and where it is not known."""
    origin = origin_of(chart)
    if not isinstance(origin, Composed) or origin.setup:
        return None
    return Job(effective_values(chart, values), origin.target, origin.workload)


def readable_job(target: Target, values: Values) -> Job:
    """Return the job that values describe on a target.

    Raises:
        ChartgenError: A value does not fit the schema.
    """
    chart = composed_chart("compose_interface", target)
    if misfits := check_values(chart, values):
        raise ChartgenError(misfits)
    from chartgen.checks.automatic import decide, open_keys

    try:
        values = decide(chart, values).values
    except ChartgenError:  # a preset keeps its own layout then, which `check` reports
        if open_keys(values):
            raise
    return Job(effective_values(chart, values), target)


def _misfits_of_target(job: Job, chart: Chart, values: Values) -> list[Finding]:
    """Report values of a changed chart that no check expects: its schema may accept them, or its defaults lack them."""
    if isinstance(chart.origin, Composed) and not chart.origin.by_annotation:
        return []
    interface = composed_chart("compose_interface", job.target, job.workload)
    own = interface.files[SCHEMA_FILE]
    if chart.files.get(SCHEMA_FILE) != own and (misfits := check_values(_opened(chart, own), values)):
        return [Finding(SCHEMA, problem) for problem in misfits]
    defaults = require_map(load(interface.files["values.yaml"], "values.yaml"), "values.yaml")
    lacking = next((key for key in defaults if defaults[key] is not None and key not in job.values), None)
    if lacking is None:
        return []
    message = f"the chart lacks {lacking!r}, a value of target {job.target.name}, so its job was not checked"
    hint = f"build it again: chartgen build {job.target.name}"
    return [Finding(NOT_OURS, Problem(message, "values.yaml", hint=hint), "unchecked")]


def _opened(chart: Chart, schema: str) -> Chart:
    """Return a chart whose schema, given as JSON, accepts unknown keys."""
    return replace(chart, files={**chart.files, SCHEMA_FILE: json.dumps(_open(json.loads(schema)))})


def _open(schema: Any) -> Any:
    """Return a schema without its refusal of unknown keys: a changed chart may have keys of its own."""
    if isinstance(schema, list):
        return [_open(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _open(value) for key, value in schema.items() if key != "additionalProperties" or value}


def _claims(job: Job, chart: Chart, values: Values) -> Iterator[Finding]:
    for each in CHECKS:
        if job.launcher.task in each.tasks:
            for claim in each.function(job):
                yield Finding(each.id, _placed(claim, chart, values), each.severity, claim.key)
    check_users_rules(job, chart, {SCHEMA, *(rule.id for rule in (*CHECKS, *PITFALLS))})
    for rule, claim in judge(job):
        yield Finding(rule.id, _placed(claim, chart, values), rule.severity, claim.key)


def _placed(claim: KeyProblem, chart: Chart, values: Values) -> Problem:
    """Put a claim where the user changed one of its values last, or else at the default of the first."""
    paths = [claim.at[:depth] for depth in range(len(claim.at), 0, -1)] or [tuple(claim.key.split("."))]
    paths += [tuple(key.split(".")) for key in claim.also]
    # of several that the last layer sets, the first in the claim's order
    path = max(paths, key=values.depth)
    files = [] if values.depth(path) else [layer.source for layer in values.layers if isinstance(layer.source, Path)]
    unset = f"{files[-1]} does not set it" if files else ""  # the place is the chart's default then
    hint = "; ".join(filter(None, (claim.hint, unset)))
    return Problem(f"{claim.key}: {claim.message}", *place(chart, values, path), hint)
