"""The report of a run: one self-contained HTML file with its pictures, figures and configuration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from chartgen.metrics.figures.facts import NAMES
from chartgen.metrics.report_data import RunFigures
from chartgen.metrics.show.compare import ComparedRun
from chartgen.metrics.show.panels import Panel, axis_title, marks, overlaid, panels
from chartgen.metrics.show.svg import GROUNDS, NARROW, RULES, StepAxis, colour_rules, draw
from chartgen.metrics.show.text import figure_rows, moment
from chartgen.visible import visible

_STYLE = f"""
:root {{ color-scheme: light dark; {GROUNDS["light"]} }}
@media (prefers-color-scheme: dark) {{ :root {{ {GROUNDS["dark"]} }} }}
body {{ background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.4rem; overflow-wrap: anywhere; }} h2 {{ font-size: 1.1rem; margin-top: 2rem; }}
.cards {{ display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; }}
.card {{ border: 1px solid var(--grid); border-radius: .5rem; padding: .5rem .9rem; min-width: 7rem; }}
.card b {{ display: block; font-size: 1.5rem; font-variant-numeric: tabular-nums; }}
.card span {{ color: var(--soft); }}
.picture > svg {{ display: block; width: 100%; height: auto; margin: .5rem 0; }}
table {{ border-collapse: collapse; width: 100%; }} th, td {{ text-align: left; vertical-align: top;
  padding: .25rem .5rem; border-bottom: 1px solid var(--grid); overflow-wrap: anywhere; }}
th {{ font-weight: 600; white-space: nowrap; width: 12rem; }}
.picture > svg[width="{NARROW}"] {{ display: none; max-width: 34rem; }}
@media (max-width: 47rem) {{ th {{ white-space: normal; width: 7rem; }} .picture > svg {{ display: none; }}
  .picture > svg[width="{NARROW}"] {{ display: block; }} }}
.notice {{ border-left: 4px solid var(--ink); padding-left: .75rem; }} .soft {{ color: var(--soft); }}
{RULES}"""


def html_report(figures: RunFigures, *, run: str, written: str, compared: Sequence[ComparedRun] = ()) -> str:
    """Return the report of a run.

    Args:
        run: Its name: its release, or its log.
        compared: Its baselines, which are drawn over it.

    Returns:
        An HTML document; it follows the reader's light or dark theme.
    """
    name = escape(run)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{name}</title><style>{_STYLE}{_colours(panels(figures))}</style></head><body>",
        f"<h1>{name}</h1>",
        f'<p class="soft">{escape(_origin(figures, written))}</p>',
        f'<div class="cards">{"".join(_cards(figures))}</div>',
        *(f'<p class="notice">{escape(notice.severity)}: {escape(str(notice))}</p>' for notice in figures.notices),
        *_pictures(figures, compared),
        *_comparison(compared),
        "<h2>Figures</h2>",
        _table(figure_rows(figures)),
        "<h2>Inputs</h2>",
        _table((NAMES[fact], _write(value)) for fact, value in figures.facts.known.items()),
        *_configuration(figures),
        "</body></html>",
    ]
    return visible("\n".join(parts) + "\n")


def _origin(figures: RunFigures, written: str) -> str:
    """Return the name of the log, the times of the run, and the version and time of the report."""
    from chartgen import __version__

    places = figures.log.places
    parts = [Path(places[0]).name if len(places) == 1 else f"{len(places)} files"]
    ends = [moment(when) for when in (figures.log.begun, figures.log.ended)]
    begun = ends[0] or moment(next(iter(figures.log.track.when), math.nan))
    parts += [f"run of {begun} to {ends[1]} UTC"] if begun and ends[1] else []
    return ", ".join([*parts, f"written {written} by chartgen {__version__}"])


def _cards(found: RunFigures) -> Iterator[str]:
    """Yield the most important figures."""
    speed, line, cost = found.speed, found.timeline, found.cost
    each = found.times.mean if found.times else found.derived.seconds if found.derived else None
    convention = {"given": "given FLOPs"}.get(found.attention, f"{found.attention} attention")
    tflops = (speed.tflops or {}).get(found.attention)
    figures = (
        (f"{each:,.4g} s" if each else "", "step time"),
        (f"{speed.tokens_per_gpu:,.0f}" if speed.tokens_per_gpu else "", "tokens/s/GPU"),
        (f"{tflops:,.1f}" if tflops else "", f"TFLOPS/GPU, {convention}"),
        (f"{speed.logged_tflops:,.1f}" if speed.logged_tflops and not tflops else "", "TFLOPS/GPU, as logged"),
        (f"{found.mfu * 100:.1f} %" if found.mfu is not None else "", "MFU"),
        (f"{found.score.seconds / 60:,.2f} min" if found.score else "", "to train"),
        (f"{line.goodput * 100:.1f} %" if line.goodput is not None else "", "goodput"),
        (f"{cost.total:,.2f}" if cost and cost.total is not None else "", "cost"),
    )
    return (
        f'<div class="card"><b>{figure}</b> <span>{escape(name)}</span></div>' for figure, name in figures if figure
    )


def _colours(shown: list[Panel]) -> str:
    light, dark = colour_rules(shown, "light"), colour_rules(shown, "dark")
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n"


def _pictures(figures: RunFigures, compared: Sequence[ComparedRun]) -> Iterator[str]:
    drawn = overlaid(figures, compared)
    happened = marks(figures)
    wide = StepAxis(drawn.first, drawn.last)
    for index, panel in enumerate(drawn.panels):
        both = (draw(panel, happened, axis, index) for axis in (wide, wide._replace(width=NARROW)))
        yield f'<div class="picture">{"".join(both)}</div>'
    if drawn.panels:
        below = [axis_title(figures), *drawn.lines, *happened.legend]
        yield f'<p class="soft">{escape("; ".join(below))}</p>'


def _comparison(compared: Sequence[ComparedRun]) -> Iterator[str]:
    if compared:
        yield "<h2>Comparison</h2>"
        yield _table([(each.name, "; ".join([each.comparison.sentence, *each.comparison.notes])) for each in compared])


def _configuration(figures: RunFigures) -> Iterator[str]:
    settings = next((section for section in reversed(figures.log.sections) if section), {})
    if settings:
        yield "<details><summary>Configuration in the log</summary>"
        yield _table(sorted(settings.items()))
        yield "</details>"


def _table(pairs: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> str:
    lines = [f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in pairs]
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _write(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
