"""The values of a target without presets: its defaults, or its site file's example, for one machine and for two."""

from __future__ import annotations

from pathlib import Path

from chartgen.checks import check, place
from chartgen.composer.origin import Composed, origin_of
from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.findings import NOT_RENDERED, Finding
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values, load_values

RULE = "several-machines-are-rendered"
HINT = "give values for several machines, with -f or as presets; or a target whose defaults allow them"
SEVERAL = "nodes=2"


def refused_defaults(chart: Chart) -> Finding | None:
    """Return why a run chart of a target refuses its own defaults; None for other charts.

    Each site must set such a value, so that nothing is wrong with the chart.
    """
    error = _first_error(chart, load_values())
    if not error:
        return None
    name = f"site.{origin_of(chart).name}.example.yaml"
    hint = f"give your site file with -f, or keep an example beside targets/, as values/{name}"
    message = f"the defaults lack a value that each site must set: {error.problem.message}"
    return Finding(NOT_RENDERED, error.problem._replace(message=message, hint=hint), "unchecked", error.key)


def several_machines(chart: Chart, site: Path | None = None) -> Values | Finding | None:
    """Return values for two machines; a finding when the target's defaults allow only one, None for other charts.

    Args:
        chart: The chart.
        site: A site file that it needs besides its defaults.
    """
    if not _is_run_chart(chart):
        return None
    values = load_values([site] if site else [], set_values=[SEVERAL])
    error = _first_error(chart, values)
    if not error:
        return values
    message = f"lint renders one machine only, because the defaults refuse two: {error.problem.message}"
    return Finding(RULE, Problem(message, *place(chart, load_values(), ("nodes",)), HINT), "unchecked", "nodes")


def _first_error(chart: Chart, values: Values) -> Finding | None:
    if not _is_run_chart(chart):
        return None
    try:
        found = check(chart, values)
    except MissingToolError:
        raise
    except ChartgenError:
        return None  # Helm reports a file that cannot be read
    return next((each for each in found if each.severity == "error"), None)


def _is_run_chart(chart: Chart) -> bool:
    origin = origin_of(chart)
    return isinstance(origin, Composed) and not origin.setup
