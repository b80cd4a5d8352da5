"""Two builds and two renders of the same are equal: what depends on time, chance or a cluster is found."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chartgen.composer.assembly import compose, compose_setup
from chartgen.composer.origin import Composed, origin_of
from chartgen.errors import Problem
from chartgen.findings import Finding
from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart

# What makes two renders differ, or a render in Argo CD or Flux differ from Helm's.
_BANNED = re.compile(
    r"\b(?:now|rand(?:Alpha|AlphaNum|Numeric|Ascii|Int|Bytes)|uuidv4|lookup|gen(?:CA|SignedCert|SelfSignedCert)(?:WithKey)?"
    r"|genPrivateKey|htpasswd|bcrypt|encryptAES|getHostByName|shuffle)\b|\.Release\.Revision\b"
)
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`')


def banned_functions(chart: Chart) -> Iterator[Finding]:
    """Find template functions that make two renders differ."""
    for path, text in chart.files.items():
        # the notes are shown to people, and are no part of what a release installs
        for line, name in banned_in(text) if "templates/" in path and not path.endswith("/NOTES.txt") else ():
            problem = Problem(f"{name} makes two renders differ", path, line, hint="take it from the values")
            yield Finding("no-banned-functions", problem)


def banned_in(template: str) -> Iterator[tuple[int, str]]:
    """Find the calls in a template whose result differs from render to render: line and name of each."""
    for action in gotemplate.actions(template):
        code = "" if action.word == "comment" else _QUOTED.sub(lambda match: " " * len(match[0]), action.text)
        for match in _BANNED.finditer(code):
            yield action.line + code.count("\n", 0, match.start()), match[0]


def builds_differ(chart: Chart) -> Iterator[Finding]:
    """Compose a chart of a known target again and compare: it, or what it is made of, may have changed since."""
    origin = origin_of(chart)
    if not isinstance(origin, Composed):
        return
    again = compose_setup(origin.target) if origin.setup else compose(origin.target, origin.workload)
    files = again.files if again else {}
    for path in sorted(files.keys() | chart.files.keys()):
        was, now = chart.files.get(path), files.get(path)
        if was != now:
            message = "is missing" if was is None else "is left over" if now is None else "differs from what is built"
            hint = f"run chartgen build {origin.name}"
            yield Finding(
                "chart-is-as-built", Problem(message, path, _first_difference(was, now), hint=hint), "warning"
            )


def _first_difference(was: str | None, now: str | None) -> int:
    one, other = (was or "").splitlines(), (now or "").splitlines()
    pairs = zip(one, other, strict=False)
    return next((number for number, (a, b) in enumerate(pairs, 1) if a != b), min(len(one), len(other)) + 1)
