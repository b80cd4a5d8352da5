"""Rules of `rules.yaml`, judged for one job."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

from chartgen.checks.evaluation import Scope, message, value
from chartgen.checks.job import Job, once
from chartgen.composer.rules import COMMON, FILE, ValuesRule, rules_of
from chartgen.errors import ChartgenError
from chartgen.findings import KeyProblem
from chartgen.helm.chart import Chart

# The first part of the keys whose rules are about sizes: they divide each other, and fit the program.
_SIZES = ("nodes", "gpusPerNode", "model", "sequenceLength", "parallelism", "batch", "precision")
# A rule about sizes with another key, and one about something else with such a key.
_ALSO_SIZES, _NO_SIZE = "uneven-stages", "rotary-base-of-the-family"


def judge(job: Job) -> Iterator[tuple[ValuesRule, KeyProblem]]:
    """Yield a claim for each rule that a job breaks."""
    for rule in rules_for(job):
        for claim in broken(rule, job):
            yield rule, claim


def check_users_rules(job: Job, chart: Chart, taken: Collection[str]) -> None:
    """Check the names and types in rules of users; chartgen's own are checked when its charts are built.

    Raises:
        ChartgenError: All of them at once.
    """
    is_builtin, workload = job.target.library.is_builtin, job.workload_kind.folders
    parts = [*(launcher.path for launcher in job.target.launchers), *(each.path for each in job.target.fragments)]
    if not job.target.policies and all(map(is_builtin, (*workload, *parts))):
        return
    from chartgen.composer.rule_lines import rule_lines

    foreign = [rule for rule in rules_of(job.target, workload) if not is_builtin(Path(rule.document.path))]
    if clashes := [
        rule.document.problem(f"{rule.id} is the id of another check", (*rule.at, "id"), "choose another id")
        for rule in foreign
        if rule.id in taken
    ]:
        raise ChartgenError(clashes)
    if foreign:
        tasks = tuple((launcher.name, launcher.task) for launcher in job.target.launchers)
        rule_lines(chart.name, tuple(foreign), chart.files["values.schema.json"], tasks)


def miscounts(job: Job, *severities: str) -> bool:
    """Report whether sizes of a job break a rule that all charts share, so that nothing can be calculated from them."""
    return any(rule.severity in severities and broken(rule, job) for rule in rules_for(job) if _about_sizes(rule))


@cache
def _about_sizes(rule: ValuesRule) -> bool:
    named = rule.key.partition(".")[0] in _SIZES and rule.id != _NO_SIZE
    return rule.document.path == COMMON / FILE and (named or rule.id == _ALSO_SIZES)


def broken(rule: ValuesRule, job: Job) -> list[KeyProblem]:
    """Return a claim for each item of a job that breaks a rule; none if the rule does not apply."""
    if rule not in job.known:
        job.known[rule] = list(_broken(rule, job))
    found: list[KeyProblem] = job.known[rule]
    return found


def _broken(rule: ValuesRule, job: Job) -> Iterator[KeyProblem]:
    for item in (value(rule.each)(Scope(job)) or ()) if rule.each else (None,):
        scope = Scope(job, item)
        if (rule.when and not value(rule.when)(scope)) or value(rule.require)(scope):
            continue
        key, text, hint = (message(each)(scope) for each in (rule.key, rule.message, rule.hint))
        yield KeyProblem(key, text, hint, tuple(message(each)(scope) for each in rule.also))


@once
def rules_for(job: Job) -> list[ValuesRule]:
    """Return the rules of a job's chart that are for its launcher and task."""
    every = rules_of(job.target, job.workload_kind.folders, job.launcher.name)
    return [rule for rule in every if job.launcher.task in rule.tasks and (job.describes_model or not rule.about)]
