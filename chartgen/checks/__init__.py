"""Everything that can be known of a job before machines are held: schema first, then one small rule for each limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from chartgen.chart import Chart
from chartgen.checks.arithmetic import ARITHMETIC
from chartgen.checks.capacity import CAPACITY
from chartgen.checks.claim import Check, Claim
from chartgen.checks.compat import COMPAT
from chartgen.checks.job import Job
from chartgen.checks.kueue import KUEUE
from chartgen.checks.machine import MACHINE
from chartgen.checks.measuring import MEASURING
from chartgen.checks.platform import PLATFORM
from chartgen.checks.pods import PODS
from chartgen.checks.preparation import PREPARATION
from chartgen.checks.program import PROGRAM
from chartgen.checks.schema import check_values, effective_values, place
from chartgen.checks.secrets import SECRETS
from chartgen.checks.settings import SETTINGS
from chartgen.checks.training import TRAINING
from chartgen.errors import ChartgenError, Problem
from chartgen.findings import Finding, in_order
from chartgen.library import Library, open_library
from chartgen.target import Target, load_target
from chartgen.values import Values
from chartgen.yamltext import load, require_map
from chartgen.yamltraps import traps

__all__ = ["CHECKS", "check", "check_values", "effective_values", "job_of", "place", "raise_errors", "validate"]

CHECKS: tuple[Check, ...] = (
    *(*ARITHMETIC, *CAPACITY, *COMPAT, *MACHINE, *SETTINGS, *TRAINING, *SECRETS, *PODS),
    # what the charts refuse too, for those who only use Helm
    *(*PROGRAM, *PREPARATION, *MEASURING, *PLATFORM, *KUEUE),
)
SCHEMA = "values-schema"
# In Chart.yaml: the target that a chart was composed from.
ANNOTATION = "chartgen/target"


def check(chart: Chart, values: Values) -> list[Finding]:
    """Check whether a job can run at all, without a cluster and without Helm.

    Args:
        chart: A chart that was composed, or read from a folder. Without a target that is known here, as with a chart
            that chartgen has not made, and for setup charts, only the schema counts.
        values: The user's layers.

    Returns:
        Everything that was found, sorted by place. Values that do not fit the schema hide the rest: what they mean is
        not known.
    """
    caught = [found for layer in values.layers if layer.document for found in traps(layer.document)]
    places = {(found.problem.path, found.problem.line, found.problem.column) for found in caught}
    if misfits := check_values(chart, values):
        # what YAML made of a word says more than that the schema wants another type
        told = [each for each in misfits if (each.path, each.line, each.column) not in places]
        return in_order([*caught, *(Finding(SCHEMA, problem) for problem in told)])
    job = job_of(chart, values)
    return in_order([*caught, *(_claims(job, chart, values) if job else ())])


def validate(chart: Chart, values: Values) -> None:
    """Check values and raise all errors at once; warnings are left out.

    Raises:
        ChartgenError: At least one value does not fit.
    """
    raise_errors(check(chart, values))


def raise_errors(found: Iterable[Finding]) -> None:
    """Raise all errors among findings at once; warnings are left out.

    Raises:
        ChartgenError: There is at least one.
    """
    errors = [each.problem for each in found if each.severity == "error"]
    if errors:
        raise ChartgenError(errors)


def job_of(chart: Chart, values: Values) -> Job | None:
    """Give the job that values which fit the schema describe; None for setup charts and charts of others."""
    target = target_of(chart)
    return Job(effective_values(chart, values), target, workload_of(chart, target)) if target else None


def target_of(chart: Chart, library: Library | None = None) -> Target | None:
    """Give the target that a run chart was composed from; None for setup charts and charts of others.

    Args:
        chart: The chart.
        library: Where to look for its target; chartgen's own definitions and CHARTGEN_PATH when None.
    """
    if chart.target or chart.name.endswith("-setup"):
        return chart.target
    notes = _head(chart).get("annotations")
    name = str(notes.get(ANNOTATION, "")) if isinstance(notes, dict) else ""
    library = library or open_library()
    return load_target(name, library) if name in library.names("target") else None


def workload_of(chart: Chart, target: Target) -> str:
    """Give the workload kind of a chart: one of another kind than the target's own is named `<target>-<kind>`."""
    # the folder that a chart was read from may have any name
    name = chart.name if chart.target else str(_head(chart).get("name"))
    own = f"{target.name}-"
    return name.removeprefix(own) if name.startswith(own) else target.workload


def _head(chart: Chart) -> dict[str, Any]:
    return require_map(load(chart.files.get("Chart.yaml", ""), "Chart.yaml"), "Chart.yaml")


def _claims(job: Job, chart: Chart, values: Values) -> Iterator[Finding]:
    for each in CHECKS:
        if job.launcher.task in each.tasks:
            for claim in each.rule(job):
                yield Finding(each.id, _placed(claim, chart, values), each.severity, claim.key)


def _placed(claim: Claim, chart: Chart, values: Values) -> Problem:
    """Put a claim where the user set its value, or else the first of the others that count, or else the default."""
    paths = [claim.at[:depth] for depth in range(len(claim.at), 0, -1)] or [tuple(claim.key.split("."))]
    paths += [tuple(key.split(".")) for key in claim.also]
    path = next((each for each in paths if values.sets(each)), paths[0])
    return Problem(f"{claim.key}: {claim.message}", *place(chart, values, path), claim.hint)
