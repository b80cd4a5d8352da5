"""Results of the doctor: one line per check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class Diagnosis:
    """Result of a check.

    Args:
        name: Stable id of the check, such as queue-quota; empty until the examination sets it.
        status: The outcome; a failure prevents the release from running.
        text: The finding, with numbers.
        fix: The command or step that fixes the problem; empty when nothing is to do.
    """

    name: str
    status: Status
    text: str
    fix: str = ""


def passed(text: str) -> Diagnosis:
    """Return the result of a passed check."""
    return Diagnosis("", "pass", text)


def warned(text: str, fix: str) -> Diagnosis:
    """Return a warning: the release can run, but the user should know about it."""
    return Diagnosis("", "warn", text, fix)


def failed(text: str, fix: str) -> Diagnosis:
    """Return a failure: it prevents the release from running."""
    return Diagnosis("", "fail", text, fix)
