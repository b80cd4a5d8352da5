"""What a message has to tell whatever its wording: keys, names, numbers, paths, commands."""

from __future__ import annotations

from collections import Counter
from typing import Any


def missing(facts: str, message: str) -> list[str]:
    """Return the words of `facts` that a message lacks, in any order; marks around its words do not count."""
    words = Counter(map(_bare, message.split()))
    return sorted((Counter(map(_bare, facts.split())) - words).elements())


def has(facts: str) -> Any:
    """Return what is equal to every text with these words, for `assert lines == [has("nodes 8")]`."""
    return _Has(facts)


class _Has:
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, facts: str) -> None:
        self.facts = facts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and not missing(self.facts, other)

    def __repr__(self) -> str:
        return f"has({self.facts!r})"


def _bare(word: str) -> str:
    return word.strip(",.;:()'\"`")
