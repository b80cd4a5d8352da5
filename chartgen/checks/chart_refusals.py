"""The chart's own refusals: rules of its fragments and launchers, also of users, with the place of each value."""

from __future__ import annotations

import re
from pathlib import Path

from chartgen.checks import place
from chartgen.composer.origin import Composed, origin_of
from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.findings import REFUSED, Finding, in_order
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values

_LINE = re.compile(r"(?P<key>[A-Za-z][\w-]*(?:\.[\w-]+)*): (?P<message>.*?)(?:; (?P<hint>[^;]*))?")


def render_refusals(chart: Chart, values: Values) -> list[Finding]:
    """Render a chart and return its refusals; without Helm, return one `unchecked` finding.

    Args:
        chart: A run chart with its templates.
        values: The user's layers; they match the schema.
    """
    from chartgen.helm.manifests import render

    try:
        render(chart, "check", "default", values.data)
    except MissingToolError as error:
        message = f"the chart's own rules were not checked: {error.problems[0].message}"
        return [Finding(REFUSED, Problem(message, hint=error.problems[0].hint), "unchecked")]
    except ChartgenError as error:
        return in_order(Finding(REFUSED, _placed(problem, chart, values)) for problem in error.problems)
    return []


def unchecked_refusals(chart: Chart) -> list[Path]:
    """Return the user's own files whose refusals only Helm knows; rules in rules.yaml need no Helm."""
    origin = origin_of(chart)
    if not isinstance(origin, Composed):
        return []
    target = origin.target
    folders = [fragment.path for fragment in target.fragments] + [launcher.path for launcher in target.launchers]
    files = (folder / "validate.tpl" for folder in folders)
    images = [policy.path for policy in target.policies if "registries" in policy.data]
    return images + [path for path in files if path.is_file() and not target.library.is_builtin(path)]


def _placed(problem: Problem, chart: Chart, values: Values) -> Problem:
    """Return a refusal with the place of its value; its text begins with the value's key."""
    match = _LINE.fullmatch(problem.message)
    if not match or problem.path:
        return problem
    where = place(chart, values, match["key"].split("."))
    return Problem(f"{match['key']}: {match['message']}", *where, match["hint"] or problem.hint)
