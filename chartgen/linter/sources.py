"""Where the lines of a composed chart come from, also where the chart in a folder has been changed by hand since."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from chartgen.composer.assembly import compose_sources
from chartgen.composer.library import BUILTIN
from chartgen.composer.origin import Composed, origin_of
from chartgen.composer.provenance import Source
from chartgen.errors import ChartgenError
from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart
from chartgen.helm.yaml import read_text
from chartgen.linter.scripts import fault_of_script


class Sources:
    """The sources of a chart's templates; none for a chart of others, or of a target that is not known here.

    Args:
        chart: The chart as it is linted.
    """

    def __init__(self, chart: Chart) -> None:
        self._chart = chart

    @cached_property
    def _lines(self) -> dict[str, list[tuple[str, Source | None]]]:
        try:
            origin = origin_of(self._chart)
            return compose_sources(origin) if isinstance(origin, Composed) else {}
        except ChartgenError:
            return {}

    def find(self, path: str, line: int) -> Source | None:
        """Return the source of a line of a template.

        Args:
            path: The template, relative to the chart.
            line: 1-based line; 0 for the file, whose first source is returned.
        """
        built = self._lines.get(path, [])
        if not line:
            return next((Source(source.path, 0) for _, source in built if source), None)
        at = self._built_line(path, line, [text for text, _ in built])
        return built[at][1] if 0 <= at < len(built) else None

    def _built_line(self, path: str, line: int, built: list[str]) -> int:
        """Return the index of the line that is built where a line now stands; -1 for one that was written by hand."""
        now = self._chart.files.get(path, "").split("\n")
        if now == built:
            return line - 1
        for block in SequenceMatcher(None, built, now, autojunk=False).get_matching_blocks():
            if block.b <= line - 1 < block.b + block.size:
                return block.a + line - 1 - block.b
        return -1

    def broken_script(self) -> Source | None:
        """Return where a shell file of the user's cannot be read by itself; each is a whole of its own."""
        for path in self._shell_files():
            if fault := fault_of_script(gotemplate.mask(read_text(path))):
                return Source(path, fault.begins)
        return None

    def _shell_files(self) -> Iterator[Path]:
        found = {source.path for lines in self._lines.values() for _, source in lines if source}
        yield from sorted(path for path in found if path.suffix == ".sh" and is_users(path))


def is_users(path: Path) -> bool:
    """Report whether a file is the user's own, and not one that came with chartgen."""
    return not path.is_relative_to(BUILTIN)
