"""JSON answers: one form, written in one place, with a published schema that rejects anything else."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from answer_schemas import shapes
from answers import answer, checked
from jsonschema import ValidationError
from userlib import chartgen

import chartgen as package
from chartgen.answers import plain
from chartgen.errors import Problem
from chartgen.releases.status.pending import NotYet
from chartgen.releases.status.stacks import StackGroup
from chartgen.reports import FindingRow

CODE = Path(package.__file__).parent


def test_every_printed_answer_has_a_schema() -> None:
    texts = {path.name: path.read_text() for path in (CODE / "cli").glob("*.py")}
    named = {name for text in texts.values() for name in re.findall(r'"([a-z-]+/v\d+)"', text)}
    assert named <= set(shapes())
    assert {name for name, text in texts.items() if re.search(r"(echo|emit)\(.*dumps", text)} == set()


DAMAGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda data: data.pop("diagnoses"),
    lambda data: data.update(schema="chartgen/diagnoses/v2"),
    lambda data: data.update(more=1),
    lambda data: data["diagnoses"][0].pop("fix"),
    lambda data: data["diagnoses"][0].update(fix=3),
    lambda data: data["diagnoses"][0].update(status="passed"),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_schema_rejects_any_other_answer(damage: Callable[[dict[str, Any]], Any]) -> None:
    data = {
        "schema": "chartgen/diagnoses/v1",
        "diagnoses": [{"name": "queue", "status": "pass", "text": "a queue", "fix": None}],
    }
    checked(data)
    damage(data)
    with pytest.raises((ValidationError, KeyError, FileNotFoundError)):
        checked(data)


def test_what_is_unknown_is_null_and_names_of_the_user_stay() -> None:
    row = FindingRow("x", "error", "breaks", "wrong", line=None, column=2)
    assert plain(row) | {"severity": 0, "level": 0} == {
        "rule": "x",
        "severity": 0,
        "level": 0,
        "message": "wrong",
        "line": None,
        "column": 2,
        "path": None,
        "hint": None,
        "key": None,
    }
    assert plain({"MY_NAME": "", "speed": float("nan")}) == {"MY_NAME": "", "speed": None}
    when = datetime(2026, 1, 2, 3, 4, 5, 600, timezone.utc)
    assert plain([when, Path("a/b"), frozenset({"b", "a"})]) == ["2026-01-02T03:04:05+00:00", "a/b", ["a", "b"]]
    assert plain(StackGroup(ranks=(1,)))["error"] is None


def test_a_cause_that_may_only_be_a_delay_is_printed_as_any_other() -> None:
    assert (
        plain(NotYet("no report yet")) == plain(Problem("no report yet")) == {"message": "no report yet", "hint": None}
    )


def test_engines_are_listed_as_published() -> None:
    rows = answer(chartgen("engines", "list", "--output", "json").stdout)["engines"]
    assert {"name", "version", "path", "source"} == rows[0].keys()
