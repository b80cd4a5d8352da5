"""How deep the templates of a chart include each other, and how long their lines are, from their text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_DEFINE = re.compile(r'\{\{-?\s*define\s+"([^"]+)"')
# A name, or a pattern of printf that makes one.
_INCLUDE = re.compile(r'\b(?:include|template)\s+(?:\(\s*printf\s+)?"([^"]+)"')


def include_depth(chart: Path) -> tuple[int, list[str]]:
    """Return the longest chain of includes in a chart, counted in includes, and the names on it.

    A name that `printf` makes counts as every definition that it can name; a template that includes itself counts once.
    """
    texts = _template_texts(chart)
    calls = {name: list(_included_names(text, texts)) for name, text in texts.items()}
    chains = (_longest_chain(calls, (name,)) for name in texts if name.startswith("templates/"))
    longest = max(chains, key=len)
    return len(longest) - 1, list(longest)


def long_lines(chart: Path, limit: int = 160) -> list[tuple[str, int, int]]:
    """Return file, number and length of each line of a chart's templates above a limit."""
    return [
        (path.relative_to(chart).as_posix(), number, len(line))
        for path in sorted((chart / "templates").rglob("*.*"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > limit
    ]


def _template_texts(chart: Path) -> dict[str, str]:
    """Return the text of each definition by its name, and what is outside of them by the file's path."""
    texts: dict[str, str] = {}
    for path in sorted((chart / "templates").rglob("*.*")):
        head, *rest = _DEFINE.split(path.read_text())
        texts[path.relative_to(chart).as_posix()] = head
        texts |= dict(zip(rest[::2], rest[1::2], strict=True))
    return texts


def _included_names(text: str, names: Mapping[str, str]) -> Iterator[str]:
    for found in _INCLUDE.findall(text):
        pattern = re.escape(found).replace("%s", r"[^.]+")
        yield from (name for name in names if re.fullmatch(pattern, name))


def _longest_chain(calls: Mapping[str, list[str]], chain: tuple[str, ...]) -> tuple[str, ...]:
    longer = (_longest_chain(calls, (*chain, name)) for name in calls[chain[-1]] if name not in chain)
    return max(longer, key=len, default=chain)
