"""Exceptions for kube-linter: its checks that reject Jobs of a chart, allowed for reasons stated by fragments."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from chartgen.composer.fragment import Fragment
from chartgen.composer.privileges import read_privilege

FILE = ".kube-linter.yaml"  # kube-linter reads it from its working directory
WITHOUT_TTL = "an upgrade without a change would run again what a time to live removed"

# Privilege -> the checks that reject it: stackrox/kube-linter @ 905fb08 (after 0.7.6), pkg/builtinchecks/yamls.
CHECKS = {
    "privileged": ("privileged-container", "privilege-escalation-container"),
    "hostNetwork": ("host-network",),
    "hostPath": ("sensitive-host-mounts",),
    "NET_RAW": ("drop-net-raw-capability",),
    "root": ("run-as-non-root", "no-read-only-root-fs"),
    "unlimited": ("unset-cpu-requirements", "unset-memory-requirements"),
}


def exceptions(fragments: Iterable[Fragment]) -> dict[str, str]:
    """Return the kube-linter checks that do not apply to a chart.

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


def kube_linter_config(fragments: Iterable[Fragment]) -> str:
    """Return kube-linter's configuration file with these exceptions, each with its reason."""
    left_out = {"job-ttl-seconds-after-finished": WITHOUT_TTL, **exceptions(fragments)}
    indent = "    # "
    reasons = {
        check: textwrap.fill(reason, 150, initial_indent=indent, subsequent_indent=indent)
        for check, reason in left_out.items()
    }
    lines = [f"{reason}\n    - {check}\n" for check, reason in reasons.items()]
    return "# For `kube-linter lint .` in this folder.\nchecks:\n  exclude:\n" + "".join(lines)
