"""The results of a network test: the best bus bandwidth of each collective, and its course over the sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from math import log2
from pathlib import Path

from chartgen.files import write_whole
from chartgen.metrics.read.readers.nccl import Bandwidth
from chartgen.metrics.show.panels import BLUE, GREEN, ORANGE, RED, EventMarks, Panel
from chartgen.metrics.show.series import Bin, Course
from chartgen.metrics.show.svg import StepAxis, check_kind, picture

# Share of the best bandwidth: smaller sizes that reach less are not drawn, except the largest of them.
_LITTLE = 0.02
_PLACES = {"out": "out of place", "in": "in place"}
_UNITS = ("B", "KiB", "MiB", "GiB")


def best(rows: Sequence[Bandwidth]) -> list[Bandwidth]:
    """Return the fastest row of each test and collective, in the order of the log."""
    fastest: dict[tuple[int, str], Bandwidth] = {}
    for row in rows:
        which = row.test, row.operation
        if which not in fastest or row.busbw > fastest[which].busbw:
            fastest[which] = row
    return list(fastest.values())


def name_of(row: Bandwidth, rows: Sequence[Bandwidth]) -> str:
    """Return the name of a test: its collective, and its number when the log contains several of the same."""
    tests = sorted({each.test for each in rows if each.operation == row.operation})
    name = row.operation or "collective"
    return f"{name} {tests.index(row.test) + 1}" if len(tests) > 1 else name


def bandwidth_lines(rows: Sequence[Bandwidth]) -> list[str]:
    """Return lines with the best figure of each collective, and with wrong elements."""
    lines = []
    for row in best(rows):
        wrong = sum(each.wrong for each in rows if (each.test, each.operation) == (row.test, row.operation))
        speed = (
            f"{row.busbw:,.2f} GB/s busbw at {format_size(row.bytes)} {_PLACES[row.place]}, {row.microseconds:,.0f} us"
        )
        lines.append(f"{name_of(row, rows):<14} {speed}{f', {wrong:,} elements wrong' if wrong else ''}")
    return lines


def format_size(number: int) -> str:
    """Format a size in the largest unit that it reaches."""
    power = min((number.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{number / (1 << 10 * power):g} {_UNITS[power]}"


def plot_bandwidths(rows: Sequence[Bandwidth], path: Path, title: str, theme: str = "light") -> None:
    """Draw bus bandwidth over the sizes, a panel for each collective; raise UsageError for a file of another kind."""
    check_kind(path)
    names = dict.fromkeys(name_of(row, rows) for row in rows)
    colours = cycle((BLUE, ORANGE, GREEN, RED))
    shown = [
        _panel([row for row in rows if name_of(row, rows) == name], name, colour)
        for name, colour in zip(names, colours, strict=False)
    ]
    sizes = _sizes(rows)
    axis = StepAxis(log2(sizes[0]), log2(sizes[-1]), "size", _tick)
    above = [title, *(" ".join(line.split()) for line in bandwidth_lines(rows)[:4])]
    below = "bus bandwidth in GB/s over the size of the message; dotted: in place"
    if sizes[0] > min(row.bytes for row in rows):
        below += f"; below {format_size(sizes[0])} less than {_LITTLE * 100:.0f} % of the best"
    write_whole(path, picture([*above, below], shown, EventMarks(), axis, theme))


def _panel(rows: Sequence[Bandwidth], name: str, colours: tuple[str, str]) -> Panel:
    places = [[row for row in rows if row.place == place] for place in _PLACES]
    drawn = [
        Course([Bin(log2(row.bytes), *[row.busbw] * 5) for row in course], lost=course[0].place == "in")
        for course in filter(None, places)
    ]
    return Panel(f"{name}, GB/s", drawn, colours, 0.0, 1.05 * max(row.busbw for row in rows) or 1.0)


def _tick(power: float) -> str:
    return format_size(1 << int(power))


def _sizes(rows: Sequence[Bandwidth]) -> list[int]:
    """Return the sizes to draw: smaller ones show only latency and would fill the picture."""
    sizes, most = sorted({row.bytes for row in rows}), max(row.busbw for row in rows)
    first = min((row.bytes for row in rows if row.busbw >= _LITTLE * most), default=sizes[0])
    return sizes[max(sizes.index(first) - 1, 0) :]
