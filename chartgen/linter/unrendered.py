"""What Helm does not render: its refusals, each reason once, and objects that it installs unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from chartgen.errors import Problem
from chartgen.findings import NOT_RENDERED, Finding
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import SEPARATOR
from chartgen.linter.dependencies import needs_missing
from chartgen.linter.render import Preset, RefusedRender, with_preset
from chartgen.visible import one_line

_HINT = "give values with -f, or keep some in ci/*-values.yaml"
# A list below a key may begin in the column of the key.
_KEY = re.compile(r"[A-Za-z]+:|- ")
_NAMED = 2  # presets in one message; a chart may have 20


def unrendered_findings(
    renders: Iterable[RefusedRender], missing: Sequence[str], *, asks: bool, cluster: bool
) -> Iterator[Finding]:
    """Report why Helm did not render, except for reasons that missing dependencies explain.

    Args:
        renders: Helm's refusals, for each preset and Kubernetes version.
        missing: Missing dependencies.
        asks: Whether the chart may require values; chartgen's own charts render without any.
        cluster: Whether the chart may ask a cluster, which lint has none of, before it refuses values.
    """
    reasons: dict[tuple[object, ...], tuple[Problem, list[RefusedRender]]] = {}
    for render in renders:
        for problem in render.problems:
            if not needs_missing(problem.message, missing):
                mark = (problem.message, problem.path, problem.line, asks and render.asks)
                reasons.setdefault(mark, (problem, []))[1].append(render)
    for (*_, waits), (problem, group) in reasons.items():
        presets = list(dict.fromkeys(render.preset for render in group))
        bare = not any(preset.name for preset in presets)
        place = with_preset(problem, replace(presets[0], name=_names(presets)))
        if waits and (bare or cluster):
            place = Problem(place.message, place.path, place.line, place.column, place.hint or _HINT)
        yield (
            Finding(NOT_RENDERED, place, "unchecked")
            if waits and (bare or cluster)
            else Finding("helm-template", place)
        )


def unrendered_objects(chart: Chart, crds: Mapping[str, str]) -> str:
    """Return the objects of `crds/` in the form of Helm's output, without what is just a CustomResourceDefinition.

    Args:
        crds: Path -> text.
    """
    parts = ((path, part) for path, text in crds.items() for part in SEPARATOR.split(text) if part.strip())
    return "".join(
        f"---\n# Source: {chart.name}/{one_line(path)}\n{part}\n" for path, part in parts if not _is_definition(part)
    )


def _is_definition(text: str) -> bool:
    """Report whether a text is plainly a CustomResourceDefinition; those of operators take seconds to read as YAML."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    top = [line for line in lines if not line[0].isspace()]
    kinds = [line.rstrip() for line in top if line.startswith("kind:")]
    plain = lines[:1] == top[:1] and all(_KEY.match(line) for line in top)
    is_list = any(line.startswith("items:") for line in top)  # which Helm creates, whatever the kind
    return plain and not is_list and kinds == ["kind: CustomResourceDefinition"]


def _names(presets: Sequence[Preset]) -> str:
    names = [preset.name or "no values" for preset in presets]
    more = len(names) - _NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_NAMED])} and {more} more"
