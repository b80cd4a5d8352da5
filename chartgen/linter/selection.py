"""Choose the findings that count: selected, not ignored, and not in a baseline."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from chartgen.answers import answer
from chartgen.errors import ChartgenError, Problem
from chartgen.findings import LEFT_OUT, NOT_RENDERED, UNFINISHED, Finding
from chartgen.helm.yaml import read_text

_MARK = "chartgen: ignore["
# Control of the machine or the cluster, and what was not checked. These rules are reported for every chart, at every
# level; neither comments nor the repository's settings and baseline can excuse them. `--ignore` does.
NEVER = frozenset(
    (
        *("no-system-folders", "system-folders-of-volumes", "no-privileged-containers", "no-host-processes"),
        *("no-cluster-admin", "chart-files", LEFT_OUT, NOT_RENDERED, UNFINISHED),
    )
)
_IDS = re.compile(r"[\w, -]+")
# The same exceptions in kube-linter's form (its documentation, "Ignoring violations for specific cases").
_KUBE_LINTER = "ignore-check.kube-linter.io/"
_SAME = {
    "host-network": ["no-host-access"],
    "sensitive-host-mounts": ["no-host-access"],
    "latest-tag": ["images-are-pinned"],
    "unset-memory-requirements": ["limits-are-set"],
    "env-var-secret": ["secrets-by-reference"],
    "default-service-account": ["tokens-are-not-mounted"],
    "job-ttl-seconds-after-finished": ["finished-jobs-expire"],
    "duplicate-env-var": ["unique-environment"],
    "dangling-service": ["selectors-match-pods"],
}


def ignored(lines: Sequence[str], line: int) -> set[str]:
    """Return the ignored rules of a line: from a comment at its end, or in the comment lines above it.

    Args:
        line: 1-based; 0 for no line.
    """
    if not 0 < line <= len(lines):
        return set()
    found = set(_ids(lines[line - 1]))
    for above in reversed(lines[: line - 1]):
        if not above.lstrip().startswith(("#", "{{/*", "{{- /*")):
            break
        found |= set(_ids(above))
    return found - NEVER


def annotated(annotations: Mapping[str, object]) -> set[str]:
    """Return the rules that an object's annotations ignore; the value of each annotation is the reason."""
    stated = [
        key.removeprefix(_KUBE_LINTER) for key, why in annotations.items() if key.startswith(_KUBE_LINTER) and why
    ]
    return {rule for check in stated for rule in _SAME.get(check, ())}


def without_reason(files: Mapping[str, str]) -> Iterator[Finding]:
    """Find comments that ignore a rule without a reason, or a rule that cannot be ignored; they have no effect.

    Args:
        files: Path -> text.
    """
    for path, text in files.items():
        for number, line in enumerate(text.splitlines() if _MARK in text else (), 1):
            exception = _exception(line)
            if exception and not exception.reason:
                problem = Problem("ignores a rule without a reason", path, number, hint="write the reason behind it")
                yield Finding("ignore-has-reason", problem)
            for rule in sorted(NEVER & set(_ids(line))):
                problem = Problem(f"{rule} cannot be ignored, whatever the reason", path, number, hint="remove it")
                yield Finding("ignore-has-reason", problem)


class _Exception(NamedTuple):
    """The ignored rules of a comment and the reason, which may be empty."""

    ids: str
    reason: str


def _exception(line: str) -> _Exception | None:
    """Read the comment at the end of a line; without patterns, because a long line of blanks must not be slower."""
    before, mark, rest = line.rpartition(_MARK)
    ids, bracket, reason = rest.partition("]")
    if not mark or not bracket or not before.rstrip().endswith(("#", "/*")) or not _IDS.fullmatch(ids):
        return None
    return _Exception(ids, reason.partition("*/")[0].strip())


def _ids(line: str) -> Iterable[str]:
    exception = _exception(line)
    return [name.strip() for name in exception.ids.split(",")] if exception and exception.reason else []


BASELINE = "lint-baseline/v1"
Mark: TypeAlias = tuple[str, str, str]

# Findings of charts that render differently each time, for example by random names.
_RANDOM = {"no-banned-functions", "renders-are-identical"}
# An object's title in a message, such as `Job train-x7k2p`.
_NAMED = re.compile(r"\b[A-Z][A-Za-z]+ ([a-z0-9][-a-z0-9.]*[a-z0-9])\b")
# The digest at the end of a run's name, which depends on the drawn name of lint's release.
_DIGEST = re.compile(r"-[0-9a-f]{8}\b")
_REWRITE_HINT = "write it again with --write-baseline"


def read_baseline(path: Path) -> Counter[Mark]:
    """Read a baseline: how often it contains each finding. Line numbers are left out, because they change.

    Raises:
        ChartgenError: The file cannot be read, or is not a baseline.
    """
    try:
        rows = json.loads(read_text(path))["findings"]
        return Counter(
            {(row["rule"], row["path"], _DIGEST.sub("-*", row["message"])): int(row["count"]) for row in rows}
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ChartgenError(Problem("is not a baseline of chartgen lint", path, hint=_REWRITE_HINT)) from None


def beyond(findings: Iterable[Finding], baseline: Counter[Mark], folder: Path) -> list[Finding]:
    """Keep the findings that the baseline lacks, contains fewer times, or cannot excuse.

    Args:
        folder: The folder of the baseline's file; paths in the baseline are relative to it.
    """
    left = baseline.copy()
    new = []
    found = list(findings)
    for finding, mark in zip(found, _marks(found, folder), strict=True):
        if left[mark] > 0 and finding.rule not in NEVER:
            left[mark] -= 1
        else:
            new.append(finding)
    return new


def baseline_text(findings: Iterable[Finding], folder: Path) -> str:
    """Write findings as a baseline for a folder, sorted so that its diffs are small."""
    counted = Counter(_marks(list(findings), folder))
    rows = [
        {"rule": rule, "path": path, "message": message, "count": count}
        for (rule, path, message), count in sorted(counted.items())
    ]
    return json.dumps(answer(BASELINE, {"findings": rows}), indent=2) + "\n"


def _marks(findings: Sequence[Finding], folder: Path) -> list[Mark]:
    """Return the parts of findings that stay the same when lines move, charts are renamed, and names are random.

    If a chart uses random names, the names in its findings are left out.
    """
    drawn = {_chart(finding) for finding in findings if finding.rule in _RANDOM}
    return [
        (
            finding.rule,
            _place(finding, folder),
            _DIGEST.sub("-*", _nameless(finding) if _chart(finding) in drawn else finding.problem.message),
        )
        for finding in findings
    ]


def _place(finding: Finding, folder: Path) -> str:
    path = finding.problem.path
    if not isinstance(path, Path):
        return str(path or "")
    return Path(os.path.relpath(path, folder)).as_posix()


def _chart(finding: Finding) -> Path | None:
    """Return the folder of a finding's chart; None for a chart in memory."""
    path = finding.problem.path
    if not isinstance(path, Path):
        return None
    return next((parent for parent in path.absolute().parents if (parent / "Chart.yaml").is_file()), None)


def _nameless(finding: Finding) -> str:
    message = finding.problem.message
    for name in sorted({match[1] for match in _NAMED.finditer(message)}, key=len, reverse=True):
        message = message.replace(name, "*")
    return message
