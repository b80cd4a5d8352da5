"""The pods of a run, with a few facts and the log of each; read in pages, to keep memory small for thousands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from chartgen.kube import POD, Cluster, Object, Streams
from chartgen.kube.workloads import each_pod, gpus, program_of
from chartgen.releases.history import parse_time
from chartgen.visible import cut, shortened

_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_ORIGIN = re.compile(r"^pod group is not ready,.* Origin reason is [^:]+: ")
_NO_FAULT = {"SchedulingGated", "Schedulable"}
_GO_MESSAGE = re.compile(r'\bMessage:"((?:[^"\\]|\\.)*)"')
_METADATA = re.compile(r"metadata\.(?:(labels|annotations)\['([^']+)'\]|(name|namespace|uid))")


def rendezvous(pod: Object) -> str:
    """Return a pod's MASTER_ADDR:MASTER_PORT as its program receives them; empty without them."""
    for container in pod["spec"]["containers"]:
        env = _environment(container, pod)
        if address := env.get("MASTER_ADDR"):
            port = env.get("MASTER_PORT")
            return f"{address}:{port}" if port else address
    return ""


def _unplaced(status: dict[str, Any]) -> str:
    """Return the scheduler's message for a pod that it cannot place; empty when it can."""
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            # Volcano marks pods that wait for other pods, and quotes the others in the gang's message.
            return "" if condition.get("reason") in _NO_FAULT else _ORIGIN.sub("", str(condition.get("message")))
    return ""


def refusal(message: str) -> str:
    """Return the API server's error in a message of a controller that prints it as a Go structure."""
    quoted = _GO_MESSAGE.search(message)
    return quoted[1].replace('\\"', '"') if quoted else message


def _environment(container: dict[str, Any], pod: Object) -> dict[str, str]:
    """Return a container's environment as the kubelet resolves it, as far as the pod defines it."""
    env: dict[str, str] = {}
    for entry in container.get("env", ()):
        path = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        value = _field(path, pod) if path else entry.get("value", "")
        env[entry["name"]] = _REFERENCE.sub(lambda match: env.get(match[1], match[0]), value)
    return env


def _field(path: str, pod: Object) -> str:
    match = _METADATA.fullmatch(path)
    if match is None:
        return ""
    metadata = pod["metadata"]
    return str(metadata.get(match[1], {}).get(match[2], "") if match[1] else metadata.get(match[3], ""))


# Labels and annotations with a pod's number: Job and JobSet, the operators of Kubeflow, Volcano.
_INDEX_LABELS = (
    "batch.kubernetes.io/job-completion-index",
    "training.kubeflow.org/replica-index",
    "volcano.sh/task-index",
)
# Labels with the task of that number.
_TASK_LABELS = ("training.kubeflow.org/replica-type", "training.kubeflow.org/job-role", "volcano.sh/task-spec")
_COMPONENT = "app.kubernetes.io/component"
_DRIVERS = ("mpimaster", "submitter")  # library/workloads, mpi and rayjob
# Waiting reasons of containers that resolve without action.
_PASSING = {"ContainerCreating", "PodInitializing"}
# Seconds of silence after which a followed log is requested again, and any other fails: the machine may be gone.
IDLE = 30.0


@dataclass(frozen=True)
class End:
    """End of a container, with the kubelet's reason, such as OOMKilled; its time is None when the kubelet lacks it."""

    container: str
    exit_code: int
    reason: str
    message: str
    at: datetime | None


@dataclass(frozen=True)
class Member:
    """One pod of a run."""

    name: str
    uid: str  # distinguishes it from a replacement pod of the same name
    index: int | None  # its number among the pods of its task; None without a number
    place: tuple[tuple[str, str], ...]  # labels that a replacement pod shares: its number, its task and its component
    gpus: int
    # Global ranks of its processes; empty without a GPU, as for the master of an MPI job, and without a number, as for
    # the workers of a Ray job
    ranks: range
    machine: str  # its machine; empty before placement
    container: str  # the program's container, to which `since` and `program_restarts` belong
    phase: str
    ready: bool  # it runs and its containers are ready, or it has succeeded
    started: bool  # it runs, or has succeeded
    since: datetime | None
    restarts: int
    program_restarts: int
    ends: tuple[End, ...]  # its containers that failed, or the failure of the pod itself
    unplaced: str
    stuck: tuple[str, str, str] | None  # reason, message and image of a container that does not start
    image: str = ""  # of the program's container, with its digest; empty before the kubelet has it
    # It starts the program for all others, and prints their output: the master of an MPI job, the submitter of a Ray
    # job
    drives: bool = False


def each_member(cluster: Cluster, release: str, namespace: str) -> Iterator[tuple[Member, Object]]:
    """Yield the pods of a release's runs that are not being deleted, each with its object."""
    for pod, found in cluster.judged(each_pod(cluster, release, namespace), member):
        yield found, pod


