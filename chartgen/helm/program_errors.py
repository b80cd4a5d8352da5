"""Helm's error output, reduced to the lines that a user can act on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chartgen.errors import ChartgenError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence


# Only the start and the end of a very long error stream are read: the cause is in the last line.
TELLING = 100_000
UNREACHABLE = re.compile(
    r"cluster unreachable|connection refused|no such host|i/o timeout|network is unreachable|no configuration has been"
    r"|context [^\n]{0,300} does not exist|certificate signed by unknown|tls handshake|etcdserver",
    re.IGNORECASE,
)
# Prefixes that Helm puts before the relevant sentence.
PREFIX = re.compile(
    r"^(Error: |(INSTALLATION|UPGRADE) FAILED: |uninstall: |cluster reachability check failed: "
    r"|failed to render chart: |rendering template: )+"
)
_CHART_FAIL = re.compile(r"^execution error at \((?P<at>[^()]+)\):\s*(?P<text>.*)", re.DOTALL)
_TEMPLATE_PLACE = re.compile(r"^(?P<path>\S+?\.(?:yaml|yml|tpl|txt)):(?P<line>\d+)(?::(?P<column>\d+))?:?$")
_PARSE_ERROR = re.compile(r"^parse error at \((?P<at>[^()]+)\): (?P<text>.*)")
_TEMPLATE_LINE = re.compile(r"^template: (?P<at>\S+?:\d+(?::\d+)?): (?P<text>.*)", re.DOTALL)  # Helm 3: one long line
# Helm 3 writes all frames into this line, each with its place.
_FRAME = re.compile(r"(?:^|: )template: (?P<at>[^\s:]{1,300}:\d{1,9}(?::\d{1,9})?): ")
_YAML_ERROR = re.compile(r"^YAML parse error on (?P<path>[^\s:]+): (?P<text>.*)", re.DOTALL)
_SCHEMA_ERROR = re.compile(r"^\s*- at '(?P<pointer>[^']*)': (?P<text>.*)")
_NOISE = re.compile(r"^(level=|Use --debug flag|WARNING: |I\d{4} |W\d{4} |coalesce\.go|\s*$)")


class HelmError(ChartgenError):
    """Helm failed; the problems contain the useful lines of its output.

    Args:
        stdout: Helm's standard output, which `helm lint` reports to.
    """

    def __init__(self, stderr: str, stdout: str = "") -> None:
        self.stderr, self.stdout = stderr, stdout
        super().__init__(explain_helm(stderr) or [Problem("helm failed without a message")])


def explain_helm(stderr: str) -> list[Problem]:
    """Reduce Helm's error output to one problem per fault."""
    lines = [line.rstrip() for line in stderr.splitlines() if not _NOISE.match(line)]
    if not lines:
        lines = [line for line in stderr.splitlines() if line.strip()][-1:]
    text = PREFIX.sub("", "\n".join(lines))
    if "meet the specifications of the schema" in text:
        return _schema_problems(text)
    if match := _CHART_FAIL.match(text):
        return [Problem(line.strip()) for line in match["text"].splitlines() if line.strip()]
    if match := _YAML_ERROR.match(text):
        return [Problem(" ".join(match["text"].split()), match["path"])]
    if match := _PARSE_ERROR.match(text) or _TEMPLATE_LINE.match(text):
        *trail, inner = [frame["at"] for frame in _FRAME.finditer(text)] or [match["at"]]
        return [_placed(inner, " ".join(match["text"].split()), trail)]
    return [_template_problem(text)] if text else []


def bounded(stream: bytes) -> bytes:
    """Return the start and the end of a stream that is too long to search."""
    return stream if len(stream) <= 2 * TELLING else stream[:TELLING] + b"\n" + stream[-TELLING:]


def _template_problem(text: str) -> Problem:
    """Join the frames of a Go template error: the innermost place, then the cause, which is last."""
    places = [match for line in text.splitlines() if (match := _TEMPLATE_PLACE.match(line.strip()))]
    if not places:
        return Problem(" ".join(text.split()))
    cause = " ".join(line.strip() for line in text.splitlines()[-2:])
    *trail, inner = [place[0].rstrip(":") for place in places]
    return _placed(inner, cause, trail)


def _placed(place: str, message: str, trail: Sequence[str] = ()) -> Problem:
    path, *numbers = place.split(":")
    line, column = ([int(number) for number in numbers if number.isdecimal()] + [0, 0])[:2]
    return Problem(message, path, line, column, trail=tuple(trail))


def _schema_problems(text: str) -> list[Problem]:
    problems = []
    for line in text.splitlines():
        if match := _SCHEMA_ERROR.match(line):
            keys = match["pointer"].strip("/").replace("/", ".")
            problems.append(Problem(f"{keys}: {match['text']}" if keys else match["text"]))
    return problems or [Problem(" ".join(text.split()))]


def unreachable_reason(stderr: str, match: re.Match[str]) -> str:
    """Return the reason why a cluster is unreachable."""
    line = next(line for line in reversed(stderr.splitlines()) if match[0] in line)
    cause = line.rpartition("unreachable: ")[2].rpartition('msg="')[2]
    cause = " ".join(PREFIX.sub("", cause).split())
    return f"the Kubernetes cluster cannot be reached: {cause}; check the kubeconfig and its current context"
