"""Exceptions next to their cause: comments `chartgen: ignore[id, ...] reason` in YAML or in a template."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from chartgen.errors import Problem
from chartgen.findings import LEFT_OUT, NOT_RENDERED, UNFINISHED, Finding

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
