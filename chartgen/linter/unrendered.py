"""Helm's refusals to render: each reason once, with the presets that it applies to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from chartgen.errors import Problem
from chartgen.findings import NOT_RENDERED, Finding
from chartgen.linter.dependencies import needs_missing
from chartgen.linter.render import Preset, Refusal, told

_HINT = "give values with -f, or keep some in ci/*-values.yaml"
_NAMED = 2  # presets in one message; a chart may have 20


def refusals(found: Iterable[Refusal], missing: Sequence[str], *, asks: bool, cluster: bool) -> Iterator[Finding]:
    """Report why Helm did not render, except for reasons that missing dependencies explain.

    Args:
        found: Helm's refusals, for each preset and Kubernetes version.
        missing: Missing dependencies.
        asks: Whether the chart may require values; chartgen's own charts render without any.
        cluster: Whether the chart may ask a cluster, which lint has none of, before it refuses values.
    """
    reasons: dict[tuple[object, ...], tuple[Problem, list[Refusal]]] = {}
    for each in found:
        for problem in each.problems:
            if not needs_missing(problem.message, missing):
                mark = (problem.message, problem.path, problem.line, asks and each.asks)
                reasons.setdefault(mark, (problem, []))[1].append(each)
    for (*_, waits), (problem, group) in reasons.items():
        presets = list(dict.fromkeys(each.preset for each in group))
        bare = not any(preset.name for preset in presets)
        place = told(problem, replace(presets[0], name=_names(presets)))
        if waits and (bare or cluster):
            place = Problem(place.message, place.path, place.line, place.column, place.hint or _HINT)
        yield (
            Finding(NOT_RENDERED, place, "unchecked")
            if waits and (bare or cluster)
            else Finding("helm-template", place)
        )


def _names(presets: Sequence[Preset]) -> str:
    names = [preset.name or "no values" for preset in presets]
    more = len(names) - _NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_NAMED])} and {more} more"
