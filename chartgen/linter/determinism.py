"""Two builds or renders of the same input are equal: find template parts that depend on time, chance or a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chartgen.composer.composed import composed_chart
from chartgen.composer.origin import Composed, origin_of
from chartgen.errors import Problem
from chartgen.findings import Finding
from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart
from chartgen.helm.yaml import load

# Functions that make two renders differ, or a render in Argo CD or Flux differ from Helm's.
_BANNED = re.compile(
    r"\b(?:now|rand(?:Alpha|AlphaNum|Numeric|Ascii|Int|Bytes)|uuidv4|lookup|gen(?:CA|SignedCert|SelfSignedCert)(?:WithKey)?"
    r"|genPrivateKey|htpasswd|bcrypt|encryptAES|getHostByName|shuffle)\b|\.Release\.Revision\b"
)
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`')


def banned_functions(chart: Chart) -> Iterator[Finding]:
    """Find template functions that make two renders differ."""
    for path, text in chart.files.items():
        # the notes are shown to people, and are not installed
        for line, name in banned_in(text) if "templates/" in path and not path.endswith("/NOTES.txt") else ():
            problem = Problem(f"{name} makes two renders differ", path, line, hint="take it from the values")
            yield Finding("no-banned-functions", problem)


def banned_in(template: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each call in a template whose result differs between renders."""
    for action in gotemplate.actions(template):
        code = "" if action.word == "comment" else _QUOTED.sub(lambda match: " " * len(match[0]), action.text)
        for match in _BANNED.finditer(code):
            yield action.line + code.count("\n", 0, match.start()), match[0]


def builds_differ(chart: Chart) -> Iterator[Finding]:
    """Compose a chart of a known target again and compare: the chart or its sources may have changed since."""
    origin = origin_of(chart)
    if not isinstance(origin, Composed):
        return
    if origin.setup:
        second = composed_chart("compose_setup", origin.target, origin.workload)
    else:
        second = composed_chart("compose", origin.target, origin.workload)
    files = second.files if second else {}
    for path in sorted(files.keys() | chart.files.keys()):
        was, now = chart.files.get(path), files.get(path)
        if was != now and not (was and now and _is_repacked(path, was, now)):
            message = "is missing" if was is None else "is left over" if now is None else "differs from what is built"
            hint = f"run chartgen build {origin.name}"
            yield Finding(
                "chart-is-as-built", Problem(message, path, _first_difference(was, now), hint=hint), "warning"
            )


def _is_repacked(path: str, was: str, now: str) -> bool:
    """Report whether a Chart.yaml differs in form alone: `helm package` writes it again, without comments."""
    return path == "Chart.yaml" and load(was, path).data == load(now, path).data


def _first_difference(was: str | None, now: str | None) -> int:
    one, other = (was or "").splitlines(), (now or "").splitlines()
    pairs = zip(one, other, strict=False)
    return next((number for number, (a, b) in enumerate(pairs, 1) if a != b), min(len(one), len(other)) + 1)
