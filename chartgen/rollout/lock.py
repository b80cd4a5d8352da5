"""One chartgen command at a time changes a release: a Lease beside it, which also notes what must outlive the command.

It works as leader election does (client-go, tools/leaderelection): a holder renews it; who wants it takes it over when
it was not renewed for its duration, watched by the own clock, so that two machines' clocks need not agree.
"""

from __future__ import annotations

import getpass
import json
import secrets
import socket
import threading
import time
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from chartgen.cluster import LEASE, Cluster, ClusterError, Object
from chartgen.errors import ChartgenError, Problem
from chartgen.records import read_time
from chartgen.tools import Progress

if TYPE_CHECKING:
    from typing_extensions import Self

DURATION = 15.0  # seconds without a renewal after which a holder counts as dead
_RENEW = 4.0  # seconds between renewals: three may fail
# A Lease this old is dead, whatever the difference of two clocks.
_LONG_DEAD = timedelta(minutes=5)
_NOTES = "chartgen/notes"
_LABELS = {"app.kubernetes.io/managed-by": "chartgen"}


def lease_name(release: str) -> str:
    """Give the name of a release's Lease."""
    return f"chartgen-{release}"


def read_notes(cluster: Cluster, release: str, namespace: str) -> dict[str, list[str]] | None:
    """Give what earlier commands noted of a release; None when no command of chartgen has changed it."""
    lease = cluster.get(LEASE, lease_name(release), namespace)
    return _notes(lease) if lease else None


class Lock:
    """Holds a release for the time of a `with` block.

    Args:
        cluster: Where the release lives.
        release: Its name.
        namespace: Its namespace.
        action: What is done, for the message that others get: install, upgrade, ...
        progress: Gets a line when a dead holder's time has to run out.

    Raises:
        ChartgenError: Another command holds the release.
    """

    def __init__(self, cluster: Cluster, release: str, namespace: str, action: str, progress: Progress) -> None:
        self._cluster, self._release, self._namespace = cluster, release, namespace
        self._name = lease_name(release)
        # the last part tells two commands of one person from each other
        self._holder = f"{getpass.getuser()}@{socket.gethostname()} ({action}, {secrets.token_hex(3)})"
        self._progress = progress
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._lost = ""
        self._version = ""
        self.notes: dict[str, list[str]] = {}

    def __enter__(self) -> Self:
        self._acquire()
        threading.Thread(target=self._renew, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        try:
            self._write(holder="")
        except ChartgenError:
            # whoever waits for it takes it over in a moment; a failure of the block's own says more
            if kind is None:
                raise

    def note(self, **notes: list[str]) -> None:
        """Keep names beside the release; an empty list forgets them.

        Raises:
            ChartgenError: Another command has taken the release over.
        """
        self.check()
        self.notes = {key: names for key, names in {**self.notes, **notes}.items() if names}
        self._write()

    def check(self) -> None:
        """Make sure that this command still holds the release.

        Raises:
            ChartgenError: It was away for so long that another command has taken over.
        """
        if self._lost:
            raise ChartgenError(Problem(f"lost the release to another command: {self._lost}", hint="look at `status`"))

    def remove(self) -> None:
        """Remove the Lease with its notes: the release is no more."""
        self._ended.set()
        with self._guard:
            self._cluster.delete(LEASE, self._name, self._namespace)
            self._version = ""

    def _acquire(self) -> None:
        lease = self._cluster.get(LEASE, self._name, self._namespace)
        if lease is None:
            self._create()
            return
        if _holder(lease) and not _long_dead(lease):
            lease = self._await_death(lease)
        self.notes, self._version = _notes(lease), lease["metadata"]["resourceVersion"]
        self._write()

    def _create(self) -> None:
        metadata = {"name": self._name, "namespace": self._namespace, "labels": _LABELS}
        item = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": metadata, "spec": self._spec()}
        try:
            self._version = self._cluster.create(LEASE, item)["metadata"]["resourceVersion"]
        except ClusterError as error:
            if error.status == 409:
                raise self._taken("another command") from None
            if error.status == 404:
                hint = f"create it: `kubectl create namespace {self._namespace}`"
                raise ChartgenError(Problem(f"there is no namespace {self._namespace}", hint=hint)) from None
            raise

    def _await_death(self, lease: Object) -> Object:
        """Wait until a holder has not renewed for the duration; refuse as soon as it has."""
        holder, seen = _holder(lease), lease["spec"].get("renewTime")
        self._progress(f"{holder} holds the release; watching whether it is alive")
        deadline = time.monotonic() + DURATION
        while time.monotonic() < deadline:
            time.sleep(0.25)
            now = self._cluster.get(LEASE, self._name, self._namespace)
            if now is None or not _holder(now):
                raise self._taken(holder, over=True)
            if now["spec"].get("renewTime") != seen:
                raise self._taken(_holder(now))
        self._progress(f"{holder} was stopped on its way; going on from what it left")
        return lease

    def _taken(self, holder: str, *, over: bool = False) -> ChartgenError:
        state = "has just changed" if over else "is changing"
        hint = "look at `chartgen status`, then try again"
        return ChartgenError(Problem(f"{holder} {state} release {self._release}", hint=hint))

    def _renew(self) -> None:
        while not self._ended.wait(_RENEW):
            try:
                self._write()
            except ClusterError as error:
                if error.status in (404, 409):
                    self._lost = str(error)
                    return
            except ChartgenError:
                continue  # the cluster is away for a moment; `check` tells when another command took over

    def _write(self, holder: str | None = None) -> None:
        """Write holder, time and notes, only if nobody else has written since."""
        with self._guard:
            if not self._version:
                return
            change = {
                "metadata": {"resourceVersion": self._version, "annotations": {_NOTES: json.dumps(self.notes)}},
                "spec": self._spec() if holder is None else {"holderIdentity": holder},
            }
            try:
                changed = self._cluster.patch(LEASE, self._name, change, namespace=self._namespace)
            except ClusterError as error:
                if error.status == 409:
                    self._lost = "it was taken over"
                    raise self._taken("another command") from None
                raise
            self._version = changed["metadata"]["resourceVersion"]

    def _spec(self) -> dict[str, Any]:
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {"holderIdentity": self._holder, "leaseDurationSeconds": int(DURATION), "renewTime": now}


def _holder(lease: Object) -> str:
    return str(lease["spec"].get("holderIdentity") or "")


def _long_dead(lease: Object) -> bool:
    renewed = lease["spec"].get("renewTime")
    return renewed is None or datetime.now(timezone.utc) - read_time(renewed) > _LONG_DEAD


def _notes(lease: Object) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(lease["metadata"].get("annotations", {}).get(_NOTES, "{}"))
    return found
