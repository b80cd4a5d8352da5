"""The report of a run: one HTML file with its pictures, figures and configuration, that loads nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from chartgen.metrics.facts import NAMES
from chartgen.metrics.panels import Panel, axis_title, legend, marks, panels
from chartgen.metrics.readout import Readout
from chartgen.metrics.svg import draw
from chartgen.metrics.text import rows
from chartgen.visible import visible

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --ink: #222; --soft: #666; --grid: #ddd; --all: .15; --most: .3; }
@media (prefers-color-scheme: dark) { :root { --ground: #15181c; --ink: #e6e6e6; --soft: #a0a6ad; --grid: #3a3f46;
  --all: .35; --most: .45; } }
body { background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin-top: 2rem; }
body > svg { display: block; width: 100%; height: auto; margin: .5rem 0; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .25rem .5rem;
  border-bottom: 1px solid var(--grid); overflow-wrap: anywhere; }
th { font-weight: 600; white-space: nowrap; width: 12rem; }
.notice { border-left: 4px solid var(--ink); padding-left: .75rem; } .soft { color: var(--soft); }
.grid { stroke: var(--grid); stroke-width: 1; } .tick { fill: var(--soft); font-size: 11px; } .end { text-anchor: end; }
.middle { text-anchor: middle; } .title { fill: var(--ink); font-size: 13px; font-weight: 600; }
.line, .lost { fill: none; stroke: var(--c); stroke-width: 1.6; stroke-linejoin: round; }
.lost { stroke-width: 1; stroke-dasharray: 1.5 2.5; } .again { fill: var(--ink); opacity: .12; }
.all { fill: var(--c); opacity: var(--all); } .most { fill: var(--c); opacity: var(--most); }
.mark { fill: var(--ink); } .odd { stroke: var(--ink); stroke-width: 2; }
.restart { stroke: var(--ink); stroke-width: 1.2; stroke-dasharray: 5 4; }
"""
_SIGNS = {"restart": "\u2506", "lost": "\u2591", "checkpoint": "\u25b2", "odd": "\u2715"}


def page(found: Readout) -> str:
    """Write the report of a run.

    Args:
        found: The run.

    Returns:
        An HTML document; it follows the reader's light or dark theme.
    """
    name = escape(Path(found.log.places[0]).name)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}</title><style>{_STYLE}{_colours(panels(found))}</style></head><body>",
        f"<h1>{name}</h1>",
        *(f'<p class="notice">{escape(each.severity)}: {escape(str(each))}</p>' for each in found.notices),
        *_pictures(found),
        "<h2>Figures</h2>",
        _table(rows(found)),
        "<h2>Facts that the figures are worked out from</h2>",
        _table((NAMES[fact], _write(value)) for fact, value in found.facts.known.items()),
        *_configuration(found),
        "</body></html>",
    ]
    return visible("\n".join(parts) + "\n")


def _colours(shown: list[Panel]) -> str:
    light = "".join(f".c{index} {{ --c: {panel.colours[0]}; }}" for index, panel in enumerate(shown))
    dark = "".join(f".c{index} {{ --c: {panel.colours[1]}; }}" for index, panel in enumerate(shown))
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n"


def _pictures(found: Readout) -> Iterator[str]:
    shown, happened = panels(found), marks(found)
    numbers = found.log.track.numbers
    steps = (min(numbers), max(numbers))
    for index, panel in enumerate(shown):
        yield draw(panel, happened, steps, index)
    if shown:
        signs = [f"{_SIGNS[kind]} {text}" for kind, text in legend(happened).items()]
        yield f'<p class="soft">{escape("; ".join([axis_title(found), *signs]))}</p>'


def _configuration(found: Readout) -> Iterator[str]:
    settings = next((section for section in reversed(found.log.sections) if section), {})
    if settings:
        yield "<details><summary>Configuration in the log</summary>"
        yield _table(sorted(settings.items()))
        yield "</details>"


def _table(pairs: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> str:
    lines = [f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in pairs]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _write(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
