"""Read many lines of one layout at once: a regular expression matches all lines, and its groups become columns.

Most lines of a long log differ only in their numbers. A reader describes such a line once, with an expression that
matches only lines that it would read in the same way one by one. If any line does not match, it reads all one by one.
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
#: A number in the format of all programs; float() rejects invalid ones.
NUMBER = rb"[-+\d.eE]+|nan|-?inf"
#: A step; longer numbers are not steps, and do not fit into a column.
STEP = rb"\d{1,18}"


#: The common layout of a run's lines: an expression for a whole line, and the names of its groups.
Layout: TypeAlias = tuple[re.Pattern[bytes], tuple[str, ...]]


class Layouts:
    """Keeps the layout of the previous lines.

    Args:
        learn: Returns the layout of a line; None when its layout is not a common one.
    """

    def __init__(self, learn: Callable[[bytes], Layout | None]) -> None:
        self._learn = learn
        self._layout: Layout | None = None

    def columns(self, lines: Lines) -> dict[str, Sequence[bytes]]:
        """Return the groups of some lines; nothing unless all lines have the same layout."""
        rows = self._rows(lines.text)
        if len(rows) != lines.total:
            layout = self._learn(lines.text[: lines.text.find(b"\n")])
            if layout == self._layout:
                return {}
            self._layout = layout
            rows = self._rows(lines.text)
        if len(rows) != lines.total or self._layout is None:
            return {}
        # a row that repeats immediately counts once
        columns = zip(*[row for row, _ in groupby(rows)], strict=True)
        return dict(zip(self._layout[1], columns, strict=True))

    def _rows(self, text: bytes) -> list[tuple[bytes, ...]]:
        return self._layout[0].findall(text) if self._layout else []


def steps_of(
    numbers: array[int], when: Sequence[float] | None, names: Sequence[str], texts: Texts, planned: int = 0
) -> Steps | None:
    """Join columns to steps.

    Args:
        numbers: The steps.
        when: Time of each line; None = unknown.
        names: Names of the values, by VALUES.
        texts: The values, most of them as text.
        planned: Steps of the whole run; 0 = unknown.

    Returns:
        The steps; None when they do not rise, or when one occurs twice at different times.

    Raises:
        ValueError: A value is not a number.
    """
    if not all(map(lt, numbers, numbers[1:])) or (when is not None and len(when) != len(numbers)):
        return None
    columns = {name: array("d", map(float, column)) for name, column in zip(names, texts, strict=True)}
    return Steps(numbers, array("d", [NEVER]) * len(numbers) if when is None else array("d", when), columns, planned)


def scaled(column: array[float], factor: float) -> array[float]:
    """Return a column in another unit."""
    return array("d", [value * factor for value in column])
