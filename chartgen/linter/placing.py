"""The place where a finding can be fixed: the chart's own file if it has a folder, else the source fragment."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chartgen.composer.library import BUILTIN
from chartgen.composer.provenance import FragmentLine
from chartgen.errors import ChartgenError
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.helm.program_errors import HelmError
from chartgen.helm.yaml import read_text
from chartgen.linter.ignores import ignored
from chartgen.linter.render import with_preset
from chartgen.linter.sources import Sources, is_users


def ignored_there(finding: Finding, chart: Chart) -> set[str]:
    """Return the rules that comments ignore at the place of a finding: in the chart's file, or in the user's values."""
    problem = finding.problem
    if isinstance(problem.path, Path):
        text = read_text(problem.path) if problem.line else ""
    else:
        text = chart.files.get(problem.path or "", "")
    return ignored(text.split("\n"), problem.line)


def placed(finding: Finding, folder: Path | None, sources: Sources) -> Finding:
    """Turn a path inside the chart into one that an editor or code scanner can open; prefer the user's own file.

    Args:
        finding: A finding; its path is a str when it is relative to the chart.
        folder: The chart's folder; None for a chart in memory.
        sources: Sources of its lines.
    """
    problem = finding.problem
    path = problem.path
    if not isinstance(path, str) or path.startswith("--"):
        return finding
    source = _source(finding, path, sources)
    if similar := sources.similar_template(problem.message):
        problem = problem._replace(hint="; ".join(filter(None, (problem.hint, similar))))
    if source and is_users(source.path):
        return replace(finding, problem=problem._replace(path=source.path, line=source.line, column=0))
    hints = [problem.hint, _own_text(finding, path, sources)]
    if folder is not None:
        hints += [f"made of chartgen's own {source.path.relative_to(BUILTIN)}:{source.line}"] if source else []
        problem = problem._replace(path=folder / path)
    elif source and source.path.is_relative_to(Path.cwd()):
        problem = problem._replace(path=source.path, line=source.line, column=0)
    problem = problem._replace(hint="; ".join(filter(None, hints)))
    return replace(finding, problem=problem)


def in_source(error: HelmError, chart: Chart) -> ChartgenError:
    """Return an error of rendering with the places of the user's own fragments, where they made the lines."""
    sources = Sources(chart)
    found = (Finding("helm-template", with_preset(problem, None)) for problem in error.problems)
    return ChartgenError(placed(each, None, sources).problem for each in found)


def _own_text(finding: Finding, path: str, sources: Sources) -> str:
    """Name the user's files whose text a template of chartgen's reads, if Helm stops in it."""
    if finding.rule not in ("helm-template", "helm-lint"):
        return ""
    here = Path.cwd()
    own = [str(each.relative_to(here) if each.is_relative_to(here) else each) for each in sources.users_in(path)]
    return f"it reads your {', '.join(own)}" if own else ""


def _source(finding: Finding, path: str, sources: Sources) -> FragmentLine | None:
    """Find the source of a line; prefer the user's own to the fragment that it calls: the call is more often wrong."""
    if path == "values.yaml":
        return sources.default(finding.key)
    if not path.startswith(("templates/", "files/")):
        return None
    inner = sources.find(path, finding.problem.line)
    if inner and is_users(inner.path):
        return inner
    for place in reversed(finding.problem.trail):
        file, line = place.split(":")[:2]
        source = sources.find(file.partition("/")[2], int(line))
        if source and is_users(source.path):
            return source
    return inner
