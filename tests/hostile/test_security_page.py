"""The table of threats names the files with tests of each, and what the pages on security name exists."""

from __future__ import annotations

import re

from threats import PAGE, ROOT, marked, numbers, written

TEXT = PAGE.read_text()
FUZZER = (ROOT / "docs" / "explanation" / "fuzzer.md").read_text()


def test_each_row_has_the_tests_of_its_mark() -> None:
    """`make threats` writes them."""
    assert written(TEXT) == TEXT
    assert numbers(TEXT) == sorted(marked()) == list(range(1, len(marked()) + 1))


def test_every_test_that_the_page_names_exists() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert set(re.findall(r"`(test_\w+)`", FUZZER)) <= set(re.findall(r"^def (test_\w+)", tests, re.MULTILINE))


def test_the_commands_of_the_pages_are_there() -> None:
    made = (ROOT / "Makefile").read_text()
    assert {target for target in re.findall(r"`make ([a-z-]+)", TEXT + FUZZER) if f"\n{target}:" not in made} == set()
