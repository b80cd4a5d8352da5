"""Draw the pictures of `pictures.yaml` into docs/images as SVG; `--check` reports those that are out of date.

Phases and exit codes come from the code. A picture follows the reader's light or dark setting, on GitHub and in the
site; the text does not depend on a font.
"""

from __future__ import annotations

import re
import sys
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any, get_args

from chartgen.helm.yaml import load_file
from chartgen.library.workloads.common.files.transport import BROKEN
from chartgen.releases.status.readout import Phase

FOLDER = Path(__file__).parents[2] / "docs" / "images"
FACTS = {phase: phase for phase in get_args(Phase)} | {"broken": str(BROKEN)}
_WIDTH = 720
_LINE = 20
_COLUMNS = 96
_PAUSE = 2  # seconds from command to command
_TERMINAL = """
  rect { fill: #1e2129 }
  text { font: 11.5px ui-monospace, Menlo, Consolas, monospace; fill: #e6e9ef; animation: shown 0.1s both }
  .typed { fill: #4db6ac; font-weight: 600 }
  @keyframes shown { from { opacity: 0 } }
  @media (prefers-reduced-motion: reduce) { text { animation: none } }
"""
_STYLE = """
  .paper { fill: #ffffff }
  .box { fill: #f2f6f8; stroke: #5b7083 }
  .own { fill: #d9f2ee; stroke: #00796b }
  .bad { fill: #fde4e1; stroke: #b3261e }
  .line { stroke: #5b7083; fill: none; stroke-width: 1.5 }
  .tip { fill: #5b7083 }
  text { font: 14px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2933 }
  .title { font-weight: 600; font-size: 15px }
  .label { font-size: 13px; fill: #44546a; text-anchor: middle }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #1e2129 }
    .box { fill: #2a2f3a; stroke: #8a9bb0 }
    .own { fill: #12413b; stroke: #4db6ac }
    .bad { fill: #4d2320; stroke: #f2b8b5 }
    .line { stroke: #8a9bb0 }
    .tip { fill: #8a9bb0 }
    text { fill: #e6e9ef }
    .label { fill: #b6c2d1 }
  }
"""


def svg(picture: dict[str, Any]) -> str:
    """Return a picture as an SVG file."""
    height = picture["height"]
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">',
        f"<title>{escape(picture['about'])}</title>",
        f"<style>{_STYLE}</style>",
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
        '<path class="tip" d="M0 0 L8 4 L0 8 z"/></marker>',
        f'<rect class="paper" width="{_WIDTH}" height="{height}" rx="8"/>',
    ]
    for box in picture["boxes"]:
        rows += _box(box)
    for arrow in picture["arrows"]:
        rows += _arrow(arrow)
    return "\n".join([*rows, "</svg>"]) + "\n"


def recording(tutorial: str) -> str:
    """Return a terminal as an SVG file, in which the commands of the tutorial that have an answer run one by one."""
    lines = []
    for commands, answer in re.findall(r"```sh\n([^`]*)```\n\n```text\n([^`]*)```", tutorial):
        lines += [f"$ {line.removeprefix('! ')}" for line in commands.splitlines()]
        lines += [part for line in answer.splitlines() for part in wrap(line, _COLUMNS, drop_whitespace=False)] + [""]
    height = 24 + _LINE * len(lines)
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}">',
        "<title>A terminal: a job is checked, broken and rehearsed</title>",
        f"<style>{_TERMINAL}</style>",
        f'<rect width="{_WIDTH}" height="{height}" rx="8"/>',
    ]
    typed = 0
    for at, line in enumerate(lines):
        typed += line.startswith("$")
        kind = ' class="typed"' if line.startswith("$") else ""
        delay = f"animation-delay:{_PAUSE * typed - (1.8 if kind else 1):.1f}s"
        rows.append(
            f'<text{kind} style="{delay}" x="16" y="{28 + _LINE * at}" xml:space="preserve">{escape(line)}</text>'
        )
    return "\n".join([*rows, "</svg>"]) + "\n"


def _box(box: dict[str, Any]) -> list[str]:
    x, y, width = box["at"]
    lines = box["text"].format(**FACTS).splitlines()
    height = 16 + _LINE * len(lines)
    rows = [f'<rect class="{box["kind"]}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>']
    for at, line in enumerate(lines):
        title = ' class="title"' if at == 0 else ""
        rows.append(f'<text{title} x="{x + 12}" y="{y + 24 + _LINE * at}">{escape(line)}</text>')
    return rows


def _arrow(arrow: dict[str, Any]) -> list[str]:
    path = " L".join(f"{x} {y}" for x, y in arrow["points"])
    rows = [f'<path class="line" marker-end="url(#tip)" d="M{path}"/>']
    if "label" in arrow:
        x, y = arrow["label"]["at"]
        rows.append(f'<text class="label" x="{x}" y="{y}">{escape(arrow["label"]["text"])}</text>')
    return rows


def main() -> None:
    """Write the pictures, or report which are out of date."""
    pictures: Any = load_file(Path(__file__).with_suffix(".yaml")).data
    drawn = {FOLDER / name: svg(picture) for name, picture in pictures.items()}
    drawn[FOLDER / "terminal.svg"] = recording((FOLDER.parent / "tutorial.md").read_text())
    if "--check" in sys.argv:
        stale = [path.name for path, text in drawn.items() if not path.is_file() or path.read_text() != text]
        sys.exit(f"out of date; run `make pictures`: {', '.join(stale)}" if stale else 0)
    for path, text in drawn.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
