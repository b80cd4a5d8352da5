"""What a check says of a job, before anybody knows in which file the value stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from chartgen.checks.job import Job
from chartgen.findings import Severity
from chartgen.helm.yaml import Keys

Rule: TypeAlias = "Callable[[Job], Iterator[Claim]]"


@dataclass(frozen=True)
class Claim:
    """One thing that is wrong.

    Args:
        key: The dotted key of the value to change first.
        message: What is wrong, with the numbers in it.
        hint: What to do instead: a working alternative where one is known.
        also: Keys that play a part; the finding stands at the first of all that the user has set.
        at: The key path of `key` where its dots do not tell, as below a list; the finding stands at the nearest key
            that the user has set.
    """

    key: str
    message: str
    hint: str
    also: tuple[str, ...] = ()
    at: Keys = ()


@dataclass(frozen=True)
class Check:
    """One rule with what a reader must know of it.

    Args:
        rule: Yields a claim for each thing that is wrong; its docstring says what it looks for and why.
        source: The document or code that the limit comes from.
        severity: An error refuses the job; a warning is only shown.
        tasks: The tasks of a launcher that it is for: train, data, test.
    """

    rule: Rule
    source: str
    severity: Severity = "error"
    tasks: tuple[str, ...] = ("train",)

    @property
    def id(self) -> str:
        """Return the stable id: the rule's name with dashes."""
        return self.rule.__name__.replace("_", "-")
