"""What a check reports of a job, before the file of the value is known."""

from __future__ import annotations

from typing import NamedTuple

from chartgen.helm.yaml import Keys


class KeyProblem(NamedTuple):
    """One thing that is wrong.

    Args:
        key: The dotted key of the value to change first.
        message: What is wrong, with the numbers in it.
        hint: What to do instead: a working alternative where one is known.
        also: Keys that play a part; the finding is at the first of all that the user has set.
        at: The key path of `key` where its dots are ambiguous, as below a list; the finding is at the nearest key
            that the user has set.
    """

    key: str
    message: str
    hint: str
    also: tuple[str, ...] = ()
    at: Keys = ()
