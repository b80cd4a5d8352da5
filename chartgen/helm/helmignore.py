"""`.helmignore` as Helm reads it: the files of a chart's folder that are not part of the chart.

The rules of helm/helm @ e9b85e4, pkg/ignore/rules.go: patterns of Go's filepath.Match; the first match
decides. They differ from .gitignore: a line with `!` ignores everything that it does not match.
"""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass

NAME = ".helmignore"
# Helm's own addition: hidden files among the templates.
_DEFAULTS = "templates/.?*"


@dataclass(frozen=True)
class Pattern:
    """A line of the file.

    Args:
        parts: The patterns of the path's parts; of its last part when the line has no slash.
        whole: Whether it applies to the whole path.
        negate: Whether it ignores paths that it does not match.
        folders: Whether it applies to folders only.
    """

    parts: tuple[re.Pattern[str], ...]
    whole: bool
    negate: bool
    folders: bool

    def matches(self, path: str) -> bool:
        """Report whether the pattern matches a path."""
        names = path.split("/")[0 if self.whole else -1 :]
        return len(names) == len(self.parts) and all(map(re.Pattern.match, self.parts, names))


class Ignored:
    """The files that a chart excludes.

    Args:
        text: The text of its `.helmignore`; empty when the file is missing. Lines that Helm rejects are skipped.
    """

    def __init__(self, text: str) -> None:
        lines = [*text.removeprefix("\ufeff").split("\n"), _DEFAULTS]
        self.patterns = [pattern for line in lines if (pattern := _pattern(line.strip()))]

    def __call__(self, path: str, *, folder: bool = False) -> bool:
        """Report whether a file, or a folder with its content, is excluded.

        Args:
            path: The path relative to the chart, with slashes.
            folder: Whether it is a folder.
        """
        for pattern in self.patterns:
            if pattern.negate:
                if (pattern.folders and not folder) or not pattern.matches(path):
                    return True
            elif (folder or not pattern.folders) and pattern.matches(path):
                return True
        return False


def _pattern(line: str) -> Pattern | None:
    if not line or line.startswith("#") or "**" in line:
        return None
    negate, folders = line.startswith("!"), line.endswith("/")
    line = line.removeprefix("!").removesuffix("/")
    parts = tuple(_compiled(part) for part in line.removeprefix("/").split("/"))
    return Pattern(parts, "/" in line, negate, folders)


def _compiled(part: str) -> re.Pattern[str]:
    """Compile Go's pattern for one part of a path to a Python expression that does not backtrack."""
    return re.compile(fnmatch.translate(re.sub(r"\\(.)", r"[\1]", part).replace("[^", "[!")))
