"""Choose the findings that count: selected, not ignored, and not in a baseline."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias

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
        *("no-cluster-admin", "chart-files", "dependencies-are-there", "helm-template"),
        *(LEFT_OUT, NOT_RENDERED, UNFINISHED),
    )
)
_IDS = re.compile(r"[\w, -]+")
# The same exceptions in kube-linter's form (its documentation, "Ignoring violations for specific cases").
_SAME = {
    "ignore-check.kube-linter.io/host-network": "no-host-access",
    "ignore-check.kube-linter.io/sensitive-host-mounts": "no-host-access",
    "ignore-check.kube-linter.io/latest-tag": "images-are-pinned",
    "ignore-check.kube-linter.io/unset-memory-requirements": "limits-are-set",
    "ignore-check.kube-linter.io/env-var-secret": "secrets-by-reference",
    "ignore-check.kube-linter.io/default-service-account": "tokens-are-not-mounted",
    "ignore-check.kube-linter.io/job-ttl-seconds-after-finished": "finished-jobs-expire",
    "ignore-check.kube-linter.io/duplicate-env-var": "unique-environment",
    "ignore-check.kube-linter.io/dangling-service": "selectors-match-pods",
}


def ignored(lines: Sequence[str], line: int) -> set[str]:
    """Return the ignored rules of a 1-based line: from a comment at its end, or above it; none for line 0."""
    if not 0 < line <= len(lines):
        return set()
    above = takewhile(lambda each: each.lstrip().startswith(("#", "{{/*", "{{- /*")), reversed(lines[: line - 1]))
    exceptions = map(_exception, (lines[line - 1], *above))
    return {rule for ids, reason in exceptions if reason for rule in ids} - NEVER


def annotated(annotations: Mapping[str, object]) -> set[str]:
    """Return the rules that an object's annotations ignore; the value of each annotation is the reason."""
    return {_SAME[key] for key, why in annotations.items() if key in _SAME and why}


def without_reason(files: Mapping[str, str]) -> Iterator[Finding]:
    """Find comments that ignore a rule without a reason, or a rule that cannot be ignored; they have no effect."""
    for path, text in files.items():
        for number, line in enumerate(text.splitlines() if _MARK in text else (), 1):
            ids, reason = _exception(line)
            if ids and not reason:
                problem = Problem("ignores a rule without a reason", path, number, hint="write the reason behind it")
                yield Finding("ignore-has-reason", problem)
            for rule in sorted(NEVER.intersection(ids)) if reason else ():
                problem = Problem(f"{rule} cannot be ignored, whatever the reason", path, number, hint="remove it")
                yield Finding("ignore-has-reason", problem)


def _exception(line: str) -> tuple[list[str], str]:
    """Return the ignored rules of the comment at the end of a line, and the reason, which may be empty.

    It uses no patterns, because a long line of blanks must not be slower.
    """
    before, mark, rest = line.rpartition(_MARK)
    ids, bracket, reason = rest.partition("]")
    if not mark or not bracket or not before.rstrip().endswith(("#", "/*")) or not _IDS.fullmatch(ids):
        return [], ""
    return [name.strip() for name in ids.split(",")], reason.partition("*/")[0].strip()


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
        marks = {(row["rule"], row["path"], _DIGEST.sub("-*", row["message"])): int(row["count"]) for row in rows}
        return Counter(marks)
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ChartgenError(Problem("is not a baseline of chartgen lint", path, hint=_REWRITE_HINT)) from None


def beyond(findings: Iterable[Finding], baseline: Counter[Mark], folder: Path) -> list[Finding]:
    """Keep the findings that the baseline lacks, contains fewer times, or cannot excuse.

    Args:
        folder: The folder of the baseline's file; paths in the baseline are relative to it.
    """
    left, new = baseline.copy(), []
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
    drawn, marks = {_chart(finding) for finding in findings if finding.rule in _RANDOM}, []
    for finding in findings:
        path, message = finding.problem.path, finding.problem.message
        place = Path(os.path.relpath(path, folder)).as_posix() if isinstance(path, Path) else path or ""
        message = _nameless(message) if _chart(finding) in drawn else message
        marks.append((finding.rule, place, _DIGEST.sub("-*", message)))
    return marks


def _chart(finding: Finding) -> Path | None:
    """Return the folder of a finding's chart; None for a chart in memory."""
    path = finding.problem.path
    if not isinstance(path, Path):
        return None
    return next((parent for parent in path.absolute().parents if (parent / "Chart.yaml").is_file()), None)


def _nameless(message: str) -> str:
    for name in sorted({match[1] for match in _NAMED.finditer(message)}, key=len, reverse=True):
        message = message.replace(name, "*")
    return message
