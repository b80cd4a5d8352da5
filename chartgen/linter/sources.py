"""The source of each line of a composed chart, and the place where a finding can be fixed.

That is the chart's own file if it has a folder, else the source fragment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from chartgen.composer.library import BUILTIN
from chartgen.composer.origin import Composed, origin_of
from chartgen.composer.tags import FragmentLine
from chartgen.errors import ChartgenError, did_you_mean
from chartgen.findings import Finding
from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart
from chartgen.helm.program import HelmError
from chartgen.helm.yaml import load, read_text
from chartgen.linter.render import with_preset
from chartgen.linter.selection import ignored

_UNDEFINED = re.compile(r'no template "([^"]+)"')


class Sources:
    """The sources of a chart's templates; empty for a third-party chart, or an unknown target."""

    def __init__(self, chart: Chart) -> None:
        self._chart = chart

    @cached_property
    def _lines(self) -> dict[str, list[tuple[str, FragmentLine | None]]]:
        from chartgen.composer.assembly import compose_sources

        try:
            origin = origin_of(self._chart)
            return compose_sources(origin) if isinstance(origin, Composed) else {}
        except ChartgenError:
            return {}

    def find(self, path: str, line: int) -> FragmentLine | None:
        """Return the source of a 1-based line of a template; of line 0 the first source."""
        built = self._lines.get(path, [])
        if not line:
            return next((FragmentLine(source.path, 0) for _, source in built if source), None)
        return built[line - 1][1] if line <= len(built) and self._is_as_built(path) else None

    def default(self, key: str) -> FragmentLine | None:
        """Return the place of a value's default in the user's own target or fragments; None if it is chartgen's."""
        origin = origin_of(self._chart)
        if not isinstance(origin, Composed) or not key:
            return None
        keys = key.split(".")
        files = [fragment.path / "values.yaml" for fragment in origin.target.fragments]
        texts = ((file, gotemplate.mask(read_text(file))) for file in files if file.is_file() and is_users(file))
        own = [(load(text, file), tuple(keys)) for file, text in texts]
        for document, path in ((origin.target.document, ("values", *keys)), *own):
            file = Path(document.path)
            if document.span(path) and is_users(file):
                return FragmentLine(file, document.position(path)[0])
        return None

    def users_in(self, path: str) -> list[Path]:
        """Return the user's own files whose text is in a template of the chart, such as slots that chartgen reads."""
        return sorted({source.path for _, source in self._lines.get(path, []) if source and is_users(source.path)})

    def similar_template(self, message: str) -> str:
        """Return a hint for a message of Helm about a template that the chart does not define; else empty."""
        missing = _UNDEFINED.search(message)
        if not missing:
            return ""
        from chartgen.composer.chart_tags import DEFINE

        return did_you_mean(missing[1], {name for text in self._chart.files.values() for name in DEFINE.findall(text)})

    def _is_as_built(self, path: str) -> bool:
        """Report whether a template is as chartgen builds it; the lines of an edited one are the editor's."""
        return self._chart.files.get(path) == "\n".join(text for text, _ in self._lines[path])


def is_users(path: Path) -> bool:
    """Report whether a file belongs to the user, not to chartgen."""
    return not path.is_relative_to(BUILTIN)


def fragment_texts(folders: Iterable[Path]) -> list[Path]:
    """Return the files of fragments that are YAML, templates or scripts, in order."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path for path in paths if path.suffix in (".yaml", ".tpl", ".sh")]


def ignored_there(finding: Finding, chart: Chart) -> set[str]:
    """Return the rules that comments ignore at the place of a finding: in the chart's file, or in the user's values."""
    problem = finding.problem
    if isinstance(problem.path, Path):
        text = read_text(problem.path) if problem.line else ""
    else:
        text = chart.files.get(problem.path or "", "")
    return ignored(text.split("\n"), problem.line)


def placed(finding: Finding, folder: Path | None, sources: Sources) -> Finding:
    """Turn a path inside the chart into one that an editor or code scanner can open; prefer the user's own file."""
    problem = finding.problem
    path = problem.path
    if not isinstance(path, str) or path.startswith("--"):
        return finding
    source = _source(finding, path, sources)
    if similar := sources.similar_template(problem.message):
        problem = problem._replace(hint="; ".join(filter(None, (problem.hint, similar))))
    if source and is_users(source.path):
        return finding._replace(problem=problem._replace(path=source.path, line=source.line, column=0))
    hints = [problem.hint, _own_text(finding, path, sources)]
    if folder is not None:
        line = f":{source.line}" if source and source.line else ""
        hints += [f"made of chartgen's own {source.path.relative_to(BUILTIN)}{line}"] if source else []
        problem = problem._replace(path=folder / path)
    elif source and source.path.is_relative_to(Path.cwd()):
        problem = problem._replace(path=source.path, line=source.line, column=0)
    problem = problem._replace(hint="; ".join(filter(None, hints)))
    return finding._replace(problem=problem)


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
