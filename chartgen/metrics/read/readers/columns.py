"""Many lines of one layout at once: one regular expression reads all lines of a text, and its groups become columns.

Most of a long log is lines that differ in their numbers only. A reader describes such a line once, by an expression
that matches no line which it would read differently one by one; any other line makes it read all of them so.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import lt
from typing import TypeAlias

from chartgen.metrics.read.events import NEVER, Steps
from chartgen.metrics.read.prefix import Lines

Texts: TypeAlias = Sequence[Sequence[bytes | float]]
#: A number as all programs write it; float() refuses what only looks like one.
NUMBER = rb"[-+\d.eE]+|nan|-?inf"
#: A step; longer ones are no steps, and do not fit a column.
STEP = rb"\d{1,18}"


#: What the lines of a run have in common: what matches a whole line, and what its groups are.
Layout: TypeAlias = tuple[re.Pattern[bytes], tuple[str, ...]]


class Layouts:
    """Remembers the layout of the lines before.

    Args:
        learn: Gives the layout of a line; None when it has none that many lines share.
    """

    def __init__(self, learn: Callable[[bytes], Layout | None]) -> None:
        self._learn = learn
        self._layout: Layout | None = None

    def columns(self, lines: Lines) -> dict[str, Sequence[bytes]]:
        """Return what the groups of some lines are; nothing unless all of them have one layout."""
        rows = self._rows(lines.text)
        if len(rows) != lines.total:
            layout = self._learn(lines.text[: lines.text.find(b"\n")])
            if layout == self._layout:
                return {}
            self._layout = layout
            rows = self._rows(lines.text)
        if len(rows) != lines.total or self._layout is None:
            return {}
        # a row that is told again at once, as bars are, counts once
        told = zip(*[row for row, _ in groupby(rows)], strict=True)
        return dict(zip(self._layout[1], told, strict=True))

    def _rows(self, text: bytes) -> list[tuple[bytes, ...]]:
        return self._layout[0].findall(text) if self._layout else []


def steps_of(
    numbers: array[int], when: Sequence[float] | None, names: Sequence[str], texts: Texts, planned: int = 0
) -> Steps | None:
    """Join columns to steps.

    Args:
        numbers: The steps.
        when: When each was written; None = not told.
        names: Names of the values, by VALUES.
        texts: The values, most of them as they were written.
        planned: Steps of the whole run; 0 = not told.

    Returns:
        The steps; None when they do not rise, or when one was told twice at different times.

    Raises:
        ValueError: A value is no number.
    """
    if not all(map(lt, numbers, numbers[1:])) or (when is not None and len(when) != len(numbers)):
        return None
    columns = {name: array("d", map(float, column)) for name, column in zip(names, texts, strict=True)}
    return Steps(numbers, array("d", [NEVER]) * len(numbers) if when is None else array("d", when), columns, planned)


def scaled(column: array[float], factor: float) -> array[float]:
    """Return a column in another unit."""
    return array("d", [value * factor for value in column])
