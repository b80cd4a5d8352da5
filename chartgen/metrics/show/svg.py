"""Panels as SVG, drawn without a library; colours are classes of a style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from chartgen.errors import Problem, UsageError
from chartgen.files import write_whole
from chartgen.metrics.report_data import RunFigures
from chartgen.metrics.show.compare import ComparedRun
from chartgen.metrics.show.panels import EventMarks, Panel, axis_title, marks, overlaid
from chartgen.metrics.show.series import Bin, Course
from chartgen.metrics.show.text import figure_rows
from chartgen.visible import visible

_HEIGHT = 190
#: Pixels of a picture for a phone.
NARROW = 400
# Maximum number of marks beyond the axis, and of places that show their values.
_MARKED, _LABELLED = 50, 150
# Margins of the plot.
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 30, 24, 24
_LINE = 18
#: Variables of the style sheet on a light and on a dark background.
GROUNDS = {
    "light": "--ground: #fff; --ink: #222; --soft: #666; --grid: #ddd; --all: .3; --most: .4;",
    "dark": "--ground: #15181c; --ink: #e6e6e6; --soft: #a0a6ad; --grid: #3a3f46; --all: .4; --most: .5;",
}
#: Rules for the elements of a picture.
RULES = """
.hover { fill: var(--ink); opacity: 0; } .hover:hover { opacity: .08; } .far { fill: var(--c); }
.grid { stroke: var(--grid); stroke-width: 1; } .tick { fill: var(--soft); font-size: 12px; } .end { text-anchor: end; }
.middle { text-anchor: middle; } .title { fill: var(--ink); font-size: 13px; font-weight: 600; }
.line, .lost { fill: none; stroke: var(--c); stroke-width: 1.6; stroke-linejoin: round; }
.lost { stroke-width: 1; stroke-dasharray: 1.5 2.5; } .again { fill: var(--ink); opacity: .12; }
.all { fill: var(--c); opacity: var(--all); } .most { fill: var(--c); opacity: var(--most); }
.other { fill: none; stroke: var(--soft); stroke-width: 1.4; } .o2 { stroke-dasharray: 7 4; }
.o3 { stroke-dasharray: 2 3; } .o4 { stroke-dasharray: 8 3 2 3; }
.mark { fill: var(--ink); } .odd { stroke: var(--ink); stroke-width: 2; }
.restart { stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 5 4; }
"""


class StepAxis(NamedTuple):
    """The horizontal axis."""

    first: float
    last: float
    unit: str = "step"  # name of its values
    write: Callable[[float], str] = "{:,.0f}".format  # formats a value; only whole ones have ticks
    width: int = 960  # pixels of the picture; a phone needs a narrow one, since a scaled one has tiny letters


class Scale:
    """Converts steps and values to coordinates of the picture."""

    def __init__(self, axis: StepAxis, panel: Panel) -> None:
        self._first, self._scale = axis.first, (axis.width - _RIGHT - _LEFT) / max(axis.last - axis.first, 1)
        self._low, self._high = panel.low, panel.high

    def x(self, step: float) -> float:
        """Return the coordinate of a step."""
        return _LEFT + (step - self._first) * self._scale

    def y(self, value: float) -> float:
        """Return the coordinate of a value; a value far beyond the axis is just outside of it."""
        share = min(max((value - self._low) / (self._high - self._low), -1.0), 2.0)
        return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def draw(panel: Panel, happened: EventMarks, axis: StepAxis, number: int, y: int = 0) -> str:
    """Draw a panel, in the colour of a number in the style sheet."""
    scale = Scale(axis, panel)
    width, height = axis.width - _RIGHT - _LEFT, _HEIGHT - _TOP - _BOTTOM
    parts = [
        *_grid(panel, scale, axis),
        # an inner picture clips content beyond its edge
        f'<svg x="{_LEFT}" y="{_TOP}" width="{width}" height="{height}" viewBox="{_LEFT} {_TOP} {width} {height}">',
        *(part for course in panel.courses for part in _course(course, scale)),
        "</svg>",
        *_hover(panel, scale, axis),
        *_marks(panel, happened, scale),
        f'<text class="title" x="{_LEFT}" y="15">{escape(panel.title)}</text>',
    ]
    if panel.beyond:
        cut = panel.cut if axis.width > NARROW else panel.cut.partition(", ")[0]
        parts.append(f'<text class="tick end" x="{axis.width - _RIGHT}" y="15">{escape(cut)}</text>')
        parts += _beyond(panel, scale)
    box = f'y="{y}" width="{axis.width}" height="{_HEIGHT}" viewBox="0 0 {axis.width} {_HEIGHT}" role="img"'
    label = f'aria-label="{escape(panel.title)} over the {axis.unit}s"'
    return f'<svg class="c{number}" {box} {label}>\n' + "\n".join(parts) + "\n</svg>"


def picture(title: Sequence[str], shown: Sequence[Panel], happened: EventMarks, axis: StepAxis, theme: str) -> str:
    """Return panels as one picture; the title consists of the lines above them, and a last one below."""
    *above, below = title
    top = _LINE * len(above) + 8
    width, height = axis.width, top + _HEIGHT * len(shown) + _LINE
    style = f"svg {{ {GROUNDS[theme]} font-family: system-ui, sans-serif; }}{RULES}{colour_rules(shown, theme)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f'<style>{style}</style><rect width="100%" height="100%" style="fill: var(--ground)"/>',
        *(
            f'<text class="title" x="{_LEFT}" y="{_LINE * at}">{escape(line)}</text>'
            for at, line in enumerate(above, 1)
        ),
        f'<text class="tick" x="{_LEFT}" y="{height - 8}">{escape(below)}</text>',
        *(draw(panel, happened, axis, at, top + at * _HEIGHT) for at, panel in enumerate(shown)),
        "</svg>\n",
    ]
    return visible("\n".join(parts))


def colour_rules(shown: Sequence[Panel], theme: str) -> str:
    """Return the rules for the colours of some panels."""
    dark = theme == "dark"
    return "".join(f".c{number} {{ --c: {panel.colours[dark]}; }}" for number, panel in enumerate(shown))


def _grid(panel: Panel, scale: Scale, axis: StepAxis) -> Iterator[str]:
    for value in ticks(panel.low, panel.high, 6):
        y = scale.y(value)
        yield f'<line class="grid" x1="{_LEFT}" x2="{axis.width - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="tick end" x="{_LEFT - 6}" y="{y + 4:.1f}">{value:,.6g}</text>'
    for step in filter(float.is_integer, ticks(axis.first, axis.last, min(6, axis.width // 100))):
        x = scale.x(step)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
        yield f'<text class="tick middle" x="{x:.1f}" y="{_HEIGHT - 8}">{axis.write(step)}</text>'


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers in a range: 1, 2, 2.5 or 5 times a power of ten apart, at most `most` and one more."""
    rough = (high - low) / most or 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    size = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / size)
    return [round(index * size, 12) for index in range(first, math.floor(high / size) + 1)]


