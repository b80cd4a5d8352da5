"""Exceptions stated where they are needed: comments `chartgen: ignore[id, ...] reason` in YAML or in a template."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from chartgen.errors import Problem
from chartgen.findings import Finding

_COMMENT = re.compile(r"(?:#|/\*)\s*chartgen: ignore\[(?P<ids>[\w, -]+)\][ \t]*(?P<reason>[^\n]*?)\s*(?:\*/[^\n]*)?$")
# The same exceptions for people who also run kube-linter (its documentation, "Ignoring violations for specific cases").
_KUBE_LINTER = "ignore-check.kube-linter.io/"
_SAME = {
    "privileged-container": ["no-privileged-containers"],
    "host-network": ["no-host-access"],
    "host-pid": ["no-host-access"],
    "host-ipc": ["no-host-access"],
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
    """Give the rules that are ignored in a line: by a comment at its end, or in the comment lines above it.

    Args:
        lines: The text.
        line: 1-based; 0 for nowhere.
    """
    if not 0 < line <= len(lines):
        return set()
    found = set(_ids(lines[line - 1]))
    for above in reversed(lines[: line - 1]):
        if not above.lstrip().startswith(("#", "{{/*", "{{- /*")):
            break
        found |= set(_ids(above))
    return found


def annotated(annotations: Mapping[str, object]) -> set[str]:
    """Give the rules that an object's annotations ignore, each with its reason as the value."""
    stated = [
        key.removeprefix(_KUBE_LINTER) for key, why in annotations.items() if key.startswith(_KUBE_LINTER) and why
    ]
    return {rule for check in stated for rule in _SAME.get(check, ())}


def without_reason(files: Mapping[str, str]) -> Iterator[Finding]:
    """Find comments that ignore a rule and do not say why; they have no effect.

    Args:
        files: Path -> text.
    """
    for path, text in files.items():
        for number, line in enumerate(text.splitlines() if "chartgen: ignore[" in text else (), 1):
            if (match := _COMMENT.search(line)) and not match["reason"]:
                problem = Problem("ignores a rule without a reason", path, number, hint="write the reason behind it")
                yield Finding("ignore-has-reason", problem)


def _ids(line: str) -> Iterable[str]:
    match = _COMMENT.search(line)
    return [name.strip() for name in match["ids"].split(",")] if match and match["reason"] else []
