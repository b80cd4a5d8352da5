"""SECURITY.md names the tests that are marked with the threats of its table, and what else it names exists."""

from __future__ import annotations

import re

from threats import PAGE, ROOT, marked, numbers, written

TEXT = PAGE.read_text()


def test_each_row_has_the_tests_of_its_mark() -> None:
    """`make threats` writes them."""
    assert written(TEXT) == TEXT
    assert numbers(TEXT) == sorted(marked()) == list(range(1, len(marked()) + 1))


def test_every_test_that_the_page_names_exists() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert set(re.findall(r"`(test_\w+)`", TEXT)) <= set(re.findall(r"^def (test_\w+)", tests, re.MULTILINE))


def test_the_page_is_linked() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        assert "(SECURITY.md)" in (ROOT / name).read_text()


def test_the_commands_of_the_page_are_there() -> None:
    made = (ROOT / "Makefile").read_text()
    assert {target for target in re.findall(r"`make ([a-z-]+)", TEXT) if f"\n{target}:" not in made} == set()
