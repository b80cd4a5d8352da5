"""The pods of a run, a few facts of each: a run of a thousand machines is read in pages and kept in little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chartgen.kube import Cluster, Object
from chartgen.kube.workloads import each_pod
from chartgen.releases.history import read_time
from chartgen.releases.status.pods import gpus, is_started, program_of, why_unplaced

# Where controllers write a pod's number: Job and JobSet, training-operator, Volcano.
_INDEX_LABELS = (
    "batch.kubernetes.io/job-completion-index",
    "training.kubeflow.org/replica-index",
    "volcano.sh/task-index",
)
# Where they write the task that the number counts in.
_TASK_LABELS = ("training.kubeflow.org/replica-type", "volcano.sh/task-spec")
# Waiting reasons of containers that pass by themselves.
_PASSING = {"ContainerCreating", "PodInitializing"}


@dataclass(frozen=True)
class End:
    """How a container ended.

    Args:
        container: Its name.
        exit_code: Its exit code.
        reason: The kubelet's word, such as Error or OOMKilled.
        message: What it left in its termination message.
        at: When it ended; None when the kubelet does not know.
    """

    container: str
    exit_code: int
    reason: str
    message: str
    at: datetime | None


@dataclass(frozen=True)
class Member:
    """One pod of a run.

    Args:
        name: Its name.
        uid: Tells it from a pod of the same name that replaces it.
        index: Its number among the pods of its task; None when it has none.
        place: Labels that a pod which replaces it carries too: its number and its task.
        gpus: Its GPUs.
        ranks: Global ranks of its processes; none when it has no GPU, such as the master of an MPI job.
        machine: The machine that it is placed on; empty when it is not.
        container: Name of the container that runs the program.
        phase: Kubernetes' word.
        ready: It runs and its containers are ready, or it has succeeded.
        started: It runs, or has succeeded.
        since: When its program started.
        restarts: How often its containers were restarted, all together.
        program_restarts: How often that of the program was.
        ends: Its containers that ended with a failure, or the pod's own reason to fail.
        unplaced: Why the scheduler cannot place it, in its own words.
        stuck: Reason, message and image of a container that does not start.
    """

    name: str
    uid: str
    index: int | None
    place: tuple[tuple[str, str], ...]
    gpus: int
    ranks: range
    machine: str
    container: str
    phase: str
    ready: bool
    started: bool
    since: datetime | None
    restarts: int
    program_restarts: int
    ends: tuple[End, ...]
    unplaced: str
    stuck: tuple[str, str, str] | None


def each_member(cluster: Cluster, release: str, namespace: str) -> Iterator[tuple[Member, Object]]:
    """Return the pods that a release's runs made and that are not being deleted, each with its object."""
    for pod in each_pod(cluster, release, namespace):
        yield member(pod), pod


def member(pod: Object) -> Member:
    """Take what counts out of a pod."""
    status, program, index = pod.get("status", {}), program_of(pod), _index(pod)
    containers = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    count = _processes(program, gpus(pod))
    return Member(
        name=pod["metadata"]["name"],
        uid=pod["metadata"]["uid"],
        index=index,
        place=_place(pod),
        gpus=gpus(pod),
        ranks=range(count * (index or 0), count * ((index or 0) + 1)),
        machine=pod["spec"].get("nodeName", ""),
        container=program["name"],
        phase=status.get("phase", "Pending"),
        ready=_is_ready(status),
        started=is_started(pod),
        since=_started_at(containers, program["name"]),
        restarts=sum(each.get("restartCount", 0) for each in containers),
        program_restarts=sum(each.get("restartCount", 0) for each in containers if each["name"] == program["name"]),
        ends=tuple(_ends(status, containers, program["name"])),
        unplaced=why_unplaced(pod),
        stuck=next((found for found in map(_stuck, containers) if found), None),
    )


def _is_ready(status: dict[str, Any]) -> bool:
    if status.get("phase") != "Running":
        return status.get("phase") == "Succeeded"
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))


def _index(pod: Object) -> int | None:
    labels = pod["metadata"].get("labels", {})
    return next((int(labels[name]) for name in _INDEX_LABELS if name in labels), None)


def _place(pod: Object) -> tuple[tuple[str, str], ...]:
    labels = pod["metadata"].get("labels", {})
    return tuple((name, labels[name]) for name in (*_INDEX_LABELS, *_TASK_LABELS) if name in labels)


def _processes(program: dict[str, Any], gpus_of_pod: int) -> int:
    """Count the ranks of a pod: what its start script is told, else one for each GPU."""
    env = {each["name"]: each.get("value") for each in program.get("env", ())}
    return int(env.get("GPUS_PER_NODE") or gpus_of_pod) if gpus_of_pod else 0


def _started_at(containers: list[dict[str, Any]], program: str) -> datetime | None:
    for each in containers:
        started = each.get("state", {}).get("running", {}).get("startedAt")
        if each["name"] == program and started:
            return read_time(started)
    return None


def _ends(status: dict[str, Any], containers: list[dict[str, Any]], program: str) -> Iterator[End]:
    """Return what failed, the program first: a sidecar that ends with an error often follows it."""
    found = False
    for each in sorted(containers, key=lambda each: each["name"] != program):
        ended = each.get("state", {}).get("terminated") or each.get("lastState", {}).get("terminated") or {}
        if ended.get("exitCode"):
            found, at = True, ended.get("finishedAt")
            reason, message = ended.get("reason", ""), ended.get("message", "")
            yield End(each["name"], ended["exitCode"], reason, message, read_time(at) if at else None)
    if status.get("phase") == "Failed" and not found:
        yield End("", 0, status.get("reason", ""), status.get("message", ""), None)


def _stuck(container: dict[str, Any]) -> tuple[str, str, str] | None:
    waiting = container.get("state", {}).get("waiting", {})
    if not waiting or waiting.get("reason", "ContainerCreating") in _PASSING:
        return None
    return waiting["reason"], waiting.get("message", ""), container["image"]
