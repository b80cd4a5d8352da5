"""Events: often the only trace of a problem of a run. Kubernetes keeps them for an hour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from chartgen.kube import EVENT, Cluster, Object
from chartgen.kube.run_kinds import owner_names, run_names
from chartgen.releases.history import parse_time
from chartgen.releases.status.members import refusal
from chartgen.visible import shortened

# Warnings on a run that repeat those of its pods or PodGroup, or are meaningless (Volcano, training-operator).
_NO_REASON = {"PodGroupPending", "Unschedulable", "SchedulingGated", "SetPodTemplateRestartPolicy"}
# Causes of a pod's removal, by the reason of the pod's event (kubernetes, pkg/controller/tainteviction,
# pkg/scheduler/framework/preemption, pkg/kubelet/eviction, pkg/controller/nodelifecycle).
_LOSSES = {
    "TaintManagerEviction": "its machine was lost or drained",
    "Preempted": "a pod of higher priority took its place",
    "Evicted": "its machine ran out of a resource",
    "NodeNotReady": "its machine does not answer",
}


@dataclass(frozen=True)
class Event:
    """One event about an object, by its kind and name, at the time of its last occurrence."""

    about: tuple[str, str]
    reason: str
    message: str
    at: datetime
    source: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


@dataclass(frozen=True)
class RemovedPod:
    """A pod that was removed from a run; its machine is empty when no event shows it."""

    pod: str
    machine: str
    why: str
    at: datetime


def run_warnings(cluster: Cluster, runs: Iterable[Object], namespace: str) -> list[Event]:
    """Return the Warning events of runs and of the owners of their pods: a rejected pod leaves no other trace."""
    own = [run["metadata"]["name"] for run in runs]
    if not own:
        return []
    known = run_names() | owner_names()
    return [
        event
        for event in _read(cluster, namespace, "type=Warning")
        if event.about[0] in known
        and any(event.about[1] == run or event.about[1].startswith(f"{run}-") for run in own)
        and event.reason not in _NO_REASON
    ]


def pod_warnings(cluster: Cluster, pods: Iterable[str], namespace: str) -> list[Event]:
    """Return the Warning events of pods, except the scheduler's, which the pods repeat."""
    names = set(pods)
    found = _read(cluster, namespace, "type=Warning,involvedObject.kind=Pod")
    return [event for event in found if event.about[1] in names and event.reason != "FailedScheduling"]


def events_of(cluster: Cluster, item: Object) -> list[Event]:
    """Return the meaningful events of one object, oldest first."""
    metadata = item["metadata"]
    found = _read(cluster, metadata["namespace"], f"involvedObject.uid={metadata['uid']}")
    return sorted((event for event in found if event.reason not in _NO_REASON), key=lambda event: event.at)


def removed_pods(cluster: Cluster, runs: Iterable[Object], namespace: str) -> list[RemovedPod]:
    """Return the removed pods of runs, oldest removal first."""
    own = tuple(f"{run['metadata']['name']}-" for run in runs)
    found = [
        (event, why)
        for reason, why in _LOSSES.items()
        for event in _read(cluster, namespace, f"reason={reason},involvedObject.kind=Pod")
        if event.about[1].startswith(own)
    ]
    machines = _machines(cluster, {event.about[1] for event, _ in found}, namespace) if found else {}
    lost = [RemovedPod(event.about[1], machines.get(event.about[1], ""), why, event.at) for event, why in found]
    return sorted(lost, key=lambda loss: (loss.at, loss.pod))


def _machines(cluster: Cluster, pods: set[str], namespace: str) -> dict[str, str]:
    """Return the last machine of each pod, which only events show once the pods are gone."""
    placed = _read(cluster, namespace, "reason=Scheduled,involvedObject.kind=Pod")
    own = sorted((event for event in placed if event.about[1] in pods), key=lambda event: event.at)
    return {event.about[1]: event.message.rpartition(" to ")[2] for event in own}


def _read(cluster: Cluster, namespace: str, fields: str) -> Iterator[Event]:
    with cluster.optional():
        for _, event in cluster.judged(cluster.each(EVENT, namespace=namespace, fields=fields), _event):
            yield event


def _event(item: Object) -> Event:
    about = item["involvedObject"]
    written = item.get("lastTimestamp") or item.get("eventTime") or item["metadata"]["creationTimestamp"]
    return Event(
        (str(about.get("kind", "")), str(about.get("name", ""))),
        str(item.get("reason")),
        refusal(shortened(str(item.get("message")), 4096).strip()),
        parse_time(written),
        str(item.get("reportingComponent", "")),
    )