def _course(course: Course, scale: Scale) -> Iterator[str]:
    for run in _runs(course.bins):
        points = " ".join(f"{scale.x(each.step):.1f},{scale.y(each.middle):.1f}" for each in run)
        if course.run:
            yield f'<polyline class="other o{(course.run - 1) % 4 + 1}" points="{points}"/>'
            continue
        if course.lost:
            yield f'<polyline class="lost" points="{points}"/>'
            continue
        if len(run) > 1:
            yield f'<polygon class="all" points="{_band(run, scale, "least", "most")}"/>'
            yield f'<polygon class="most" points="{_band(run, scale, "low", "high")}"/>'
        yield f'<polyline class="line" points="{points}"/>'


def _runs(bins: Sequence[Bin]) -> Iterator[list[Bin]]:
    """Yield runs of bins without missing values."""
    run: list[Bin] = []
    for each in bins:
        if math.isfinite(each.middle):
            run.append(each)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _band(run: Sequence[Bin], scale: Scale, low: str, high: str) -> str:
    there = [f"{scale.x(each.step):.1f},{scale.y(getattr(each, high)):.1f}" for each in run]
    back = [f"{scale.x(each.step):.1f},{scale.y(getattr(each, low)):.1f}" for each in reversed(run)]
    return " ".join([*there, *back])


