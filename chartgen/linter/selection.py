"""Which findings count: those selected and not ignored, and none that a baseline already knows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from chartgen.errors import ChartgenError, Problem, UsageError, did_you_mean
from chartgen.findings import Finding
from chartgen.yamltext import read_text

_AGAIN = "write it again with --write-baseline"


def selected(
    findings: Iterable[Finding], *, select: Sequence[str], ignore: Sequence[str], known: Iterable[str]
) -> list[Finding]:
    """Keep the findings of the selected rules.

    Args:
        findings: What was found.
        select: Ids of rules; empty for all.
        ignore: Ids of rules that do not count, selected or not.
        known: All ids that there are.

    Raises:
        UsageError: An id that no rule has.
    """
    ids = set(known)
    unknown = [name for name in (*select, *ignore) if name not in ids]
    if unknown:
        raise UsageError(Problem(f"no rule is named {name!r}", hint=did_you_mean(name, ids)) for name in unknown)
    return [each for each in findings if (not select or each.rule in select) and each.rule not in ignore]


def read_baseline(path: Path) -> Counter[tuple[str, str, str]]:
    """Read a baseline: how often each finding was there when it was written. Lines do not count, for they move.

    Raises:
        ChartgenError: The file cannot be read, or is no baseline.
    """
    try:
        rows = json.loads(read_text(path))["findings"]
        return Counter({(row["rule"], row["path"], row["message"]): int(row["count"]) for row in rows})
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ChartgenError(Problem("is not a baseline of chartgen lint", path, hint=_AGAIN)) from None


def beyond(findings: Iterable[Finding], baseline: Counter[tuple[str, str, str]]) -> list[Finding]:
    """Keep the findings that a baseline does not know, or knows fewer times."""
    left = baseline.copy()
    new = []
    for finding in findings:
        mark = fingerprint(finding)
        if left[mark] > 0:
            left[mark] -= 1
        else:
            new.append(finding)
    return new


def baseline_text(findings: Iterable[Finding]) -> str:
    """Write findings as a baseline, sorted so that its diffs are small."""
    counted = Counter(map(fingerprint, findings))
    rows = [
        {"rule": rule, "path": path, "message": message, "count": count}
        for (rule, path, message), count in sorted(counted.items())
    ]
    return json.dumps({"findings": rows}, indent=2) + "\n"


def fingerprint(finding: Finding) -> tuple[str, str, str]:
    """Give what stays the same of a finding when lines move."""
    path = finding.problem.path
    return finding.rule, Path(path).as_posix() if path else "", finding.problem.message
