"""What a chart itself refuses: the rules of its fragments and launchers, users' too, with the place of each value."""

from __future__ import annotations

import re

from chartgen.checks import place
from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.findings import REFUSED, Finding, in_order
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import render
from chartgen.helm.values import Values

_LINE = re.compile(r"(?P<key>[A-Za-z][\w-]*(?:\.[\w-]+)*): (?P<message>.*?)(?:; (?P<hint>[^;]*))?")


def refusals(chart: Chart, values: Values) -> list[Finding]:
    """Render a chart and return what it refuses; where there is no Helm to render it with, one `unchecked` finding.

    Args:
        chart: A run chart with its templates.
        values: The user's layers; they fit the schema.
    """
    try:
        render(chart, "check", "default", values.data)
    except MissingToolError as error:
        message = f"the chart's own rules were not checked: {error.problems[0].message}"
        return [Finding(REFUSED, Problem(message, hint=error.problems[0].hint), "unchecked")]
    except ChartgenError as error:
        return in_order(Finding(REFUSED, _placed(problem, chart, values)) for problem in error.problems)
    return []


def _placed(problem: Problem, chart: Chart, values: Values) -> Problem:
    """Put a refusal where its value stands: it begins with the value's key."""
    match = _LINE.fullmatch(problem.message)
    if not match or problem.path:
        return problem
    where = place(chart, values, match["key"].split("."))
    return Problem(f"{match['key']}: {match['message']}", *where, match["hint"] or problem.hint)
