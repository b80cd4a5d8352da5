"""Everything that can be known of a job before machines are held: schema first, then one small rule for each limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chartgen.checks.claim import Check, Claim
from chartgen.checks.compatibility import COMPAT
from chartgen.checks.data_programs import PREPARATION
from chartgen.checks.inputs import INPUTS
from chartgen.checks.job import Job
from chartgen.checks.known_options import KNOWN
from chartgen.checks.kueue import KUEUE
from chartgen.checks.launcher_options import PROGRAM
from chartgen.checks.machine import MACHINE
from chartgen.checks.memory_fit import CAPACITY
from chartgen.checks.nccl_test import MEASURING
from chartgen.checks.optimizer import OPTIMIZER
from chartgen.checks.parallelism import ARITHMETIC
from chartgen.checks.platform import PLATFORM
from chartgen.checks.pod_parts import PODS
from chartgen.checks.program_settings import SETTINGS
from chartgen.checks.secrets import SECRETS
from chartgen.checks.training import TRAINING
from chartgen.checks.values import check_values, effective_values, place
from chartgen.checks.yaml_pitfalls import pitfalls
from chartgen.composer.origin import TARGET, Composed, Unknown, origin_of
from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.findings import NOT_OURS, TARGET_UNKNOWN, Finding, in_order
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values
from chartgen.helm.yaml import load

__all__ = [
    "CHECKS",
    "check",
    "check_values",
    "effective_values",
    "job_of",
    "place",
    "raise_errors",
    "unanswered",
    "validate",
]

CHECKS: tuple[Check, ...] = (
    *(*ARITHMETIC, *CAPACITY, *COMPAT, *MACHINE, *SETTINGS, *KNOWN, *OPTIMIZER, *TRAINING, *INPUTS),
    *(*SECRETS, *PODS),
    # what the charts refuse too, for those who only use Helm
    *(*PROGRAM, *PREPARATION, *MEASURING, *PLATFORM, *KUEUE),
)
SCHEMA = "values-schema"


def check(chart: Chart, values: Values) -> list[Finding]:
    """Check whether a job can run at all, without a cluster and without Helm.

    Args:
        chart: A chart that was composed, or read from a folder. A setup chart has no job: only the schema counts.
        values: The user's layers.

    Returns:
        Everything that was found, sorted by place. Values that do not fit the schema hide the rest: what they mean is
        not known. One `unchecked` finding says that the job could not be checked, because chartgen does not know the
        chart's target or did not make the chart.
    """
    caught = [found for layer in values.layers if layer.document for found in pitfalls(layer.document)]
    places = {(found.problem.path, found.problem.line, found.problem.column) for found in caught}
    if misfits := check_values(chart, values):
        # what YAML made of a word says more than that the schema wants another type
        told = [each for each in misfits if (each.path, each.line, each.column) not in places]
        return in_order([*caught, *(Finding(SCHEMA, problem) for problem in told), *unanswered(chart)])
    job = job_of(chart, values)
    return in_order([*caught, *(_claims(job, chart, values) if job else unanswered(chart))])


def validate(chart: Chart, values: Values) -> None:
    """Check values and raise all errors at once; warnings are left out.

    Raises:
        ChartgenError: At least one value does not fit.
        MissingToolError: The chart is of a target that is not known here, so that nobody can tell.
    """
    raise_errors(check(chart, values))


def raise_errors(found: Iterable[Finding]) -> None:
    """Raise all errors among findings at once; warnings are left out.

    Raises:
        ChartgenError: There is at least one.
        MissingToolError: There is none, and the chart is of a target that is not known here.
    """
    found = list(found)
    errors = [each.problem for each in found if each.severity == "error"]
    if errors:
        raise ChartgenError(errors)
    if unknown := [each.problem for each in found if each.rule == TARGET_UNKNOWN]:
        raise MissingToolError(unknown)


def unanswered(chart: Chart) -> list[Finding]:
    """Report that the jobs of a chart cannot be checked; nothing for charts of known targets, and for setup charts."""
    origin = origin_of(chart)
    if isinstance(origin, Composed) or (isinstance(origin, Unknown) and origin.setup):
        return []
    document = load(chart.files.get("Chart.yaml", ""), "Chart.yaml")
    if isinstance(origin, Unknown):
        message = f"target {origin.name} of this chart is not known here, so its job was not checked"
        hint = "give the folder that holds it with --path or CHARTGEN_PATH"
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


def _claims(job: Job, chart: Chart, values: Values) -> Iterator[Finding]:
    for each in CHECKS:
        if job.launcher.task in each.tasks:
            for claim in each.rule(job):
                yield Finding(each.id, _placed(claim, chart, values), each.severity, claim.key)


def _placed(claim: Claim, chart: Chart, values: Values) -> Problem:
    """Put a claim where the user changed one of its values last, or else at the default of the first."""
    paths = [claim.at[:depth] for depth in range(len(claim.at), 0, -1)] or [tuple(claim.key.split("."))]
    paths += [tuple(key.split(".")) for key in claim.also]
    # of several that the last layer sets, the first in the claim's order
    path = max(paths, key=values.depth)
    return Problem(f"{claim.key}: {claim.message}", *place(chart, values, path), claim.hint)
