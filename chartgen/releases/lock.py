"""Lock of a release, so that one chartgen command at a time changes it: a Lease, which also keeps notes.

It works like leader election (client-go, tools/leaderelection/leaderelection.go). A holder renews the Lease. Another
command takes the Lease over when it has not changed for its duration, measured by that command's own clock, so that
the clocks of two machines need not agree. A holder counts from the moment when it sent its last successful renewal.
After a longer silence it asks the server before it continues: until then no other command can have taken over.
"""

from __future__ import annotations

import getpass
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from chartgen.errors import ChartgenError, Problem
from chartgen.kube import LEASE, Cluster, ClusterError, Object
from chartgen.kube.run_kinds import find
from chartgen.programs import Progress

if TYPE_CHECKING:
    from typing_extensions import Self


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
    return str(lease.get("spec", {}).get("holderIdentity") or "")


def _duration(lease: Object) -> float:
    """Return for how many seconds to wait for a sign of life; who writes a Lease cannot stop others for years."""
    told = lease.get("spec", {}).get("leaseDurationSeconds")
    return min(told, _LONGEST) if isinstance(told, int) and told > 0 else DURATION


def version_of(lease: Object) -> str:
    """Return the resource version, which changes with every write; raise ChartgenError where an answer has none."""
    if version := find(lease, "metadata.resourceVersion"):
        return str(version)
    raise ChartgenError("a Lease without a resource version: what answers is not a Kubernetes API server")


def notes_of(lease: Object) -> dict[str, list[str]]:
    """Return the notes in a Lease; raise ChartgenError for those that chartgen did not write."""
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


_RENEW = 4.0  # seconds between renewals: two may fail
_SAFE = 10.0  # seconds after a renewal for which the lock is surely valid; client-go's renewDeadline
_LOOK = 0.25  # seconds between two checks of another holder
_LONGEST = 60.0  # seconds to wait for one; chartgen writes 15


# This clock cannot be set, and on Linux it runs while the machine sleeps, like the clock of the other holder.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now() -> float:
    """Return the seconds of a monotonic clock."""
    return time.clock_gettime(_CLOCK)


@dataclass(frozen=True)
class Pace:
    """Time of a lock: a clock in seconds, a pause of some seconds of it, and the seconds between two renewals."""

    clock: Callable[[], float] = now
    pause: Callable[[float], None] = time.sleep
    every: float = _RENEW


