"""Several runs over each other: the panels of one, with the lines of its baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from chartgen.metrics.report_data import RunFigures
from chartgen.metrics.show.compare import Comparison
from chartgen.metrics.show.panels import Panel, panels

# How the baselines are drawn, in their order; further ones repeat them. The style sheet has a class for each.
STROKES = ("grey", "grey, dashed", "grey, dotted", "grey, dashed and dotted")


class ComparedRun(NamedTuple):
    """A baseline of a run; its figures are None if only its speed is known."""

    name: str
    comparison: Comparison
    figures: RunFigures | None


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
    lines = [f"{STROKES[at % len(STROKES)]}: {Path(name).name}" for at, (name, _) in enumerate(others)]
    return Overlay(shown, min(steps), max(steps), ["coloured: this run", *lines] if lines else [])


def _over(panel: Panel, other: Panel, number: int) -> Panel:
    """Return a panel with the lines of another run below its own."""
    low, high = min(panel.low, other.low), max(panel.high, other.high)
    drawn = [course._replace(run=number) for course in other.courses if not course.lost]
    beyond = [each for each in panel.beyond if not low <= each.value <= high]
    return replace(panel, courses=[*drawn, *panel.courses], low=low, high=high, beyond=beyond)
