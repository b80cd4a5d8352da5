"""The page on stability: its table of exit codes is true of its own examples, and it lists every JSON answer."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from answer_schemas import shapes
from doc_runner import REPOSITORY
from userlib import chartgen

from chartgen.errors import ChartgenError, MissingToolError, UsageError

PAGE = (REPOSITORY / "docs" / "reference" / "stability.md").read_text()
CODES = [(int(code), line) for code, line in re.findall(r"^\| (\d) \| .* \| `(.*)` \|$", PAGE, re.MULTILINE)]
# The other places that document the codes; each is a regular expression for the part of its text with them.
PLACES = {
    "README.md": r"Exit codes:.*?\n\n",
    "docs/how-to/lint-in-ci.md": r"\| exit code \|.*?\n\n",
    "chartgen/cli/__init__.py": r"Exit codes:.*?\n",
}


def test_codes_are_those_of_the_errors() -> None:
    errors = (ChartgenError, UsageError, MissingToolError)
    assert [code for code, _ in CODES] == [0, *(error.exit_code for error in errors)]


@pytest.mark.parametrize(("code", "line"), CODES)
def test_the_example_of_an_exit_code(code: int, line: str) -> None:
    *variables, words = re.split(r"(?<==missing) ", line)
    env = dict(each.split("=") for each in variables)
    ran = chartgen(*shlex.split(words)[1:], env=env)
    assert ran.exit_code == code, ran.output


@pytest.mark.parametrize("place", PLACES)
def test_other_places_have_the_same_codes(place: str) -> None:
    match = re.search(PLACES[place], Path(REPOSITORY, place).read_text(), re.DOTALL)
    assert match
    assert re.findall(r"(?:^\| |^|[:,] )(\d)(?= )", match[0], re.MULTILINE) == ["0", "1", "2", "3"]


def test_every_answer_is_listed() -> None:
    assert sorted(re.findall(r"^\| `([a-z-]+/v\d+)` \|", PAGE, re.MULTILINE)) == sorted(shapes())
