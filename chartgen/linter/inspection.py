"""The steps that inspect rendered objects: each rule on each object, with exceptions and places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from chartgen.data.compatibility import version
from chartgen.errors import ChartgenError, Problem
from chartgen.findings import UNFINISHED, Finding, PartProblem, Rule
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import Manifest
from chartgen.kube.manifest_walk import LINT_RELEASE, metadata, title
from chartgen.linter.policy import CALLERS_REASON, CHANGED_REASON, STRANGERS_REASON, Reasons
from chartgen.linter.render import Rendering, with_preset
from chartgen.linter.rules import RULES, SCHEMAS, UNIQUE
from chartgen.linter.selection import NEVER, annotated, ignored
from chartgen.linter.source_lines import script_line, template_line

# Errors of rules on fields with the wrong type; `objects-fit-their-schema` reports the type.
MISSHAPEN = (AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Inspection:
    """Rendered objects; each distinct object is inspected once."""

    steps = tuple(dict.fromkeys(rule.step for rule in RULES if rule.step != "release size"))

    def __init__(self, chart: Chart, reasons: Reasons, missing: Sequence[str] = ()) -> None:
        self.chart, self.reasons = chart, reasons
        self.left_out = [f" {LINT_RELEASE}-{name}" for name in missing]  # what missing dependencies would make
        self.bounded = "kubeVersion:" in chart.files.get("Chart.yaml", "")
        self.releases: list[_Release] = []

    def read(self, renderings: Sequence[Rendering]) -> Iterator[Finding]:
        """Read the rendered objects, and report invalid YAML."""
        texts, objects, versioned = set[str](), set[str](), set[tuple[str, str]]()
        for rendering in renderings:
            try:
                found = rendering.manifests
            except ChartgenError as error:
                yield from (Finding("helm-template", with_preset(each, rendering.preset)) for each in error.problems)
                continue
            new = [manifest for manifest in found if manifest.text not in objects]
            dated = [manifest for manifest in found if (rendering.kubernetes, manifest.text) not in versioned]
            yield from (finding for each in new for finding in self._overwritten(each))
            objects |= {manifest.text for manifest in found}
            versioned |= {(rendering.kubernetes, manifest.text) for manifest in found}
            allowed = self.reasons.allowed(rendering.preset.data)
            whole = [] if rendering.text in texts else found
            texts.add(rendering.text)
            self.releases.append(_Release(rendering.kubernetes, whole, new, dated, allowed))

    def _overwritten(self, manifest: Manifest) -> Iterator[Finding]:
        lines = manifest.text.split("\n")
        for problem in manifest.document.overwritten:
            if UNIQUE not in ignored(lines, problem.line):
                found = template_line(self.chart, manifest.template, lines, problem.line)
                message = f"{title(manifest.data)}: {problem.message}"
                yield Finding(UNIQUE, Problem(message, found.path, found.line, hint=problem.hint))

    def findings(self, step: str) -> Iterator[Finding]:
        """Apply the rules of a step."""
        if step == SCHEMAS:
            yield from self._dated()
            return
        reported: set[tuple[object, ...]] = set()
        for mark, finding, _ in self._found(step):
            if mark not in reported:
                reported.add(mark)
                yield finding

    def _found(self, step: str) -> Iterator[tuple[tuple[object, ...], Finding, str]]:
        for rule in (rule for rule in RULES if rule.step == step):
            for release in self.releases:
                yield from ((*each, release.kubernetes) for each in self._apply(rule, release))

    def _dated(self) -> Iterator[Finding]:
        """Apply the rules that depend on Kubernetes versions; name a finding's versions unless it applies to all."""
        versions: dict[tuple[object, ...], tuple[Finding, set[str]]] = {}
        for mark, finding, kubernetes in self._found(SCHEMAS):
            versions.setdefault(mark, (finding, set()))[1].add(kubernetes)
        for finding, about in versions.values():
            others = {release.kubernetes for release in self.releases} - about
            yield self._about(finding, about, others) if others and finding.severity == "error" else finding

    def _about(self, finding: Finding, versions: set[str], others: set[str]) -> Finding:
        """Name the versions; if only older versions fail, return a warning, unless the chart states its kubeVersion."""
        problem = finding.problem
        message = f"{problem.message}, in Kubernetes {' and '.join(sorted(versions, key=version))}"
        is_newer = version(max(versions, key=version)) > version(max(others, key=version))
        fails = self.bounded or is_newer
        hint = problem.hint if fails else "state kubeVersion in Chart.yaml"
        problem_with_hint = Problem(message, problem.path, problem.line, problem.column, hint)
        return finding._replace(problem=problem_with_hint, severity="error" if fails else "warning")

    def _apply(self, rule: Rule, release: _Release) -> Iterator[tuple[tuple[object, ...], Finding]]:
        for name, manifest, complaint in _complaints(rule, release):
            if complaint.privilege in release.allowed or rule.id in self._ignored(manifest, complaint):
                continue
            if name not in NEVER and any(missing in complaint.message for missing in self.left_out):
                continue
            if complaint.quote and any(complaint.quote in text for text in self.chart.files.values()):
                continue
            problem = self._problem(manifest, complaint, self._hint(rule, complaint))
            if complaint.is_satisfied and not (
                self._is_literal(problem, complaint) and complaint.is_satisfied(self._text(manifest.template))
            ):
                continue
            # The same template with another preset differs only in the object's name; report `unchecked` findings once.
            place = () if rule.severity == "unchecked" else (problem.path, problem.line)
            severity = rule.severity if name == rule.id else "error"
            yield (name, *place, complaint.message), Finding(name, problem, severity)

    def _text(self, path: object) -> str:
        return self.chart.files.get(str(path), "")

    def _is_literal(self, problem: Problem, complaint: PartProblem) -> bool:
        """Report whether the line of a problem contains no expression for the key at fault."""
        line = self._text(problem.path).split("\n")[problem.line - 1 : problem.line]
        return not any("{{" in each and f"{complaint.at[-1]}:" in each for each in line)

    def _ignored(self, manifest: Manifest, complaint: PartProblem) -> set[str]:
        """Return the rules that the object ignores: by annotations, or by comments at the place or at its parents.

        Annotations for kube-linter allow all privileges of a sort; for the charts of a target they do not count.
        """
        lines = manifest.text.split("\n")
        notes = metadata(manifest.data).get("annotations")
        notes = notes if isinstance(notes, dict) else {}
        places = {manifest.document.position(complaint.at[:depth])[0] for depth in range(len(complaint.at) + 1)}
        broad = set() if complaint.privilege and self.reasons.target else annotated(notes)
        return broad.union(*(ignored(lines, line) for line in places))

    def _hint(self, rule: Rule, complaint: PartProblem) -> str:
        if complaint.privilege and self.reasons.target and not self.reasons.as_built:
            return CHANGED_REASON.format(target=self.reasons.target.name)
        if rule.id in NEVER and not self.reasons.target:
            hint = complaint.hint if complaint.hint and not complaint.privilege else "remove it"
            return CALLERS_REASON.format(hint=hint, rule=rule.id)
        return STRANGERS_REASON if complaint.privilege and not self.reasons.target else complaint.hint or rule.hint

    def _problem(self, manifest: Manifest, complaint: PartProblem, hint: str) -> Problem:
        source = manifest.template
        message = f"{title(manifest.data)}: {complaint.message}"
        if not source:
            return Problem(message, hint=hint)
        lines = manifest.text.split("\n")
        line, _ = manifest.document.position(complaint.at)
        found = script_line(self.chart, source, lines, line, complaint.line) if complaint.line else None
        found = found or template_line(self.chart, source, lines, line, complaint.at)
        return Problem(message, found.path, found.line, hint=hint)


