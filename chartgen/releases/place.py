"""Name and place of a release, apart from what runs Helm there, which `status` does not load."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from chartgen.errors import Problem, UsageError

# Helm's own limit: the name goes into a label of its Secrets, with 10 characters left for charts.
RELEASE_NAME_LIMIT = 53
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True)
class Place:
    """Cluster and namespace of a release.

    Args:
        namespace: The namespace; it must exist.
        kubeconfig: The kubeconfig file; None for Helm's default.
    """

    namespace: str = "default"
    kubeconfig: Path | None = None
    context: str | None = None


def check_name(name: str) -> None:
    """Raise UsageError for a name longer than 53 characters, or no RFC 1123 label, which Helm requires."""
    if len(name) > RELEASE_NAME_LIMIT:
        message = f"release name {name!r} has {len(name)} characters, at most {RELEASE_NAME_LIMIT} fit"
        raise UsageError(Problem(message, hint="shorten it"))
    if not _NAME.fullmatch(name):
        hint = "use lower-case letters, digits and '-', beginning and ending with a letter or digit"
        raise UsageError(Problem(f"{name!r} cannot be a release name", hint=hint))
