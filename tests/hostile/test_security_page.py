"""SECURITY.md names tests that there are, and a test for each of its threats."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "SECURITY.md").read_text()
ROWS = 14  # of the review that the page is about


def existing() -> set[str]:
    """Return the names of all tests."""
    parsed = [ast.parse(path.read_text()) for path in (ROOT / "tests").rglob("test_*.py")]
    functions = [node for tree in parsed for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in functions if node.name.startswith("test_")}


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 50
    assert named <= existing()


def test_every_threat_has_a_test() -> None:
    table = PAGE.partition("## Threats")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \|.*\|([^|]*)\|$", table, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, ROWS + 1))
    assert all(re.search(r"`test_\w+`", named) for _, named in rows)


def test_the_page_is_linked() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        assert "(SECURITY.md)" in (ROOT / name).read_text()


def test_the_commands_of_the_page_are_there() -> None:
    made = (ROOT / "Makefile").read_text()
    assert {target for target in re.findall(r"`make ([a-z-]+)", PAGE) if f"\n{target}:" not in made} == set()