def _beyond(panel: Panel, scale: Scale) -> Iterator[str]:
    """Yield marks at the edge for steps beyond the axis, with their values."""
    for each in panel.beyond[:_MARKED]:
        x, above = scale.x(each.step), each.value > panel.high
        y, tip = (_TOP, -7) if above else (_HEIGHT - _BOTTOM, 7)
        title = f"<title>{escape(str(each))}</title>"
        yield f'<path class="far" d="M{x - 4:.1f},{y} h8 l-4,{tip} z">{title}</path>'


def _hover(panel: Panel, scale: Scale, axis: StepAxis) -> Iterator[str]:
    """Yield the elements that show values under the pointer."""
    for course in (course for course in panel.courses if not course.run):
        known = [each for each in course.bins if math.isfinite(each.middle)]
        group = math.ceil(len(known) / _LABELLED) or 1
        for at in range(0, len(known), group):
            some = known[at : at + group]
            left, right = scale.x(some[0].step), scale.x(known[min(at + group, len(known) - 1)].step)
            place = f'x="{left:.1f}" y="{_TOP}" width="{max(right - left, 2):.1f}" height="{_HEIGHT - _TOP - _BOTTOM}"'
            yield f'<rect class="hover" {place}><title>{escape(_words(some, axis))}</title></rect>'


def _words(some: Sequence[Bin], axis: StepAxis) -> str:
    first, last = some[0].step, some[-1].step
    steps = (
        f"{axis.unit} {axis.write(first)}"
        if first == last
        else f"{axis.unit}s {axis.write(first)} to {axis.write(last)}"
    )
    middle = sorted(each.middle for each in some)[len(some) // 2]
    least, most = min(each.least for each in some), max(each.most for each in some)
    return f"{steps}: {middle:,.6g}" + (f" ({least:,.6g} to {most:,.6g})" if least < most else "")


def _marks(panel: Panel, happened: EventMarks, scale: Scale) -> Iterator[str]:
    bottom = _HEIGHT - _BOTTOM
    for first, last in happened.lost:
        x = scale.x(first)
        place = f'x="{x:.1f}" y="{_TOP}" width="{scale.x(last) - x:.1f}" height="{bottom - _TOP}"'
        yield f'<rect class="again" {place}><title>steps {first:,} to {last:,} were repeated</title></rect>'
    for step in happened.steps.get("restart", ()):
        x = scale.x(step)
        line = f'<line class="restart" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}">'
        yield f"{line}<title>restart at step {step:,}</title></line>"
    for step in happened.steps.get("checkpoint", ()):
        x = scale.x(step)
        path = f"M{x - 4:.1f},{bottom - 3} h8 l-4,-7 z"
        yield f'<path class="mark" d="{path}"><title>checkpoint of step {step:,}</title></path>'
    if panel.title == "loss":
        for step in happened.steps.get("odd", ()):
            x = scale.x(step)
            path = f"M{x - 4:.1f},{_TOP + 4} l8,8 m0,-8 l-8,8"
            yield f'<path class="odd" d="{path}"><title>the loss of step {step:,} is NaN</title></path>'


def plot(figures: RunFigures, path: Path, theme: str = "light", compared: Sequence[ComparedRun] = ()) -> None:
    """Draw step time, loss, throughput and memory over the steps, with restarts and checkpoints.

    Raises:
        UsageError: It is another kind of file, or the log has too few steps for a picture.
    """
    check_kind(path)
    drawn, happened = overlaid(figures, compared), marks(figures)
    if not drawn.panels:
        raise UsageError(Problem("a picture needs two steps or more"))
    known = dict(figure_rows(figures))
    title = [Path(figures.log.places[0]).name, known.get("speed", ""), f"MFU {known['MFU']}" if "MFU" in known else ""]
    below = "; ".join([axis_title(figures), *drawn.lines, *happened.legend])
    lines = [*filter(None, title), *(each.comparison.sentence for each in compared), below]
    write_whole(path, picture(lines, drawn.panels, happened, StepAxis(drawn.first, drawn.last), theme))


def check_kind(path: Path) -> None:
    """Raise UsageError for a file that is not a picture."""
    if path.suffix != ".svg":
        hint = "name it .svg; a browser opens it, and rsvg-convert makes a .png or .pdf of it"
        raise UsageError(Problem(f"cannot draw {path.name}", hint=hint))
