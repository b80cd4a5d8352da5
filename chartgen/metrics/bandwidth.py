"""What a test of the network amounts to: the best bus bandwidth of each collective, and its course over the sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from chartgen.errors import MissingToolError, Problem, UsageError
from chartgen.metrics.lines import STDIN, find_logs, read_blocks
from chartgen.metrics.panels import BLUE, GREEN, ORANGE, RED
from chartgen.metrics.readers.nccl import MARK, Bandwidth, read_rows

_KINDS = (".png", ".svg", ".pdf")
_PLACES = {"out": "out of place", "in": "in place"}
_UNITS = ("B", "KiB", "MiB", "GiB")


def find_bandwidths(places: Sequence[str]) -> list[Bandwidth]:
    """Read one log of a test of the network; another log, several and the standard input have none.

    Raises:
        ChartgenError: The log cannot be read.
    """
    if len(places) != 1 or places[0] == STDIN or not Path(places[0]).is_file():
        return []
    (place,) = find_logs(places)
    blocks = read_blocks(place)
    first = next(blocks, b"")
    if MARK not in first:
        return []
    text = b"".join(chain((first,), blocks)).decode(errors="replace")
    return read_rows(text.splitlines())


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


def plot_bandwidths(rows: Sequence[Bandwidth], path: Path) -> None:
    """Draw the bus bandwidth over the sizes, a line for each collective and place.

    Args:
        rows: What was measured.
        path: File to write: .png, .svg or .pdf.

    Raises:
        MissingToolError: matplotlib is not installed.
        UsageError: It is another kind of file.
    """
    if path.suffix not in _KINDS:
        raise UsageError(Problem(f"{path.name} is no picture", hint=f"name it {', '.join(_KINDS)}"))
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        hint = "pip install 'chartgen[plots]'"
        raise MissingToolError(Problem("pictures need matplotlib", hint=hint)) from error
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.subplots()
    courses: dict[tuple[str, str], list[Bandwidth]] = {}
    for row in rows:
        courses.setdefault((row.operation, row.place), []).append(row)
    colours = dict(zip(dict.fromkeys(row.operation for row in rows), (BLUE, ORANGE, GREEN, RED), strict=False))
    for (operation, place), course in courses.items():
        line = "-" if place == "out" else "--"
        name = f"{operation} {_PLACES[place]}"
        sizes, figures = [row.bytes for row in course], [row.busbw for row in course]
        axes.plot(sizes, figures, line, color=colours[operation][0], marker=".", label=name)
    axes.set_xscale("log", base=2)
    ticks = sorted({row.bytes for row in rows})[::3]
    axes.set_xticks(ticks, [size_of(each) for each in ticks], fontsize=8)
    axes.set_xlabel("size of the message")
    axes.set_ylabel("bus bandwidth, GB/s")
    axes.set_ylim(bottom=0)
    axes.grid(visible=True, linewidth=0.5)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=130)
