"""Choose the findings that count: selected, not ignored, and not in a baseline."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from chartgen.answers import answer
from chartgen.errors import ChartgenError, Problem, UsageError, did_you_mean
from chartgen.findings import Finding
from chartgen.helm.yaml import read_text
from chartgen.linter.ignores import NEVER

BASELINE = "lint-baseline/v1"
Mark: TypeAlias = tuple[str, str, str]

# Findings of charts that render differently each time, for example by random names.
_RANDOM = {"no-banned-functions", "renders-are-identical"}
# An object's title in a message, such as `Job train-x7k2p`.
_NAMED = re.compile(r"\b[A-Z][A-Za-z]+ ([a-z0-9][-a-z0-9.]*[a-z0-9])\b")
# The digest at the end of a run's name, which depends on the drawn name of lint's release.
_DIGEST = re.compile(r"-[0-9a-f]{8}\b")
_REWRITE_HINT = "write it again with --write-baseline"


def select_findings(
    findings: Iterable[Finding], *, select: Sequence[str], ignore: Sequence[str], known: Iterable[str]
) -> list[Finding]:
    """Keep the findings of the selected rules.

    Args:
        select: Ids of rules; empty for all.
        ignore: Ids of rules that do not count, even if selected; `ID:CHART` are only verified.

    Raises:
        UsageError: An id without a rule.
    """
    ids = set(known)
    unknown = [name for name in (*select, *(each.partition(":")[0] for each in ignore)) if name not in ids]
    if unknown:
        raise UsageError(Problem(f"no rule is named {name!r}", hint=did_you_mean(name, ids)) for name in unknown)
    return [finding for finding in findings if (not select or finding.rule in select) and finding.rule not in ignore]


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