def member(pod: Object) -> Member:
    """Return the relevant facts of a pod."""
    status, program, index = pod.get("status", {}), program_of(pod), _index(pod)
    containers = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    own = [each for each in containers if each["name"] == program["name"]]
    count = _processes(program, gpus(pod)) if index is not None else 0
    return Member(
        name=pod["metadata"]["name"],
        uid=pod["metadata"]["uid"],
        index=index,
        place=_place(pod),
        gpus=gpus(pod),
        ranks=range(count * (index or 0), count * ((index or 0) + 1)),
        machine=str(pod["spec"].get("nodeName", "")),
        container=str(program["name"]),
        phase=str(status.get("phase", "Pending")),
        ready=_is_ready(status),
        started=status.get("phase") in {"Running", "Succeeded"},
        since=next((parse_time(time) for time in map(_start, own) if time), None),
        restarts=sum(each.get("restartCount", 0) for each in containers),
        program_restarts=sum(each.get("restartCount", 0) for each in own),
        ends=tuple(_ends(status, containers, program["name"])),
        unplaced=_unplaced(status),
        stuck=next((found for found in map(_stuck, containers) if found), None),
        image="".join(str(each.get("imageID", "")) for each in own),
        drives=pod["metadata"].get("labels", {}).get(_COMPONENT) in _DRIVERS,
    )


def pod_log(
    cluster: Cluster, member: Member, namespace: str, streams: Streams | None = None, /, **options: str | int
) -> Iterator[str]:
    """Return an iterator over the lines of the program's log as they come.

    Args:
        options: Of the API (PodLogOptions), such as follow, previous, sinceTime, tailLines or timestamps.

    Raises:
        ClusterError: The pod or its machine is gone, or its container has not started.
        MissingToolError: The connection is lost.
    """
    params = {"container": member.container, **{key: str(value) for key, value in options.items()}}
    return cluster.stream(POD, member.name, namespace, subresource="log", params=params, idle=IDLE, streams=streams)


def last_lines(cluster: Cluster, member: Member, namespace: str, count: int) -> list[str]:
    """Return the last lines of a pod's log.

    Raises:
        ClusterError: The pod or its machine is gone, or its container has not started.
        MissingToolError: The connection is lost.
    """
    return [*islice(pod_log(cluster, member, namespace, tailLines=count), count)]


def since_option(since: int) -> dict[str, str | int]:
    """Return the API option for the last seconds; empty for 0."""
    return {"sinceSeconds": since} if since else {}


def _is_ready(status: dict[str, Any]) -> bool:
    if status.get("phase") != "Running":
        return status.get("phase") == "Succeeded"
    return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", ()))


def _index(pod: Object) -> int | None:
    labels = pod["metadata"].get("labels", {})
    return next((int(labels[name]) for name in _INDEX_LABELS if name in labels), None)


def _place(pod: Object) -> tuple[tuple[str, str], ...]:
    labels = pod["metadata"].get("labels", {})
    return tuple((name, labels[name]) for name in (*_INDEX_LABELS, *_TASK_LABELS, _COMPONENT) if name in labels)


def _processes(program: dict[str, Any], gpus_of_pod: int) -> int:
    """Count the ranks of a pod: the number given to its start script, else one for each GPU."""
    given = (each.get("value") for each in program.get("env", ()) if each["name"] == "GPUS_PER_NODE")
    number = int(next(given, "") or gpus_of_pod) if gpus_of_pod else 0
    if not 0 <= number <= 1024:  # of another tenant: all ranks are looked through
        raise ValueError("more ranks than any pod")
    return number


def _start(container: dict[str, Any]) -> str:
    return str(container.get("state", {}).get("running", {}).get("startedAt") or "")  # Go prints an unset time as null


def _ends(status: dict[str, Any], containers: list[dict[str, Any]], program: str) -> Iterator[End]:
    """Yield failed containers, the program first: sidecars often fail after it."""
    found = False
    for container in sorted(containers, key=lambda each: each["name"] != program):
        ended = container.get("state", {}).get("terminated") or container.get("lastState", {}).get("terminated") or {}
        if ended.get("exitCode"):
            found, at = True, ended.get("finishedAt")
            when = parse_time(at) if at else None
            yield End(str(container["name"]), int(ended["exitCode"]), *_why(ended), when)
    if status.get("phase") == "Failed" and not found:
        reason, message = _why(status)
        yield End("", 0, cut(reason, 100), shortened(message, 4096), None)


def _stuck(container: dict[str, Any]) -> tuple[str, str, str] | None:
    waiting = container.get("state", {}).get("waiting", {})
    if not waiting or waiting.get("reason", "ContainerCreating") in _PASSING:
        return None
    return *_why(waiting), str(container["image"])


def _why(state: dict[str, Any]) -> tuple[str, str]:
    return str(state.get("reason") or ""), str(state.get("message") or "")
