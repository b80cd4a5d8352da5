"""JSON answers of commands, each checked against its published schema."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator

SCHEMAS = Path(__file__).parents[2] / "schemas" / "output"


@cache
def _validator(name: str) -> Draft7Validator:
    program, form = name.split("/", 1)
    assert program == "chartgen", name
    return Draft7Validator(json.loads((SCHEMAS / f"{form.replace('/', '.')}.schema.json").read_text()))


def checked(data: Any) -> dict[str, Any]:
    """The answer, after a check against the schema that it names."""
    _validator(data["schema"]).validate(data)
    return dict(data)


def answer(text: str) -> dict[str, Any]:
    """The only answer in a text."""
    return checked(json.loads(text))


def answers(text: str) -> list[dict[str, Any]]:
    """The answers of a stream, one a line, or the only one."""
    try:
        return [answer(text)]
    except json.JSONDecodeError:
        return list(map(answer, text.splitlines()))


def findings(text: str) -> list[dict[str, Any]]:
    """The findings of `check` and `lint`."""
    return list(answer(text)["findings"])
