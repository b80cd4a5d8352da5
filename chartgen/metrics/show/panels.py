"""The content of a run's pictures: one panel for each course over the steps, and marks for events."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from chartgen.metrics.report_data import RunFigures
from chartgen.metrics.show.compare import ComparedRun
from chartgen.metrics.show.series import Bin, Course, courses

# Colours that are distinct for any colour vision (M. Okabe and K. Ito, Color Universal Design, 2008), each for a light
# and for a dark background; marks also differ in form.
BLUE, ORANGE, GREEN, RED = (
    ("#0072b2", "#56b4e9"),
    ("#b85c00", "#e69f00"),
    ("#007a5a", "#2fc79b"),
    ("#a8327d", "#cc79a7"),
)
# More bins than columns of a picture would overlap.
_BINS = 600
# An axis of step times shows at least this share of the median around it, and reaches at most this multiple of it.
_NOISE, _FAR = 0.1, 3.0
# More marks of a kind would overlap.
_MARKS = 60
# How the baselines are drawn, in their order; further ones repeat them. The style sheet has a class for each.
_STROKES = ("grey", "grey, dashed", "grey, dotted", "grey, dashed and dotted")
_SIGNS = {
    "restart": "\u2506 restart",
    "lost": "\u2591 repeated steps",
    "checkpoint": "\u25b2 checkpoint",
    "odd": "\u2715 NaN or infinite loss",
}


class Far(NamedTuple):
    """A value beyond an axis, at its step; if not `single`, at the middle of the neighbouring steps that include it."""

    step: float
    value: float
    single: bool

    def __str__(self) -> str:
        return f"{self.value:,.4g} {'at' if self.single else 'around'} step {self.step:,.0f}"


@dataclass(frozen=True)
class Panel:
    """One course over the steps."""

    title: str
    courses: list[Course]  # the course of each start of the run
    colours: tuple[str, str]  # on a light and on a dark background
    low: float
    high: float
    beyond: Sequence[Far] = ()  # values beyond the axis, by step

    @property
    def cut(self) -> str:
        """Return a note on steps beyond the axis; empty without such steps."""
        if not self.beyond:
            return ""
        farthest = max(self.beyond, key=lambda each: abs(each.value - self.high))
        count = len(self.beyond)
        return f"{count:,} beyond the axis, {farthest}{'' if count == 1 else ' the farthest'}"


class EventMarks(NamedTuple):
    """Steps with events."""

    # Restart, checkpoint or odd (a loss that is nan or infinite) -> the steps to mark
    steps: Mapping[str, Sequence[int]] = {}
    lost: Sequence[tuple[int, int]] = ()  # first and last of the repeated steps, for each start
    legend: Sequence[str] = ()  # what each mark means, after its sign


def panels(found: RunFigures) -> list[Panel]:
    """Return the panels with data: step time, loss, throughput, memory."""
    rows = [_panel(found, "seconds", "step time, s", BLUE), _panel(found, "loss", "loss", ORANGE), _evaluations(found)]
    rows += [_throughput(found), _panel(found, "memory", "memory of a GPU, GB", RED)]
    return [row for row in rows if row]


def _evaluations(figures: RunFigures) -> Panel | None:
    finite = [each for each in figures.evaluations if each.step >= 0 and math.isfinite(each.value)]
    drawn = [Course([Bin(float(evaluation.step), *[evaluation.value] * 5) for evaluation in finite], lost=False)]
    return _scaled("evaluation", drawn, ORANGE) if len(finite) > 1 else None


def marks(figures: RunFigures) -> EventMarks:
    """Return the steps to mark, of too many only some."""
    restarts = figures.timeline.restarts
    saved = {sign.step for sign in figures.log.checkpoints if sign.sign in ("start", "saved", "end")}
    kinds: dict[str, Sequence[int]] = {
        "restart": [restart.step for restart in restarts],
        "checkpoint": sorted(saved & {*figures.log.track.numbers}),
        "odd": figures.odd.get("loss", ()),
    }
    lost = [(restart.step, restart.step + restart.lost - 1) for restart in restarts if restart.lost]
    apart = {kind: math.ceil(len(steps) / _MARKS) or 1 for kind, steps in kinds.items()}
    drawn = {kind: f", 1 of {every} drawn" if every > 1 else "" for kind, every in apart.items()}
    there = {**kinds, "lost": lost}
    legend = [f"{sign}{drawn.get(kind, '')}" for kind, sign in _SIGNS.items() if there[kind]]
    return EventMarks({kind: steps[:: apart[kind]] for kind, steps in kinds.items()}, lost, legend)


def axis_title(figures: RunFigures) -> str:
    """Return the title of the step axis, with an explanation of line and bands when a point covers several steps."""
    if len(figures.log.track) <= _BINS:
        return "step"
    return "step (line: median of neighbouring steps; dark band: 90 % of them; light band: all)"


def _panel(figures: RunFigures, name: str, title: str, colours: tuple[str, str]) -> Panel | None:
    drawn = courses(figures, name, _BINS)
    return _steady(title, drawn, colours) if name == "seconds" else _scaled(title, drawn, colours)


def _throughput(figures: RunFigures) -> Panel | None:
    """Return the speed of each step: tokens/s/GPU when model and machines are known, otherwise the logged speed."""
    speed, times = figures.speed, figures.times
    if times and speed.tokens_per_gpu:
        work = speed.tokens_per_gpu * times.mean
        drawn = courses(figures, "seconds", _BINS)
        turned = [Course([_inverse(each, work) for each in course.bins], course.lost) for course in drawn]
        return _steady("tokens/s/GPU", turned, GREEN)
    for name, title in (("tokens", "tokens/s/GPU"), ("tflops", "TFLOPS/GPU, as logged")):
        if drawn := courses(figures, name, _BINS):
            return _steady(title, drawn, GREEN)
    return None


def _inverse(each: Bin, work: float) -> Bin:
    return Bin(each.step, *(work / value if value > 0 else math.nan for value in reversed(each[1:])))


def _steady(title: str, drawn: list[Course], colours: tuple[str, str]) -> Panel | None:
    """Return a panel for steady values: noise does not fill its axis, and outliers are on the axis or named."""
    known = _known(drawn)
    if len(known) < 2:
        return None
    middle = sorted(each.middle for each in known)[len(known) // 2]
    bottom = min(*(each.least for each in known), (1 - _NOISE) * middle)
    top = max(min(max(each.most for each in known), _FAR * middle), (1 + _NOISE) * middle)
    return _panel_of(title, drawn, colours, bottom, top)


def _scaled(title: str, drawn: list[Course], colours: tuple[str, str]) -> Panel | None:
    """Return a panel whose axis a few extreme steps, as at a start, do not flatten; None with fewer than two bins."""
    known = _known(drawn)
    if len(known) < 2:
        return None
    lows, highs = sorted(each.least for each in known), sorted(each.most for each in known)
    edge = int(0.02 * len(known))
    low, high = lows[edge], highs[-1 - edge]
    room = 0.5 * (high - low)
    return _panel_of(title, drawn, colours, max(lows[0], low - room), min(highs[-1], high + room))


def _known(drawn: list[Course]) -> list[Bin]:
    return [each for course in drawn for each in course.bins if math.isfinite(each.middle)]


def _panel_of(title: str, drawn: list[Course], colours: tuple[str, str], bottom: float, top: float) -> Panel:
    margin = 0.06 * (top - bottom) or 0.05 * abs(top) or 1.0
    # leave room at the bottom for the marks of checkpoints
    bottom, top = bottom - 2 * margin, top + margin
    known = [(each, each.least == each.most) for each in _known(drawn)]
    over = [Far(each.step, each.most, single) for each, single in known if each.most > top]
    under = [Far(each.step, each.least, single) for each, single in known if each.least < bottom]
    return Panel(title, drawn, colours, bottom, top, sorted([*over, *under]))


class Overlay(NamedTuple):
    """Panels of a run with the lines of its baselines, the first and last step, and what each kind of line is."""

    panels: list[Panel]
    first: int
    last: int
    lines: list[str]


def overlaid(figures: RunFigures, compared: Sequence[ComparedRun]) -> Overlay:
    """Return the panels of a run with the lines of those baselines whose steps are known."""
    others = [(each.name, each.figures) for each in compared if each.figures]
    steps = [step for run in (figures, *(other for _, other in others)) for step in run.log.track.numbers]
    shown = panels(figures)
    for number, (_, other) in enumerate(others, 1):
        theirs = {panel.title: panel for panel in panels(other)}
        shown = [_over(panel, theirs[panel.title], number) if panel.title in theirs else panel for panel in shown]
    lines = [f"{_STROKES[at % len(_STROKES)]}: {Path(name).name}" for at, (name, _) in enumerate(others)]
    return Overlay(shown, min(steps), max(steps), ["coloured: this run", *lines] if lines else [])


def _over(panel: Panel, other: Panel, number: int) -> Panel:
    """Return a panel with the lines of another run below its own."""
    low, high = min(panel.low, other.low), max(panel.high, other.high)
    drawn = [course._replace(run=number) for course in other.courses if not course.lost]
    beyond = [each for each in panel.beyond if not low <= each.value <= high]
    return replace(panel, courses=[*drawn, *panel.courses], low=low, high=high, beyond=beyond)
