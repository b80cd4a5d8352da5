"""Differences between two renders of the same values: the objects, the fields, and the likely cause in the template."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from chartgen.errors import Problem
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import Manifest
from chartgen.kube.manifest_walk import Keys, metadata, title
from chartgen.kube.validation import spelled
from chartgen.linter.determinism import banned_in
from chartgen.linter.source_lines import template_line

RULE = "renders-are-identical"
AGAIN = "in every render"
UPGRADED = "between an install and an upgrade"
# Templates that distinguish install and upgrade.
_ASKS = re.compile(r"\.Release\.(?:IsInstall|IsUpgrade)\b")
_MOST = 3  # fields of one object that a message names
_HOOK = "helm.sh/hook"
_POLICY = "helm.sh/resource-policy"  # Helm does not delete an object with `keep` that a later render lacks


def asks_for_upgrade(chart: Chart) -> bool:
    """Report whether a template of the chart, or of an unpacked subchart, distinguishes upgrades."""
    return any("templates/" in path and _ASKS.search(text) for path, text in chart.files.items())


def differences(chart: Chart, one: Sequence[Manifest], other: Sequence[Manifest], when: str) -> Iterator[Finding]:
    """Report each object that differs between two renders of the same values, except hooks, which are always recreated.

    Args:
        chart: The chart.
        one: The objects of the first render.
        other: The objects of the second render.
        when: How the second render was made: `AGAIN` or `UPGRADED`.
    """
    ours, theirs = _by_template(one), _by_template(other)
    for key in dict.fromkeys((*ours, *theirs)):
        left, right = ours.get(key), theirs.get(key)
        found = left or right
        notes = metadata(found.data).get("annotations") or {} if found else {}
        if found is None or _HOOK in notes or (not right and notes.get(_POLICY) == "keep"):
            continue
        if left is None or right is None:
            yield _finding(chart, found, (), f"is there or not {when}")
        elif fields := list(islice(_fields(left.data, right.data), _MOST)):
            told = ", ".join(spelled(at) for at in fields)
            yield _finding(chart, left, fields[0], f"{told} {'differ' if fields[1:] else 'differs'} {when}")


def _by_template(found: Sequence[Manifest]) -> dict[tuple[str, str, int], Manifest]:
    """Key objects by template, kind and number, because the name may differ."""
    keyed: dict[tuple[str, str, int], Manifest] = {}
    numbers = Counter[tuple[str, str]]()
    for each in found:
        source, kind = each.source, str(each.data.get("kind"))
        keyed[source, kind, numbers[source, kind]] = each
        numbers[source, kind] += 1
    return keyed


def _fields(one: object, other: object, at: Keys = ()) -> Iterator[Keys]:
    """Walk two values and yield the key paths that differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys((*one, *other)):
            yield from _fields(one.get(key), other.get(key), (*at, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from _fields(*pair, (*at, index))
    elif one != other:
        yield at


def _finding(chart: Chart, manifest: Manifest, at: Keys, message: str) -> Finding:
    line, _ = manifest.document.position(at)
    found = template_line(chart, manifest.template, manifest.text.split("\n"), line)
    called = dict.fromkeys(name for _, name in banned_in(chart.files.get(manifest.template, "")))
    what = f"what depends on time, chance or the cluster: {', '.join(called)}" if called else "what it depends on"
    hint = f"take from the values {what}"
    return Finding(RULE, Problem(f"{title(manifest.data)}: {message}", found.path, found.line, hint=hint))
