"""The results of a network test: the best bus bandwidth of each collective, and its course over the sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from chartgen.errors import MissingToolError, Problem
from chartgen.metrics.read.readers.nccl import Bandwidth
from chartgen.metrics.show.panels import BLUE, GREEN, ORANGE, RED
from chartgen.metrics.show.plot import check_kind, save_figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    """Draw the bus bandwidth over the sizes, with a line for each collective and place.

    Args:
        rows: The measured rows.
        path: File to write: .png, .svg or .pdf.
        title: Name of the test.
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
        lines = [" ".join(line.split()) for line in bandwidth_lines(rows)[:4]]
        figure.suptitle("\n".join([title, *lines]), x=0.01, ha="left", fontsize=11)
        save_figure(figure, path)


def _draw(axes: Axes, rows: Sequence[Bandwidth], *, dark: bool) -> None:
    courses: dict[tuple[str, str], list[Bandwidth]] = {}
    for row in rows:
        courses.setdefault((name_of(row, rows), row.place), []).append(row)
    colours = dict(zip(dict.fromkeys(name for name, _ in courses), cycle((BLUE, ORANGE, GREEN, RED)), strict=False))
    for (name, place), course in courses.items():
        line = "-" if place == "out" else "--"
        sizes, figures = [row.bytes for row in course], [row.busbw for row in course]
        axes.plot(sizes, figures, line, color=colours[name][dark], marker=".", label=f"{name} {_PLACES[place]}")
    axes.set_xscale("log", base=2)
    tick_sizes = _sizes(rows)
    ticks = tick_sizes[:: max(len(tick_sizes) // 10, 1)]
    axes.set_xticks(ticks, [format_size(tick) for tick in ticks], fontsize=8)
    axes.set_xlim(tick_sizes[0] / 1.2, tick_sizes[-1] * 1.2)
    axes.set_xlabel("size of the message")
    axes.set_ylabel("bus bandwidth, GB/s")
    axes.set_ylim(bottom=0)
    axes.set_axisbelow(True)
    axes.grid(visible=True, linewidth=0.5)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    if tick_sizes[0] > min(row.bytes for row in rows):
        note = f"below {format_size(tick_sizes[0])} less than {_LITTLE * 100:.0f} % of the best"
        axes.set_title(note, loc="right", fontsize=8)


def _sizes(rows: Sequence[Bandwidth]) -> list[int]:
    """Return the sizes to draw: smaller ones show only latency and would fill the picture."""
    sizes, most = sorted({row.bytes for row in rows}), max(row.busbw for row in rows)
    first = min((row.bytes for row in rows if row.busbw >= _LITTLE * most), default=sizes[0])
    return sizes[max(sizes.index(first) - 1, 0) :]
