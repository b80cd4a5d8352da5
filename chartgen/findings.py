"""Findings: what checks and lint report, each with a stable id."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from chartgen.errors import Problem

Severity: TypeAlias = Literal["error", "warning", "unchecked"]
# What keeps a release from working, or changes it behind its owner's back; and good practice, which lint reports on
# request and for charts of chartgen.
Level: TypeAlias = Literal["breaks", "style"]

# Rules whose `unchecked` findings leave the question of a whole command open: it exits as for a missing tool.
TARGET_UNKNOWN = "target-is-known"
NOT_OURS = "chart-is-of-chartgen"
REFUSED = "refused-by-the-chart"
NOT_RENDERED = "chart-is-rendered"
_UNANSWERED = (TARGET_UNKNOWN, NOT_OURS, REFUSED, NOT_RENDERED)


@dataclass(frozen=True)
class Complaint:
    """What a rule says of one thing, such as a rendered object or a scalar.

    Args:
        message: What is wrong, without the thing's name.
        hint: What to do instead.
        at: Key path of what is wrong inside the thing; empty for the thing itself.
        privilege: The privilege that a stated reason allows, with its folder and container; empty when no reason does.
        line: 1-based line in the text at `at`, for a script; 0 for the text as a whole.
        holds: Whether the complaint counts, by the text of the template that made the thing; None for always.
    """

    message: str
    hint: str = ""
    at: tuple[str | int, ...] = ()
    privilege: str = ""
    line: int = 0
    holds: Callable[[str], bool] | None = None


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Args:
        rule: Stable id of the check.
        problem: Where, what, and what to do instead.
        severity: An error refuses the job or the chart; a warning is only shown; `unchecked` says that a check could
            not be made, with what would make it possible as the hint.
        key: Dotted key of the value to change; empty when no single value is at fault.
        level: Whether it breaks a release, or is good practice only.
    """

    rule: str
    problem: Problem
    severity: Severity = "error"
    key: str = ""
    level: Level = "breaks"

    def __str__(self) -> str:
        return f"{self.problem} [{self.rule}]"


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by place, drop what is told twice, and mask secrets."""
    told = (replace(each, problem=each.problem.masked) for each in findings)
    unique = {(each.rule, each.problem.path, each.problem.message): each for each in told}
    return sorted(unique.values(), key=lambda f: (str(f.problem.path or ""), f.problem.line, f.rule, f.problem.message))


def exit_code(findings: Iterable[Finding]) -> int:
    """Return the exit code of a command with these findings: 1 with an error, 3 where it could not look, else 0."""
    found = list(findings)
    if any(each.severity == "error" for each in found):
        return 1
    return 3 if any(each.severity == "unchecked" and each.rule in _UNANSWERED for each in found) else 0
