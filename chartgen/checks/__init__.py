"""Everything that can be known of a job before it occupies machines: schema first, then a small rule for each limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from chartgen.checks.automatic import FITTING, Decision, decide, open_keys
from chartgen.checks.catalogue import CHECKS
from chartgen.checks.charts import changes, open_misfits, unanswered
from chartgen.checks.job import Job, job_of
from chartgen.checks.rules import check_users_rules, judge
from chartgen.checks.site_file import foreign_sites, placeholders, unused
from chartgen.checks.values import SCHEMA, check_values, effective_values, place
from chartgen.checks.yaml_pitfalls import PITFALLS, pitfalls
from chartgen.composer.origin import Composed, origin_of
from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.findings import TARGET_UNKNOWN, Finding, KeyProblem, in_order
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.values import Values

__all__ = [
    "CHECKS",
    "SCHEMA",
    "check",
    "check_values",
    "checked",
    "effective_values",
    "job_of",
    "place",
    "raise_errors",
    "unanswered",
    "validate",
]


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
    """Check a job as `check` does; return the layout chosen for it too, with the job if it was judged; or None."""
    caught = [found for layer in values.layers if layer.document for found in pitfalls(layer.document)]
    origin = origin_of(chart)
    caught += foreign_sites(origin, values) if isinstance(origin, Composed) else []
    places = {(finding.problem.path, finding.problem.line, finding.problem.column) for finding in caught}
    if misfits := check_values(chart, values):
        # what YAML made of a word says more than that the schema wants another type
        misplaced = [problem for problem in misfits if (problem.path, problem.line, problem.column) not in places]
        caught += [Finding(SCHEMA, problem) for problem in misplaced]
        if open_misfits(chart, chart.files[SCHEMA_FILE], values):
            return in_order([*caught, *unanswered(chart)]), None
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
    job = (decision and decision.job) or job_of(chart, values)
    unchecked = changes(job, chart, values) if job else []
    if isinstance(origin, Composed):
        caught += placeholders(origin, values, job.launcher.name if job and not unchecked else "")
    if not job:
        return in_order([*caught, *unanswered(chart)]), decision
    claims = unchecked or _claims(job, chart, values)
    shown = (claim for claim in claims if claim.key.partition(".")[0] not in hidden)
    return in_order([*caught, *shown]), decision and replace(decision, job=None if unchecked else job)


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


def _claims(job: Job, chart: Chart, values: Values) -> Iterator[Finding]:
    for each in CHECKS:
        if job.launcher.task in each.tasks:
            for claim in each.function(job):
                hinted = claim._replace(hint=claim.hint or each.hint)
                yield Finding(each.id, _placed(hinted, chart, values), each.severity, claim.key)
    for key in unused(job, values)[0]:
        dropped = KeyProblem(key, f"launcher {job.launcher.name} has no use for it", "leave it out")
        yield Finding("settings-of-the-launcher", _placed(dropped, chart, values), key=key)
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
