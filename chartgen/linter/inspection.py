"""The steps that look at rendered objects: each rule on each object, with exceptions and places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chartgen.chart import Chart
from chartgen.errors import ChartgenError, Problem
from chartgen.findings import Complaint, Finding
from chartgen.linter.ignores import annotated, ignored
from chartgen.linter.limits import UNFINISHED
from chartgen.linter.objects import metadata, title
from chartgen.linter.places import template_line
from chartgen.linter.reasons import Reasons
from chartgen.linter.rendering import Rendering, told
from chartgen.linter.rules import RULES, Rule
from chartgen.manifests import Manifest

# What a rule raises at fields of other types than Kubernetes has for them; `objects-fit-their-schema` tells which.
_MISSHAPEN = (AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Inspection:
    """Rendered objects, each different one looked at once.

    Args:
        chart: The chart.
        reasons: What the fragments of its target state.
    """

    steps = tuple(dict.fromkeys(rule.step for rule in RULES if rule.step != "release size"))

    def __init__(self, chart: Chart, reasons: Reasons) -> None:
        self.chart, self.reasons = chart, reasons
        self.told: set[tuple[object, ...]] = set()
        self.releases: list[_Release] = []

    def read(self, renderings: Sequence[Rendering]) -> Iterator[Finding]:
        """Read what the chart rendered to, and report what of it is no YAML."""
        seen: set[tuple[str, str]] = set()
        for rendering in renderings:
            yield from self._read(rendering, seen)

    def _read(self, rendering: Rendering, seen: set[tuple[str, str]]) -> Iterator[Finding]:
        try:
            found = rendering.manifests
        except ChartgenError as error:
            yield from (Finding("helm-template", told(problem, rendering.preset)) for problem in error.problems)
            return
        new = [(rendering.kubernetes, each.text) not in seen for each in found]
        seen.update((rendering.kubernetes, each.text) for each in found)
        self.releases.append(_Release(rendering.kubernetes, found, new, self.reasons.allowed(rendering.preset.data)))

    def findings(self, step: str) -> Iterator[Finding]:
        """Apply the rules of a step."""
        for rule in RULES:
            if rule.step == step:
                for release in self.releases:
                    yield from self._apply(rule, release)

    def _apply(self, rule: Rule, release: _Release) -> Iterator[Finding]:
        for name, manifest, complaint in _complaints(rule, release):
            if complaint.privilege in release.allowed or rule.id in self._ignored(manifest, complaint):
                continue
            problem = self._problem(manifest, complaint)
            # the same template with another preset: only the object's name differs
            mark = (name, problem.path, problem.line, complaint.message)
            if mark not in self.told:
                self.told.add(mark)
                yield Finding(name, problem, rule.severity if name == rule.id else "error")

    def _ignored(self, manifest: Manifest, complaint: Complaint) -> set[str]:
        """Give the rules that the object ignores: by its annotations, or by comments at the place or at what holds it.

        The annotations of a target's chart are for kube-linter, which knows one exception for all privileges of a sort.
        """
        lines = manifest.text.split("\n")
        notes = metadata(manifest.data).get("annotations")
        notes = notes if isinstance(notes, dict) else {}
        places = {manifest.document.position(complaint.at[:depth])[0] for depth in range(len(complaint.at) + 1)}
        broad = set() if complaint.privilege and self.reasons.target else annotated(notes)
        return broad.union(*(ignored(lines, line) for line in places))

    def _problem(self, manifest: Manifest, complaint: Complaint) -> Problem:
        source = manifest.source.partition("/")[2]
        message = f"{title(manifest.data)}: {complaint.message}"
        if not source:
            return Problem(message, hint=complaint.hint)
        line, _ = manifest.document.position(complaint.at)
        found = template_line(self.chart, source, manifest.text.split("\n"), line)
        return Problem(message, found.path, found.line, hint=complaint.hint)


class _Release(NamedTuple):
    """The objects of one rendering, which of them no earlier one of this Kubernetes version had, what they may."""

    kubernetes: str
    manifests: list[Manifest]
    new: list[bool]
    allowed: frozenset[str]


def _complaints(rule: Rule, release: _Release) -> Iterator[tuple[str, Manifest, Complaint]]:
    """Ask a rule; what it cannot look at is a complaint too, and the other rules and objects are still looked at."""
    if rule.step == "wiring":
        try:
            for number, complaint in rule.check([each.data for each in release.manifests]):
                yield rule.id, release.manifests[number], complaint
        except _MISSHAPEN as error:
            yield UNFINISHED, release.manifests[0], _unanswered(rule, error)
        return
    for manifest, new in zip(release.manifests, release.new, strict=True):
        versions = (release.kubernetes,) if rule.step == "kubernetes schemas" else ()
        try:
            for complaint in rule.check(manifest.data, *versions) if new else ():
                yield rule.id, manifest, complaint
        except _MISSHAPEN as error:
            yield UNFINISHED, manifest, _unanswered(rule, error)


def _unanswered(rule: Rule, error: Exception) -> Complaint:
    message = f"{rule.id} cannot look at it ({type(error).__name__}: {str(error)[:100]})"
    return Complaint(message, "give each field the type that Kubernetes has for it")
