"""Exceptions for kube-linter: what it stops at in the Jobs of a chart, allowed for the reasons that fragments state."""

from __future__ import annotations

from collections.abc import Iterable

from chartgen.composer.fragment import Fragment
from chartgen.composer.privileges import read_privilege

# Privilege -> the checks that stop at it: stackrox/kube-linter @ 905fb08 (after 0.7.6), pkg/builtinchecks/yamls.
CHECKS = {
    "privileged": ("privileged-container", "privilege-escalation-container"),
    "hostNetwork": ("host-network",),
    "hostPath": ("sensitive-host-mounts",),
    "NET_RAW": ("drop-net-raw-capability",),
    "root": ("run-as-non-root", "no-read-only-root-fs"),
    "unlimited": ("unset-cpu-requirements", "unset-memory-requirements"),
}


def exceptions(fragments: Iterable[Fragment]) -> dict[str, str]:
    """Return the checks that a chart is excepted from.

    Args:
        fragments: The fragments of its target.

    Returns:
        Name of the check -> the reasons of all fragments that need it, sorted by name.
    """
    found: dict[str, list[str]] = {}
    for fragment in fragments:
        for privilege, reason in fragment.privileges.items():
            for check in CHECKS.get(read_privilege(privilege).name, ()):
                found.setdefault(check, []).append(reason)
    return {check: "; ".join(dict.fromkeys(found[check])) for check in sorted(found)}
