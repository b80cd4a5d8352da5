"""Writes the tests of each threat into docs/reference/threats.md, from their marks `threat(number)`: `make threats`."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "threats.md"
_MARK = re.compile(r"^@pytest\.mark\.threat\((.*)\)$", re.MULTILINE)
_ROW = re.compile(r"^(\| (\d+) \|[^|]*\|[^|]*\|)[^|]*\|$", re.MULTILINE)


def marked() -> dict[int, list[str]]:
    """Return the number of each threat -> the files with its tests."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for number in {*re.findall(r"\d+", " ".join(_MARK.findall(path.read_text("utf-8"))))}:
            found[int(number)].append(f"`{path.relative_to(ROOT / 'tests')}`")
    return found


def numbers(page: str) -> list[int]:
    """Return the numbers of the rows of the table."""
    return [int(number) for _, number in _ROW.findall(page)]


def written(page: str) -> str:
    """Return the page with the last column of its table written again."""
    tests = marked()
    return _ROW.sub(lambda row: f"{row[1]} {', '.join(tests[int(row[2])])} |", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
