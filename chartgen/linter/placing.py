"""Where people mend a finding: the chart's own file where it has a folder, else the fragment it was composed from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chartgen.chart import Chart
from chartgen.errors import Problem
from chartgen.findings import Finding
from chartgen.linter.ignores import ignored
from chartgen.linter.places import source_line
from chartgen.origin import Composed, origin_of
from chartgen.yamltext import read_text


def ignored_there(finding: Finding, chart: Chart) -> set[str]:
    """Give the rules that comments ignore where a finding stands: in the chart's file, or in the user's values."""
    problem = finding.problem
    if isinstance(problem.path, Path):
        text = read_text(problem.path) if problem.line else ""
    else:
        text = chart.files.get(problem.path or "", "")
    return ignored(text.split("\n"), problem.line)


def placed(finding: Finding, chart: Chart, folder: Path | None) -> Finding:
    """Turn a path inside the chart into one that an editor or a code scanner can open.

    Args:
        finding: A finding whose path is a text when it is relative to the chart.
        chart: The chart.
        folder: The chart's folder; None for a chart in memory.
    """
    problem = finding.problem
    path = problem.path
    if not isinstance(path, str) or path.startswith("--"):
        return finding
    source = _source(chart, path, problem.line)
    if folder is not None:
        hint = problem.hint
        if source:
            hint = f"{hint}; made of {_near(source[0])}:{source[1]}".lstrip("; ")
        problem = Problem(problem.message, folder / path, problem.line, problem.column, hint)
    elif source:
        problem = Problem(problem.message, source[0], source[1], 0, problem.hint)
    return replace(finding, problem=problem)


def _source(chart: Chart, path: str, line: int) -> tuple[Path, int] | None:
    lines = chart.files.get(path, "").split("\n")
    if not path.startswith("templates/") or not 0 < line <= len(lines):
        return None
    origin = origin_of(chart)
    return source_line(origin.target, lines, line) if isinstance(origin, Composed) else None


def _near(path: Path) -> str:
    """Give a path below the working directory when it lies there."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
