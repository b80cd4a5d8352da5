"""Findings: the reports of checks and lint, each with a stable id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from chartgen.errors import Problem

Severity: TypeAlias = Literal["error", "warning", "unchecked"]
# `breaks`: breaks a release, or changes it without its owner's knowledge. `style`: good practice, which lint reports
# on request and for charts of chartgen.
Level: TypeAlias = Literal["breaks", "style"]

# An `unchecked` finding of these rules leaves the result of the command open: it exits as for a missing tool.
TARGET_UNKNOWN = "target-is-known"
NOT_OURS = "chart-is-of-chartgen"
REFUSED = "refused-by-the-chart"
NOT_RENDERED = "chart-is-rendered"
LEFT_OUT = "charts-are-linted"
# Lint that did not finish: without a finding, the chart would seem sound.
UNFINISHED = "lint-finishes"
_UNANSWERED = (TARGET_UNKNOWN, NOT_OURS, REFUSED, NOT_RENDERED, LEFT_OUT, UNFINISHED)


class PartProblem(NamedTuple):
    """What a rule reports about one thing, such as a rendered object or a scalar."""

    message: str  # what is wrong, without the thing's name
    hint: str = ""  # how to fix it; empty for the hint of the rule
    at: tuple[str | int, ...] = ()  # key path of the fault inside the thing; empty for the thing itself
    # The privilege that a stated reason can allow, with its folder and container; empty if no reason can
    privilege: str = ""
    line: int = 0  # 1-based line in the text at `at`, for a script; 0 for the whole text
    # Whether the complaint counts, given the text of the template that made the thing; None for always
    is_satisfied: Callable[[str], bool] | None = None
    # A text of the thing; the complaint does not count if a file of the chart contains it. Empty for always.
    quote: str = ""


class KeyProblem(NamedTuple):
    """What a check of a job reports, before the file of the value is known."""

    key: str  # the dotted key of the value to change first
    message: str  # what is wrong, with the numbers in it
    hint: str = ""  # what to do instead: a working alternative where one is known; empty for the hint of the rule
    also: tuple[str, ...] = ()  # keys that play a part; the finding is at the first of all that the user has set
    # The key path of `key` where its dots are ambiguous, as below a list; the finding is at the nearest key that the
    # user has set
    at: tuple[str | int, ...] = ()


ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
ASK_THE_FINDING = "change the value that the finding names, as the finding suggests"


class Rule(NamedTuple):
    """One kind of finding, with its documentation."""

    id: str  # the stable id
    about: str = ""  # what the rule checks, and why; empty if the docstring of the function states it
    remedy: str = ASK_THE_FINDING  # the fix; an ellipsis replaces the numbers and names of a finding
    source: str = ""  # the document or code of the limit; empty when the limit is chartgen's own
    severity: Severity = "error"  # an error rejects the job or the chart; a warning is only shown
    # Yields what is wrong; missing for findings of a whole step of a command
    function: Callable[..., Iterable[Any]] = tuple
    tasks: tuple[str, ...] = ("train",)  # for checks of jobs, the launcher tasks that it applies to: train, data, test
    step: str = ""  # for rules of lint, its step

    @classmethod
    def of(
        cls, function: Callable[..., Iterable[Any]], source: str = "", severity: Severity = "error", **facts: Any
    ) -> Rule:
        """Return the rule of a function; its id is the function's name with dashes."""
        return cls(function.__name__.replace("_", "-"), source=source, severity=severity, function=function, **facts)

    @property
    def hint(self) -> str:
        """The remedy if it is the same for all findings; else empty, and each finding brings its own."""
        return "" if ELLIPSIS in self.remedy or self.remedy == ASK_THE_FINDING else self.remedy

    @property
    def meaning(self) -> str:
        """The text that documents the rule; a docstring is read from its source if `python -OO` has removed it."""
        return self.about or " ".join((self.function.__doc__ or _docstring(self.function)).split())


def rule(
    source: str = "", severity: Severity = "error", **facts: Any
) -> Callable[[Callable[..., Iterable[Any]]], Rule]:
    """Return a decorator that makes a function a rule, as `Rule.of` does."""
    return lambda function: Rule.of(function, source, severity, **facts)


def rules_in(names: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Return the rules among the names of a module, in its order."""
    return tuple(each for each in names.values() if isinstance(each, Rule))


def _docstring(function: Callable[..., object]) -> str:
    import ast
    import inspect

    (definition,) = ast.parse(inspect.getsource(function)).body
    return (ast.get_docstring(definition) if isinstance(definition, ast.FunctionDef) else None) or ""


class Finding(NamedTuple):
    """One finding of a check or of lint.

    Args:
        rule: Stable id of the check.
        problem: Where, what, and what to do instead.
        severity: An error rejects the job or the chart; a warning is only shown; `unchecked` means that a check
            could not run, and the hint names what is missing.
        key: Dotted key of the value to change; empty when no single value is at fault.
        level: Whether it breaks a release or only deviates from good practice.
    """

    rule: str
    problem: Problem
    severity: Severity = "error"
    key: str = ""
    level: Level = "breaks"

    def __str__(self) -> str:
        return f"{self.problem} [{self.rule}]"


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by place, drop duplicates, and mask secrets."""
    masked = (finding._replace(problem=finding.problem.masked) for finding in findings)
    unique = {(finding.rule, finding.problem.path, finding.problem.message): finding for finding in masked}
    return sorted(unique.values(), key=lambda f: (str(f.problem.path or ""), f.problem.line, f.rule, f.problem.message))


def row_of(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON data; `finding_of` reads it back."""
    path = finding.problem.path
    problem = finding.problem._replace(path=None if path is None else str(path))
    return {**finding._asdict(), "problem": [*problem], "file": isinstance(path, Path)}


def finding_of(row: dict[str, Any]) -> Finding:
    """Return the finding that `row_of` wrote."""
    message, path, line, column, hint, trail = row["problem"]
    problem = Problem(message, Path(path) if row["file"] else path, line, column, hint, tuple(trail))
    return Finding(row["rule"], problem, row["severity"], row["key"], row["level"])


def exit_code(findings: Iterable[Finding]) -> int:
    """Return the exit code of a command: 1 with an error, 3 if a check could not run, else 0."""
    found = list(findings)
    if any(finding.severity == "error" for finding in found):
        return 1
    return 3 if any(finding.severity == "unchecked" and finding.rule in _UNANSWERED for finding in found) else 0
