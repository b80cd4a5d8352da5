"""The source of each line of a composed chart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from chartgen.composer.assembly import compose_sources
from chartgen.composer.chart_tags import DEFINE
from chartgen.composer.library import BUILTIN
from chartgen.composer.origin import Composed, origin_of
from chartgen.composer.provenance import FragmentLine
from chartgen.errors import ChartgenError, did_you_mean
from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart
from chartgen.helm.yaml import load, read_text

_UNDEFINED = re.compile(r'no template "([^"]+)"')


class Sources:
    """The sources of a chart's templates; empty for a third-party chart, or an unknown target.

    Args:
        chart: The chart to lint.
    """

    def __init__(self, chart: Chart) -> None:
        self._chart = chart

    @cached_property
    def _lines(self) -> dict[str, list[tuple[str, FragmentLine | None]]]:
        try:
            origin = origin_of(self._chart)
            return compose_sources(origin) if isinstance(origin, Composed) else {}
        except ChartgenError:
            return {}

    def find(self, path: str, line: int) -> FragmentLine | None:
        """Return the source of a line of a template.

        Args:
            path: The template, relative to the chart.
            line: 1-based line; 0 for the file, which returns its first source.
        """
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
