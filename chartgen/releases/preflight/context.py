"""Input of all checks: the planned release, and the cluster, with everything read at most once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from chartgen.helm.chart import Chart
from chartgen.helm.values import Values
from chartgen.kube import NODE, QUEUE_LABEL, Cluster, ClusterError, Kind, Object
from chartgen.kube.pods import Pods, pods_of
from chartgen.kube.run_kinds import run_kind
from chartgen.kube.scheduling import offers, untolerated, why_unusable
from chartgen.kube.workloads import find_runs, outcome
from chartgen.releases.history import RevisionRecord, read_records

if TYPE_CHECKING:
    from typing_extensions import Self


Status: TypeAlias = Literal["pass", "warn", "fail"]


@dataclass(frozen=True)
class Diagnosis:
    """Result of a check.

    Args:
        name: Stable id of the check, such as queue-quota; empty until the examination sets it.
        status: The outcome; a failure prevents the release from running.
        text: The finding, with numbers.
        fix: The command or step that fixes the problem; empty when nothing is to do.
    """

    name: str
    status: Status
    text: str
    fix: str = ""


def passed(text: str) -> Diagnosis:
    """Return the result of a passed check."""
    return Diagnosis("", "pass", text)


def warned(text: str, fix: str) -> Diagnosis:
    """Return a warning: the release can run, but the user should know about it."""
    return Diagnosis("", "warn", text, fix)


def failed(text: str, fix: str) -> Diagnosis:
    """Return a failure: it prevents the release from running."""
    return Diagnosis("", "fail", text, fix)


T = TypeVar("T")


@dataclass(frozen=True)
class PreflightContext:
    """A planned release on a cluster, with the cluster data read so far."""

    cluster: Cluster
    chart: Chart | None  # the release's chart; None when only the cluster is checked
    values: Values | None  # the user's layers; None without a chart
    objects: list[Object]
    release: str
    namespace: str
    _read: dict[Any, Future[Any]] = field(default_factory=dict, repr=False)

    def of_check(self) -> Self:
        """Return the same for one check of several at a time: with gaps of its own."""
        own = copy(self.cluster)
        own.unread, own.unreadable = {}, {}
        return replace(self, cluster=own)

    def get(self, kind: Kind, name: str) -> Object | None:
        """Return an object of the cluster or of the release's namespace; None when it does not exist."""
        return self.once((kind, name), lambda: self.cluster.get(kind, name, self.namespace))

    def find(self, kind: Kind, *, namespace: str = "") -> list[Object]:
        """Return objects, by default of all namespaces; empty when the kind does not exist."""
        return self.once((kind, namespace), lambda: self.cluster.list(kind, namespace=namespace))

    def trial(self, kind: Kind, item: Object) -> Object | ClusterError:
        """Dry-run an object on the API server, webhooks included; return the object it would store, or its error.

        Raises:
            ClusterError: The caller may not create such an object.
        """
        return self.once((kind, item["metadata"]["name"], "trial"), lambda: self._try(kind, item))

    def once(self, key: Any, read: Callable[[], T]) -> T:
        """Compute a value at the first call of any check, and cache it; what it left out is a gap of each check."""
        mine: Future[Any] = Future()
        if (cached := self._read.setdefault(key, mine)) is mine:
            own, self.cluster.unreadable = self.cluster.unreadable, {}
            try:
                mine.set_result((read(), self.cluster.unreadable))
            except Exception as error:  # noqa: BLE001 - raised in each check that needs the value
                mine.set_exception(error)
            self.cluster.unreadable = own
        found, gaps = cached.result()
        for place, names in gaps.items():
            self.cluster.unreadable.setdefault(place, {}).update(names)
        value: T = found
        return value

    def makes(self, kind: str, name: str) -> bool:
        """Report whether the release itself makes an object."""
        return self.made(kind, name) is not None

    def made(self, kind: str, name: str) -> Object | None:
        """Return an object that the release itself makes; None when it does not."""
        return next((each for each in self.objects if (each["kind"], each["metadata"]["name"]) == (kind, name)), None)

    @cached_property
    def run(self) -> Object | None:
        """Return the object that runs the program; None for setup charts."""
        return next(filter(run_kind, self.objects), None)

    @cached_property
    def pods(self) -> list[Pods]:
        """Return the pods that the release makes."""
        return pods_of(self.objects)

    @cached_property
    def queue(self) -> str:
        """Return the Kueue queue of the run; empty = none."""
        return str((self.run or {"metadata": {}})["metadata"].get("labels", {}).get(QUEUE_LABEL, ""))

    @property
    def nodes(self) -> list[Object]:
        """Return all machines that can be read."""
        return self.once("nodes", lambda: [node for node, _ in self.cluster.judged(self.find(NODE), _facts)])

    @property
    def records(self) -> list[RevisionRecord]:
        """Return Helm's records of the release."""
        return self.once("records", lambda: read_records(self.cluster, self.release, self.namespace))

    @property
    def runs(self) -> list[Object]:
        """Return the live runs of the release."""
        return self.once("runs", lambda: find_runs(self.cluster, self.release, self.namespace))

    @property
    def is_running(self) -> bool:
        """Report whether a run of the release already occupies or waits for machines."""
        return any(not outcome(run) for run in self.runs)

    def _try(self, kind: Kind, item: Object) -> Object | ClusterError:
        metadata = {**item["metadata"], "namespace": self.namespace} if kind.namespaced else item["metadata"]
        try:
            return self.cluster.create(kind, {**item, "metadata": metadata}, dry_run=True)
        except ClusterError as error:
            if error.denied:
                raise
            return error


def _facts(node: Object) -> object:
    """Return everything that checks ask of a machine: one without the form of its kind is left out here."""
    return offers(node), why_unusable(node), untolerated(node, ())


def read_if_allowed(read: Callable[[], T]) -> T | None:
    """Read optional data; None when the caller lacks the permission."""
    try:
        return read()
    except ClusterError as error:
        if error.denied:
            return None
        raise


def condition(item: Object, name: str) -> Object:
    """Return a condition of an object; empty when it has none of that type."""
    found = item.get("status", {}).get("conditions", ())
    return next((each for each in found if each["type"] == name), {})