class _Release(NamedTuple):
    """The objects of one rendering."""

    kubernetes: str
    manifests: list[Manifest]  # all objects; none if an earlier rendering is equal
    new: list[Manifest]  # those that no earlier rendering has
    dated: list[Manifest]  # those that no earlier rendering for this Kubernetes version has
    allowed: frozenset[str]


def _complaints(rule: Rule, release: _Release) -> Iterator[tuple[str, Manifest, PartProblem]]:
    """Apply a rule; if it fails on an object, yield that as a complaint and continue with the next object."""
    if rule.step == "wiring":
        try:
            for number, complaint in rule.function([manifest.data for manifest in release.manifests]):
                yield rule.id, release.manifests[number], complaint
        except MISSHAPEN as error:
            yield UNFINISHED, release.manifests[0], _unanswered(rule, error)
        return
    versions = (release.kubernetes,) if rule.step == SCHEMAS else ()
    for manifest in release.dated if versions else release.new:
        try:
            for complaint in rule.function(manifest.data, *versions):
                yield rule.id, manifest, complaint
        except MISSHAPEN as error:
            yield UNFINISHED, manifest, _unanswered(rule, error)


def _unanswered(rule: Rule, error: Exception) -> PartProblem:
    message = f"{rule.id} cannot check it ({type(error).__name__}: {str(error)[:100]})"
    return PartProblem(message, "give each field the type that Kubernetes has for it")
