"""The Lease of a release as plain data: its holder, duration and notes."""

from __future__ import annotations

import getpass
import json
import os
import secrets
import socket
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from chartgen.errors import ChartgenError, Problem
from chartgen.kube import LEASE, Cluster, Object

DURATION = 15.0  # seconds without a renewal until a holder counts as dead; client-go's default
_NOTES = "chartgen/notes"
_LABELS = {"app.kubernetes.io/managed-by": "chartgen"}


def lease_name(release: str) -> str:
    """Return the name of a release's Lease."""
    return f"chartgen-{release}"


def read_notes(cluster: Cluster, release: str, namespace: str) -> dict[str, list[str]] | None:
    """Return the notes of earlier commands about a release; None when no command of chartgen has changed it."""
    lease = cluster.get(LEASE, lease_name(release), namespace)
    return notes_of(lease) if lease else None


def identity(action: str) -> str:
    """Return a holder's name: user, host, action, and a part that is unique to this command."""
    return f"{_user()}@{socket.gethostname()} ({action}, {secrets.token_hex(3)})"


def new_lease(release: str, namespace: str, holder: str) -> Object:
    """Return a new Lease for a release."""
    metadata = {"name": lease_name(release), "namespace": namespace, "labels": _LABELS}
    return {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": metadata, "spec": lease_spec(holder)}


def lease_spec(holder: str) -> dict[str, Any]:
    """Return the spec of a Lease renewed now; its time is informative only, no command decides by it."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"holderIdentity": holder, "leaseDurationSeconds": int(DURATION), "renewTime": now}


def with_notes(notes: dict[str, list[str]]) -> dict[str, str]:
    """Return the annotations of a Lease with notes."""
    return {_NOTES: json.dumps(notes)}


def holder_of(lease: Object) -> str:
    """Return the holder of a Lease; empty without one."""
    return str(lease["spec"].get("holderIdentity") or "")


def version_of(lease: Object) -> str:
    """Return the resource version, which changes with every write."""
    return str(lease["metadata"]["resourceVersion"])


def notes_of(lease: Object) -> dict[str, list[str]]:
    """Return the notes in a Lease.

    Raises:
        ChartgenError: They are not what chartgen writes.
    """
    with suppress(ValueError, RecursionError, AttributeError):
        found: dict[str, Any] = json.loads((lease["metadata"].get("annotations") or {}).get(_NOTES, "{}"))
        if all(isinstance(each, list) and {str} >= set(map(type, each)) for each in found.values()):
            return found
    text = f"annotation {_NOTES} of Lease {lease['metadata']['name']} is not what chartgen writes"
    raise ChartgenError(Problem(text, hint="remove it; the next command begins without notes of earlier ones"))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no entry in passwd; OSError since Python 3.13
        return f"uid {os.getuid()}"
