"""What the doctor says: one line for each thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class Sign:
    """What a check found, before it gets the check's name.

    Args:
        status: Whether it is well; a failure keeps the release from running.
        text: What was found, with the numbers.
        fix: The command or step that cures it; empty when nothing has to be done.
    """

    status: Status
    text: str
    fix: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What a check found.

    Args:
        name: Stable id of the check, such as queue-quota.
        status: Whether it is well; a failure keeps the release from running.
        text: What was found, with the numbers.
        fix: The command or step that cures it; empty when nothing has to be done.
    """

    name: str
    status: Status
    text: str
    fix: str = ""


def passed(text: str) -> Sign:
    """Say that something is well."""
    return Sign("pass", text)


def warned(text: str, fix: str) -> Sign:
    """Say what a user should know, although the release can run."""
    return Sign("warn", text, fix)


def failed(text: str, fix: str) -> Sign:
    """Say what keeps the release from running."""
    return Sign("fail", text, fix)