class Lock:
    """Lock on a release for the time of a `with` block.

    Args:
        action: The action for the message to other commands: install, upgrade, ...
        progress: Receives a line when the command must wait for a dead holder's time to expire.
        pace: Time source and intervals.

    Raises:
        ChartgenError: Another command holds the lock.
    """

    def __init__(
        self,
        cluster: Cluster,
        release: str,
        namespace: str,
        action: str,
        progress: Progress,
        pace: Pace = Pace(),
    ) -> None:
        self._cluster, self._release, self._namespace = cluster, release, namespace
        self._name, self._holder = lease_name(release), identity(action)
        self._progress, self._pace = progress, pace
        self._guard = threading.Lock()  # one write at a time
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"lease of {release}", daemon=True)
        self._lost = False
        self._version = ""
        self._renewed = 0.0
        self.notes: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        self._acquire()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop()
        try:
            self._write(holder="")
        except ChartgenError:
            # the next command takes it over anyway; an error of the block itself is more important
            if kind is None:
                raise

    def note(self, **notes: list[str]) -> None:
        """Write names into the notes of the release; an empty list removes them.

        Raises:
            ChartgenError: Another command has taken the release over.
            MissingToolError: The cluster does not answer.
        """
        self.check()
        changed = {key: names for key, names in {**self.notes, **notes}.items() if names}
        if changed != self.notes:
            self.notes = changed
            self._write()

    def check(self, within: float = _SAFE) -> None:
        """Check that this command still holds the lock; ask the server when the last renewal is too old.

        Args:
            within: Highest accepted age of the last renewal, in seconds; 0 always asks the server, which leaves the
                whole duration for the next step.

        Raises:
            ChartgenError: Another command has taken over.
            MissingToolError: The cluster does not answer, so that the holder is unknown.
        """
        if self._lost:
            raise self._gone()
        if self._pace.clock() - self._renewed >= within:
            self._write()

    def remove(self) -> None:
        """Remove the Lease with its notes, after the release; raise ChartgenError if another command owns it by now."""
        self.check(within=0)
        self._stop()
        with self._guard:
            self._cluster.delete(LEASE, self._name, self._namespace)
            self._version = ""

    def _acquire(self) -> None:
        lease = self._cluster.get(LEASE, self._name, self._namespace)
        if lease is None:
            self._create()
            return
        if holder_of(lease):
            self._await_death(lease)
        self.notes, self._version = notes_of(lease), version_of(lease)
        try:
            self._write()
        except ChartgenError:
            if self._lost:  # another command was faster
                raise self._taken("another command") from None
            raise

    def _create(self) -> None:
        sent = self._pace.clock()
        try:
            made = self._cluster.create(LEASE, new_lease(self._release, self._namespace, self._holder))
        except ClusterError as error:
            if error.status == 409:
                raise self._taken("another command") from None
            if error.status == 404:
                hint = f"create it: `kubectl create namespace {self._namespace}`"
                raise ChartgenError(Problem(f"namespace {self._namespace} does not exist", hint=hint)) from None
            raise
        self._version, self._renewed = version_of(made), sent

    def _await_death(self, lease: Object) -> None:
        """Wait until a Lease has not changed for its duration; raise as soon as it changes."""
        holder, seen = holder_of(lease), version_of(lease)
        duration = _duration(lease)
        self._progress(f"release locked by {holder}; waiting {duration:.0f} s for a sign of life")
        deadline = self._pace.clock() + duration
        while self._pace.clock() < deadline:
            self._pace.pause(_LOOK)
            found = self._cluster.get(LEASE, self._name, self._namespace)
            if found is None or not holder_of(found):
                raise self._taken(holder, over=True)
            if version_of(found) != seen:
                raise self._taken(holder_of(found))
        self._progress(f"{holder} was interrupted; continuing where it stopped")

    def _taken(self, holder: str, *, over: bool = False) -> ChartgenError:
        state = "has just changed" if over else "is changing"
        hint = "check `chartgen status`, then try again"
        return ChartgenError(Problem(f"{holder} {state} release {self._release}", hint=hint))

    def _gone(self) -> ChartgenError:
        problem = f"another command has taken over release {self._release}: this one did not renew its lock in time"
        return ChartgenError(Problem(problem, hint="check `chartgen status`, then try again"))

    def _keep(self) -> None:
        while not self._lost and not self._ended.wait(self._pace.every):
            with suppress(ChartgenError):  # a short interruption; `check` asks the server after a longer one
                self._write()

    def _stop(self) -> None:
        """Stop the renewals, and wait for one in progress."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _write(self, holder: str | None = None) -> None:
        """Write holder, time and notes, unless another command has written since.

        A renewal after the release of the lock writes nothing.
        """
        with self._guard:
            if not self._version or (self._ended.is_set() and holder is None):
                return
            if self._lost:
                raise self._gone()
            sent = self._pace.clock()
            try:
                changed = self._patch(holder)
            except ClusterError as error:
                if error.status not in (404, 409):
                    raise
                self._adopt()
                changed = self._patch(holder)
            self._version, self._renewed = version_of(changed), sent

    def _patch(self, holder: str | None) -> Object:
        change = {
            "metadata": {"resourceVersion": self._version, "annotations": with_notes(self.notes)},
            "spec": lease_spec(self._holder) if holder is None else {"holderIdentity": holder},
        }
        return self._cluster.patch(LEASE, self._name, change, namespace=self._namespace)

    def _adopt(self) -> None:
        """Accept our own write whose response was lost; any other writer has taken over the lock."""
        found = self._cluster.get(LEASE, self._name, self._namespace)
        if found is None or holder_of(found) != self._holder:
            self._lost = True
            raise self._gone()
        self._version = version_of(found)
