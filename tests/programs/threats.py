"""Writes the tests of each threat into the table of SECURITY.md, from their marks `threat(number)`: `make threats`."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "SECURITY.md"
TABLE = "\n## Threats"
_MARK = re.compile(r"pytest\.mark\.threat\(.*\)")
_ROW = re.compile(r"^(\| (\d+) \|[^|]*\|[^|]*\|)[^|]*\|$", re.MULTILINE)


def marked() -> dict[int, list[str]]:
    """Return the number of each threat -> the names of its tests, in the order of files and lines."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                for each in filter(_MARK.fullmatch, map(ast.unparse, node.decorator_list)):
                    for number in re.findall(r"\d+", each):
                        found[int(number)].append(f"`{node.name}`")
    return found


def numbers(page: str) -> list[int]:
    """Return the numbers of the rows of the table."""
    return [int(number) for _, number in _ROW.findall(page.partition(TABLE)[2].partition("\n## ")[0])]


def written(page: str) -> str:
    """Return the page with the last column of its table written again."""
    tests = marked()
    before, heading, rest = page.partition(TABLE)
    table, after, others = rest.partition("\n## ")
    table = _ROW.sub(lambda row: f"{row[1]} {', '.join(tests[int(row[2])])} |", table)
    return before + heading + table + after + others


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
