"""The source of each line of a composed chart: mark lines of sources, compose, and read the marks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

# A character that is not in any source: YAML and Go templates reject it. Only the composer sees it.
_MARK = re.compile("\x01([0-9]+)\x01")


class FragmentLine(NamedTuple):
    """A line of a fragment, workload kind or launcher."""

    path: Path
    line: int


class LineMarks:
    """Marks at the ends of source lines that survive the composer's joining, indenting and filling in."""

    def __init__(self) -> None:
        self._sources: list[FragmentLine] = []

    def marked(self, text: str, path: Path, first: int = 1) -> str:
        """Mark the lines of a text.

        Args:
            text: The text; lines of the composer's own blocks are not marked, since text after them is cut off.
            first: 1-based line of the text's start in the file.
        """
        lines, inside = text.split("\n"), False
        for index, line in enumerate(lines):
            bare = re.sub(r"<%=[^%\n]*%>", "", line)
            if line.strip() and not inside and "<%" not in bare and "\x01" not in line:
                lines[index] = f"{line}\x01{len(self._sources)}\x01"
                self._sources.append(FragmentLine(path, first + index))
            inside = bare.rfind("<%") > bare.rfind("%>") if "<%" in bare else inside and "%>" not in bare
        return "\n".join(lines)

    def read(self, text: str) -> list[tuple[str, FragmentLine | None]]:
        """Return the lines of a composed text, each with its source; None for lines that the composer wrote."""
        return [(_MARK.sub("", line), self._source(line)) for line in text.split("\n")]

    def _source(self, line: str) -> FragmentLine | None:
        found = _MARK.search(line)
        return self._sources[int(found[1])] if found else None
