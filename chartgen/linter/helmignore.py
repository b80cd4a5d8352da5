"""`.helmignore` as Helm reads it: which files of a chart's folder are no part of the chart.

The rules of helm/helm @ e9b85e4, pkg/ignore/rules.go: patterns of Go's filepath.Match, of which the first that matches
decides. They are not those of .gitignore: a line with `!` ignores all that it does not match.
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
        parts: What each part of the path, or its last part where there is no slash in the line, must match.
        whole: Whether it is compared with the whole path.
        negate: Whether it ignores what it does not match.
        folders: Whether it is about folders only.
    """

    parts: tuple[re.Pattern[str], ...]
    whole: bool
    negate: bool
    folders: bool

    def matches(self, path: str) -> bool:
        """Report whether the pattern fits a path."""
        names = path.split("/")[0 if self.whole else -1 :]
        return len(names) == len(self.parts) and all(map(re.Pattern.match, self.parts, names))


class Ignored:
    """What a chart leaves out.

    Args:
        text: The text of its `.helmignore`; empty where it has none. Lines that Helm refuses are left out.
    """

    def __init__(self, text: str) -> None:
        lines = [*text.removeprefix("\ufeff").split("\n"), _DEFAULTS]
        self.patterns = [pattern for line in lines if (pattern := _pattern(line.strip()))]

    def __call__(self, path: str, *, folder: bool = False) -> bool:
        """Report whether a file, or a folder with all that is in it, is left out.

        Args:
            path: The path relative to the chart, with slashes.
            folder: Whether it is a folder.
        """
        for each in self.patterns:
            if each.negate:
                if (each.folders and not folder) or not each.matches(path):
                    return True
            elif (folder or not each.folders) and each.matches(path):
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
    """Compile what one part of a path must match, in Go's notation, as Python's, which does not backtrack."""
    return re.compile(fnmatch.translate(re.sub(r"\\(.)", r"[\1]", part).replace("[^", "[!")))
