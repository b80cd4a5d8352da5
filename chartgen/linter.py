"""Lint of a chart: Helm's own checks, every preset rendered twice, and the structural rules on each rendered object."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from chartgen import gotemplate, manifests
from chartgen.checks import check
from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.findings import Finding, in_order
from chartgen.helm import HelmError, find_helm
from chartgen.rules import LINT_NAMESPACE, RULES, rule_id, title
from chartgen.values import Values, load_values

if TYPE_CHECKING:
    from chartgen.chart import Chart

Preset: TypeAlias = Values | Sequence[Path]

_RELEASE = "lint"
_HELM_LINE = re.compile(r"^\[(?P<level>ERROR|WARNING)\] (?P<path>[^:]+): (?P<text>.*)")
# What makes two renders differ, or a render in Argo CD or Flux differ from Helm's.
_BANNED = re.compile(
    r"\b(?:now|rand(?:Alpha|AlphaNum|Numeric|Ascii|Int|Bytes)|uuidv4|lookup|gen(?:CA|SignedCert|SelfSignedCert)(?:WithKey)?"
    r"|genPrivateKey|htpasswd|bcrypt|encryptAES|getHostByName|shuffle)\b|\.Release\.(?:Revision|IsUpgrade|IsInstall)\b"
)
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`')


def lint(chart: Chart, presets: Mapping[str, Preset] | None = None) -> list[Finding]:
    """Check a chart with no values and with every preset.

    Args:
        chart: The chart.
        presets: Name -> values, or their files with the lowest layer first.

    Returns:
        Everything that was found, sorted by place; an empty list for a clean chart.

    Raises:
        MissingToolError: There is no fitting Helm.
    """
    found = [*_banned_functions(chart), *_helm_lint(chart)]
    for name, files in {"": (), **(presets or {})}.items():
        found += _preset(chart, name, files)
    return in_order(reversed(found))


def find_presets(chart: str, folder: Path) -> dict[str, list[Path]]:
    """Find the presets that a folder holds for a chart: preset, overlay, and the example site of the target on top.

    Args:
        chart: The chart's name, which is its target's.
        folder: A folder laid out as chartgen's own `values/`.

    Returns:
        Name of the workload -> values files, lowest layer first.
    """
    found = {}
    for overlay in sorted((folder / chart).glob("*.yaml")):
        layers = [folder / overlay.name, overlay, folder / f"site.{chart}.example.yaml"]
        found[overlay.stem] = [layer for layer in layers if layer.is_file()]
    return found


def _banned_functions(chart: Chart) -> Iterator[Finding]:
    """Find template functions that make two renders differ."""
    for path, text in chart.files.items():
        for action in gotemplate.actions(text) if path.startswith("templates/") else ():
            code = "" if action.word == "comment" else _QUOTED.sub(lambda match: " " * len(match[0]), action.text)
            for match in _BANNED.finditer(code):
                line = action.line + code.count("\n", 0, match.start())
                problem = Problem(f"{match[0]} makes two renders differ", path, line, hint="take it from the values")
                yield Finding("no-banned-functions", problem)


def _helm_lint(chart: Chart) -> Iterator[Finding]:
    """Run `helm lint --strict` with no values; its text output is all it has."""
    with manifests.written(chart) as folder:
        try:
            report = find_helm().run(["lint", "--strict", str(folder), "--kube-version", manifests.KUBE_VERSION])
        except HelmError as error:
            report = error.stdout
    for line in report.splitlines():
        if match := _HELM_LINE.match(line):
            text = match["text"].replace(f"{folder}/", "").replace(str(folder), "the chart")
            yield Finding("helm-lint", Problem(text, match["path"].replace(f"{folder}/", "")))


def _preset(chart: Chart, name: str, files: Preset) -> Iterator[Finding]:
    """Check the chart with one preset; one that does not load or fit its schema is not rendered."""
    try:
        values = files if isinstance(files, Values) else load_values(files)
        claims = check(chart, values)
        yield from claims
        if any(claim.severity == "error" for claim in claims):
            return
        first, second = (manifests.render(chart, _RELEASE, LINT_NAMESPACE, values.data) for _ in range(2))
    except MissingToolError:
        raise
    except ChartgenError as error:
        yield from (Finding("helm-template", _told(problem, name)) for problem in error.problems)
        return
    if first != second:
        yield Finding("renders-are-identical", _told(Problem("two renders differ"), name))
    yield from _objects(manifests.manifests(first))


def _objects(found: Iterable[manifests.Manifest]) -> Iterator[Finding]:
    for manifest in found:
        path = manifest.source.partition("/")[2] or None
        for rule in RULES:
            for complaint in rule(manifest.data):
                problem = Problem(f"{title(manifest.data)}: {complaint.message}", path, hint=complaint.hint)
                yield Finding(rule_id(rule), problem)


def _told(problem: Problem, preset: str) -> Problem:
    message = f"with {preset}: {problem.message}" if preset else f"with no values: {problem.message}"
    return Problem(message, problem.path, problem.line, problem.column, problem.hint)
