"""From a rendered line back to the line of the template that made it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from chartgen.helm.chart import Chart

# Number of a line -> its texts between what the template fills in, and how many of its letters are fixed.
Patterns: TypeAlias = dict[int, tuple[list[str], int]]

_ACTION = re.compile(r"\{\{[^\n]*?\}\}|<%[^\n]*?%>")
# No line that people write is longer; a line without an end would take its square in time.
_LONGEST = 4000
# A template line with fewer letters than this, such as `- {{ . }}`, could have made any line.
_TELLING = 4
# What begins a literal block of YAML.
_BLOCK = re.compile(r"\|[-+0-9]{0,3}\s*$")


class Line(NamedTuple):
    """A line of a file."""

    path: str
    line: int


def template_line(chart: Chart, source: str, lines: Sequence[str], line: int) -> Line:
    """Find the template line that made a rendered line.

    Args:
        chart: The chart.
        source: The template that Helm names, relative to the chart.
        lines: The rendered text.
        line: 1-based line in it; 0 for none.

    Returns:
        The line that is likest to it, in the named template before all others; the template's first line when none is.
    """
    order = [source, *(path for path in chart.files if path.endswith(".tpl") and path != source)]
    files = {path: chart.files[path] for path in order if path in chart.files}
    return _likest(lines, line, files) or Line(source, _first_line(chart.files.get(source, "")))


def script_line(chart: Chart, source: str, lines: Sequence[str], line: int, inner: int) -> Line | None:
    """Find the line of a template, or of a script that a template takes in, that made a line of a rendered script.

    Args:
        chart: The chart.
        source: The template that Helm names, relative to the chart.
        lines: The rendered text.
        line: 1-based line in it where the script's key or item stands.
        inner: 1-based line in the script.

    Returns:
        None where the script is no block of lines, or no line is like it.
    """
    if not 0 < line <= len(lines) or not _BLOCK.search(lines[line - 1]):
        return None
    order = [source, *(path for path in chart.files if path.endswith((".tpl", ".sh", ".py")) and path != source)]
    return _likest(lines, line + inner, {path: chart.files[path] for path in order if path in chart.files})


def _likest(lines: Sequence[str], line: int, files: Mapping[str, str]) -> Line | None:
    """Find the line that says most of what is looked for, and of the lines around it; the first of equals."""
    if not 0 < line <= len(lines):
        return None
    found = [
        (letters + _around(lines, line, _patterns(text), number), Line(path, number))
        for path, text in files.items()
        for number, letters in _alike(lines[line - 1].strip(), _patterns(text))
    ]
    return max(found, key=lambda each: each[0])[1] if found else None


def _alike(wanted: str, patterns: Patterns) -> Iterator[tuple[int, int]]:
    for number, (parts, letters) in patterns.items():
        if letters >= min(_TELLING, len(wanted)) and _fits(wanted, parts):
            yield number, letters


def _around(lines: Sequence[str], line: int, patterns: Patterns, number: int) -> int:
    """Count the letters that the lines before and behind have in common."""
    score = 0
    for step in (-3, -2, -1, 1, 2, 3):
        at = line + step
        if 0 < at <= len(lines) and (near := patterns.get(number + step)) and _fits(lines[at - 1].strip(), near[0]):
            score += near[1]
    return score


def _fits(text: str, parts: Sequence[str]) -> bool:
    """Report whether a text is these parts in order, with anything between them; each part at its first place."""
    first, *rest = parts
    if not rest:
        return text == first
    last = rest.pop()
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for part in rest:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


@lru_cache(maxsize=512)
def _patterns(text: str) -> Patterns:
    """Return each line's texts around what the template fills in, and how many letters they have."""
    made = {}
    for number, line in enumerate(text.split("\n"), 1):
        parts = _ACTION.split(line.strip()) if len(line) <= _LONGEST else []
        if letters := sum(map(len, parts)):
            made[number] = (parts, letters)
    return made


def _first_line(text: str) -> int:
    """Return the first line that is neither blank nor an action or comment of its own."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith(("{{", "#", "---")):
            return number
    return 1
