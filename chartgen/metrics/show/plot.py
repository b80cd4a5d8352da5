"""The picture of a run, drawn with matplotlib (the extra `plots`)."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen.errors import MissingToolError, Problem, UsageError
from chartgen.files import write_whole
from chartgen.metrics.report_data import RunFigures
from chartgen.metrics.show.courses import Course
from chartgen.metrics.show.panels import EventMarks, Panel, axis_title, legend, marks, panels
from chartgen.metrics.show.text import figure_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_KINDS = (".png", ".svg", ".pdf")
# Colours of background, text and grid.
_GROUNDS = {"light": ("#ffffff", "#222222", "#d8d8d8"), "dark": ("#15181c", "#e6e6e6", "#3a3f46")}
_DASHES = (0, (4, 3))
# Opacity of the background of repeated steps.
_SHADE = 0.12
# Bands of all steps and of most steps, with their opacity on a light and on a dark background.
_BANDS = (("least", "most", (0.3, 0.4)), ("low", "high", (0.4, 0.5)))
_LOOKS: dict[str, dict[str, Any]] = {
    "restart": {"linestyle": _DASHES, "linewidth": 1.0},
    "lost": {"marker": "s", "markersize": 9, "linestyle": "", "alpha": _SHADE},
    "checkpoint": {"marker": "^", "markersize": 4, "linestyle": ""},
    "odd": {"marker": "x", "linestyle": ""},
}
# Positions of marks, as a share of a panel's height.
_BOTTOM, _TOP = 0.05, 0.93


def plot(figures: RunFigures, path: Path, theme: str = "light") -> None:
    """Draw step time, loss, throughput and memory over the steps, with restarts and checkpoints.

    Args:
        figures: The run.
        path: File to write: .png, .svg or .pdf.
        theme: light or dark.

    Raises:
        MissingToolError: matplotlib is not installed.
        UsageError: It is another kind of file, or the log has too few steps for a picture.
    """
    check_kind(path)
    shown = panels(figures)
    if not shown:
        raise UsageError(Problem("a picture needs two steps or more"))
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        hint = "pip install 'chartgen[plots]', or use --report, which needs nothing"
        raise MissingToolError(Problem("pictures need matplotlib", hint=hint)) from error
    with rc_context(style(theme)):
        figure = Figure(figsize=(10, 1.1 + 1.9 * len(shown)), layout="constrained")
        axes = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
        happened = marks(figures)
        for panel, each in zip(shown, axes, strict=True):
            _draw(each, panel, happened, _GROUNDS[theme][1], dark=theme == "dark")
        axes[-1].set_xlabel(axis_title(figures))
        axes[-1].xaxis.set_major_formatter("{x:,.0f}")
        figure.suptitle(_title(figures), x=0.01, ha="left", fontsize=11)
        _explain(figure, legend(happened), _GROUNDS[theme][1])
        save_figure(figure, path)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a picture, in one step."""
    drawn = BytesIO()
    figure.savefig(drawn, dpi=130, format=path.suffix.removeprefix("."))
    write_whole(path, drawn.getvalue())


def check_kind(path: Path) -> None:
    """Check that a file is a picture.

    Raises:
        UsageError: It is not a picture.
    """
    if path.suffix not in _KINDS:
        raise UsageError(Problem(f"cannot draw {path.name}", hint=f"name it {', '.join(_KINDS)}"))


def style(theme: str) -> dict[Any, Any]:
    """Return matplotlib's settings for a light or dark background."""
    ground, ink, grid = _GROUNDS[theme]
    inks = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink)
    grounds = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), ground)
    rest = {"axes.edgecolor": grid, "grid.color": grid, "axes.grid": True, "grid.linewidth": 0.6, "font.size": 9}
    return {**inks, **grounds, **rest, "axes.spines.top": False, "axes.spines.right": False}


def _draw(axes: Axes, panel: Panel, happened: EventMarks, ink: str, *, dark: bool) -> None:
    for course in panel.courses:
        _course(axes, course, panel.colours[dark], dark=dark)
    for first, last in happened.lost:
        axes.axvspan(first, last, color=ink, alpha=_SHADE, linewidth=0)
    for step in happened.restarts:
        axes.axvline(step, color=ink, linestyle=_DASHES, linewidth=1.0)
    place = axes.get_xaxis_transform()
    saved = happened.checkpoints
    axes.plot(saved, [_BOTTOM] * len(saved), "^", color=ink, markersize=4, transform=place)
    if panel.title == "loss":
        axes.plot(happened.odd, [_TOP] * len(happened.odd), "x", color=ink, transform=place)
    axes.set_ylim(panel.low, panel.high)
    axes.margins(x=0.01)
    axes.yaxis.set_major_formatter("{x:,.6g}")
    axes.set_title(panel.title, loc="left", fontsize=9)
    if panel.beyond:
        axes.set_title(panel.cut, loc="right", fontsize=8)
        for above, sign, edge in ((True, "^", 1.0), (False, "v", 0.0)):
            steps = [each.step for each in panel.beyond if (each.value > panel.high) == above]
            colour, edges = panel.colours[dark], [edge] * len(steps)
            if steps:  # unclipped marks count for the layout, which fails without any points
                axes.plot(steps, edges, sign, transform=place, color=colour, markersize=6, clip_on=False)


def _course(axes: Axes, course: Course, colour: str, *, dark: bool) -> None:
    steps = [each.step for each in course.bins]
    if course.lost:
        axes.plot(steps, [each.middle for each in course.bins], color=colour, linewidth=0.8, linestyle=":")
        return
    for low, high, strength in _BANDS:
        lows, highs = ([getattr(each, name) for each in course.bins] for name in (low, high))
        axes.fill_between(steps, lows, highs, color=colour, alpha=strength[dark], linewidth=0)
    marker = "o" if len(steps) == 1 else ""
    axes.plot(steps, [each.middle for each in course.bins], color=colour, linewidth=1.3, marker=marker, markersize=3)


def _explain(figure: Figure, explained: dict[str, str], ink: str) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=ink, label=text, **_LOOKS[kind]) for kind, text in explained.items()]
    if handles:
        figure.legend(handles=handles, loc="upper right", ncols=2, fontsize=8, frameon=False)


def _title(figures: RunFigures) -> str:
    known = dict(figure_rows(figures))
    parts = [known["speed"]] if "speed" in known else []
    parts += [f"MFU {known['MFU']}"] if "MFU" in known else []
    return "\n".join([Path(figures.log.places[0]).name, *parts])
