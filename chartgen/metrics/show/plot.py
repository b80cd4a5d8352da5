"""The picture of a run in a file."""

from __future__ import annotations

from pathlib import Path

from chartgen.errors import Problem, UsageError
from chartgen.files import write_whole
from chartgen.metrics.report_data import RunFigures
from chartgen.metrics.show.panels import axis_title, legend, marks, panels
from chartgen.metrics.show.svg import StepAxis, picture, signs
from chartgen.metrics.show.text import figure_rows


def plot(figures: RunFigures, path: Path, theme: str = "light") -> None:
    """Draw step time, loss, throughput and memory over the steps, with restarts and checkpoints.

    Args:
        path: File to write: .svg.
        theme: light or dark.

    Raises:
        UsageError: It is another kind of file, or the log has too few steps for a picture.
    """
    check_kind(path)
    shown, happened = panels(figures), marks(figures)
    if not shown:
        raise UsageError(Problem("a picture needs two steps or more"))
    known = dict(figure_rows(figures))
    title = [Path(figures.log.places[0]).name, known.get("speed", ""), f"MFU {known['MFU']}" if "MFU" in known else ""]
    below = "; ".join([axis_title(figures), *signs(legend(happened))])
    numbers = figures.log.track.numbers
    axis = StepAxis(min(numbers), max(numbers))
    write_whole(path, picture([*filter(None, title), below], shown, happened, axis, theme))


def check_kind(path: Path) -> None:
    """Check that a file is a picture.

    Raises:
        UsageError: It is not a picture.
    """
    if path.suffix != ".svg":
        hint = "name it .svg; a browser opens it, and rsvg-convert makes a .png or .pdf of it"
        raise UsageError(Problem(f"cannot draw {path.name}", hint=hint))
