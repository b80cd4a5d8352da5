"""What a test of the network amounts to: the best bus bandwidth of each collective, and its course over the sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen.errors import MissingToolError, Problem
from chartgen.metrics.panels import BLUE, GREEN, ORANGE, RED
from chartgen.metrics.plot import check_kind, style
from chartgen.metrics.readers.nccl import Bandwidth

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLACES = {"out": "out of place", "in": "in place"}
_UNITS = ("B", "KiB", "MiB", "GiB")


def best(rows: Sequence[Bandwidth]) -> list[Bandwidth]:
    """Give the fastest row of each collective, in the order of the log."""
    fastest: dict[str, Bandwidth] = {}
    for row in rows:
        if row.operation not in fastest or row.busbw > fastest[row.operation].busbw:
            fastest[row.operation] = row
    return list(fastest.values())


def bandwidth_lines(rows: Sequence[Bandwidth]) -> list[str]:
    """Write the best figure of each collective, and what was wrong."""
    told = []
    for row in best(rows):
        wrong = sum(each.wrong for each in rows if each.operation == row.operation)
        said = f"{row.busbw:,.2f} GB/s busbw at {size_of(row.bytes)} {_PLACES[row.place]}, {row.time:,.0f} us"
        told.append(f"{row.operation or 'collective':<14} {said}{f', {wrong:,} elements wrong' if wrong else ''}")
    return told


def bandwidth_dict(rows: Sequence[Bandwidth]) -> dict[str, Any]:
    """Give all rows, and the best of each collective, as plain data."""
    return {"best": [row._asdict() for row in best(rows)], "rows": [row._asdict() for row in rows]}


def size_of(number: int) -> str:
    """Write a size in the largest unit that it reaches."""
    power = min((number.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{number / (1 << 10 * power):g} {_UNITS[power]}"


def plot_bandwidths(rows: Sequence[Bandwidth], path: Path, theme: str = "light") -> None:
    """Draw the bus bandwidth over the sizes, a line for each collective and place.

    Args:
        rows: What was measured.
        path: File to write: .png, .svg or .pdf.
        theme: light or dark.

    Raises:
        MissingToolError: matplotlib is not installed.
        UsageError: It is another kind of file.
    """
    check_kind(path)
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        hint = "pip install 'chartgen[plots]'"
        raise MissingToolError(Problem("pictures need matplotlib", hint=hint)) from error
    with rc_context(style(theme)):
        figure = Figure(figsize=(10, 5), layout="constrained")
        _draw(figure.subplots(), rows, dark=theme == "dark")
        figure.savefig(path, dpi=130)


def _draw(axes: Axes, rows: Sequence[Bandwidth], *, dark: bool) -> None:
    courses: dict[tuple[str, str], list[Bandwidth]] = {}
    for row in rows:
        courses.setdefault((row.operation, row.place), []).append(row)
    colours = dict(zip(dict.fromkeys(row.operation for row in rows), cycle((BLUE, ORANGE, GREEN, RED)), strict=False))
    for (operation, place), course in courses.items():
        line = "-" if place == "out" else "--"
        name = f"{operation} {_PLACES[place]}"
        sizes, figures = [row.bytes for row in course], [row.busbw for row in course]
        axes.plot(sizes, figures, line, color=colours[operation][dark], marker=".", label=name)
    axes.set_xscale("log", base=2)
    ticks = sorted({row.bytes for row in rows})[::3]
    axes.set_xticks(ticks, [size_of(each) for each in ticks], fontsize=8)
    axes.set_xlabel("size of the message")
    axes.set_ylabel("bus bandwidth, GB/s")
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, linewidth=0.5)
    axes.legend(frameon=False)
