"""Where people mend a finding: the chart's own file where it has a folder, else the fragment it was composed from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chartgen.composer.library import BUILTIN
from chartgen.composer.provenance import Source
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.helm.yaml import read_text
from chartgen.linter.ignores import ignored
from chartgen.linter.scripts import UNREADABLE
from chartgen.linter.sources import Sources, is_users


def ignored_there(finding: Finding, chart: Chart) -> set[str]:
    """Return the rules that comments ignore where a finding stands: in the chart's file, or in the user's values."""
    problem = finding.problem
    if isinstance(problem.path, Path):
        text = read_text(problem.path) if problem.line else ""
    else:
        text = chart.files.get(problem.path or "", "")
    return ignored(text.split("\n"), problem.line)


def placed(finding: Finding, folder: Path | None, sources: Sources) -> Finding:
    """Turn a path inside the chart into one that an editor or a code scanner can open: the user's own where it can be.

    Args:
        finding: A finding whose path is a text when it is relative to the chart.
        folder: The chart's folder; None for a chart in memory.
        sources: Where its lines come from.
    """
    problem = finding.problem
    path = problem.path
    if not isinstance(path, str) or path.startswith("--"):
        return finding
    source = _source(finding, path, sources)
    if source and (is_users(source.path) or (folder is None and source.path.is_relative_to(Path.cwd()))):
        problem = problem._replace(path=source.path, line=source.line, column=0)
    elif folder is not None:
        made = f"made of chartgen's own {source.path.relative_to(BUILTIN)}:{source.line}" if source else ""
        hint = "; ".join(filter(None, (problem.hint, made)))
        problem = problem._replace(path=folder / path, hint=hint)
    return replace(finding, problem=problem)


def _source(finding: Finding, path: str, sources: Sources) -> Source | None:
    """Find what made a line: a user's own before what it calls, which mostly is right and was called in a wrong way."""
    if not path.startswith("templates/"):
        return None
    if finding.rule == UNREADABLE and (broken := sources.broken_script()):
        return broken
    inner = sources.find(path, finding.problem.line)
    if inner and is_users(inner.path):
        return inner
    for place in reversed(finding.problem.trail):
        file, line = place.split(":")[:2]
        source = sources.find(file.partition("/")[2], int(line))
        if source and is_users(source.path):
            return source
    return inner
