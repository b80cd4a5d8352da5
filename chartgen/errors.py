"""Errors as data: problems with a place and a fix, and the exceptions that carry them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Problem(NamedTuple):
    """One error: what is wrong, where, and how to fix it.

    Args:
        message: What is wrong, one sentence without a final stop.
        path: The file that contains it; None when the problem has no file.
        line: 1-based line; 0 when unknown.
        column: 1-based column; 0 when unknown.
        hint: How to fix it; empty when there is nothing to add.
        trail: The template calls that led there, outermost first, each as `path:line`.
    """

    message: str
    path: Path | str | None = None
    line: int = 0
    column: int = 0
    hint: str = ""
    trail: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = "" if self.path is None else str(self.path)
        if place and self.line:
            place += f":{self.line}" + (f":{self.column}" if self.column else "")
        text = f"{place}: {self.message}" if place else self.message
        from chartgen.masking import masked

        return masked(f"{text}; {self.hint}" if self.hint else text)

    @property
    def masked(self) -> Problem:
        """Return the problem with the secrets in its texts masked."""
        from chartgen.masking import masked

        path = masked(self.path) if isinstance(self.path, str) else self.path
        return self._replace(message=masked(self.message), path=path, hint=masked(self.hint))


class ChartgenError(Exception):
    """Base class of all errors that chartgen raises on purpose; `exit_code` is the exit code of the command.

    Args:
        problems: A sentence, one Problem, or several; all are reported at once, sorted by place.
    """

    exit_code = 1

    def __init__(self, problems: str | Problem | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        found = [problems] if isinstance(problems, Problem) else list(problems)
        self.problems = sorted(found, key=lambda p: (str(p.path or ""), p.line, p.column, p.message))
        super().__init__("\n".join(map(str, self.problems)))


class UsageError(ChartgenError):
    """The request names something unknown, or options that cannot be combined (exit 2)."""

    exit_code = 2


class MissingToolError(ChartgenError):
    """A required program or cluster is missing, too old or unreachable (exit 3)."""

    exit_code = 3


def refuse(problems: Iterable[Problem]) -> None:
    """Raise problems as one ChartgenError, if there are any."""
    if found := list(problems):
        raise ChartgenError(found)


def did_you_mean(word: str, known: Iterable[str], *, path: str = "") -> str:
    """Return a hint with the nearest known words, or with all of them when none is near and they are few.

    Args:
        word: The unknown word.
        path: What to write before each near word, such as `batch.`.
    """
    from difflib import get_close_matches

    names = sorted(known)
    near = [name for name in names if name.casefold() == word.casefold()]
    near = near or get_close_matches(word, names, n=3, cutoff=0.6)
    if near:
        return "did you mean " + " or ".join(path + name for name in near) + "?"
    return "known: " + ", ".join(names) if 0 < len(names) <= 12 else ""


def is_slip(word: str, other: str, shortest: int) -> bool:
    """Report whether a word is another one with one letter more, less or changed, or two swapped; digits are equal.

    Words below the shortest length differ in one letter by chance.
    """
    if min(len(word), len(other)) < shortest or re.findall(r"\d", word) != re.findall(r"\d", other):
        return False
    return any(
        word[:at] + word[at + 1 :] in (other, other[:at] + other[at + 1 :])
        or word == other[:at] + other[at + 1 :]
        or other == word[:at] + word[at : at + 2][::-1] + word[at + 2 :]
        for at in range(max(len(word), len(other)))
    )
