"""The answers of an API server about one release, in each state that a run can be in: with every field that is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import hostileclusters
import manifests
from hostileclusters import _AT, _QUEUE, RELEASE, SPACE, _conditions, _named, _pod

from chartgen.kube import kinds
from chartgen.kube.kinds import Kind

Objects = dict[str, list[dict[str, Any]]]
_HELM = {"meta.helm.sh/release-name": RELEASE, "meta.helm.sh/release-namespace": SPACE}
_ENDED = {"exitCode": 1, "reason": "Error", "message": "ValueError: x", "finishedAt": _AT}
_GROUP = f"{RELEASE}-{SPACE}-{RELEASE}"


def _container(restarts: int, **state: Any) -> dict[str, Any]:
    last = {"lastState": {"terminated": _ENDED}} if restarts else {}
    return {"name": "train", "image": "x", "restartCount": restarts, "state": state, **last}


def _condition(kind: str, status: str, **parts: str) -> dict[str, str]:
    return {**_conditions(**{kind: status})[0], **parts}


_TAINTED = "0/2 nodes are available: 2 node(s) had untolerated taint {a: b}, 1 Insufficient cpu."
_STATES: dict[str, dict[str, Any]] = {
    "runs": {"phase": "Running", "conditions": _conditions(Ready="True", PodScheduled="True")},
    "failed": {"phase": "Failed", "containerStatuses": [_container(0, terminated={**_ENDED, "exitCode": 137})]},
    "evicted": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource"},
    "succeeded": {"phase": "Succeeded"},
    "stuck": {
        "phase": "Pending",
        "containerStatuses": [_container(0, waiting={"reason": "ImagePullBackOff", "message": "no such image"})],
    },
    "unplaced": {
        "phase": "Pending",
        "conditions": [_condition("PodScheduled", "False", reason="Unschedulable", message=_TAINTED)],
    },
}


def _pods(*states: str, owner: str = "Job") -> list[dict[str, Any]]:
    found = []
    for number, state in enumerate(states):
        pod = deepcopy(_pod(number))
        pod["metadata"]["ownerReferences"][0]["kind"] = owner
        pod["metadata"]["labels"] |= {"run": RELEASE, "app.kubernetes.io/component": "train"}
        pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "train", **_HELM}
        pod["spec"]["containers"][0]["env"] += [
            {"name": "NNODES", "value": "1"},
            {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['run']"}}},
        ]
        running = {"containerStatuses": [_container(number, running={"startedAt": _AT})]} if state == "runs" else {}
        found.append({**pod, "status": {**deepcopy(_STATES[state]), **running}})
    return found


def _event(number: int, reason: str, kind: str, name: str, message: str, sort: str = "Warning") -> dict[str, Any]:
    about = {"kind": kind, "name": name, "uid": f"{SPACE}-{name}"}
    parts = {"reason": reason, "message": message, "type": sort, "lastTimestamp": _AT, "reportingComponent": "x"}
    return _named(f"event-{number}", involvedObject=about, **parts)


def _own(run: dict[str, Any], **status: Any) -> dict[str, Any]:
    metadata = {**_named(RELEASE)["metadata"], **run["metadata"], "annotations": _HELM}
    metadata["labels"] = {**run["metadata"].get("labels", {}), kinds.INSTANCE_LABEL: RELEASE}
    return {**run, "metadata": metadata, "status": status}


def _with(run: dict[str, Any], kind: Kind, pods: list[dict[str, Any]], *others: tuple[Kind, dict[str, Any]]) -> Objects:
    """Return a cluster with a run, its pods, and objects that belong to it."""
    found = deepcopy(hostileclusters._cluster())
    found[kinds.JOBSET.path()] = []
    found[kind.path()] = [run, *(each for each in found[kind.path()] if each["metadata"]["namespace"] != SPACE)]
    found[kinds.POD.path()] = [*pods, *found[kinds.POD.path()][-1:]]
    found[kinds.EVENT.path()] = [
        _event(1, "Evicted", "Pod", f"{RELEASE}-workers-1", "low on memory"),
        _event(2, "Scheduled", "Pod", f"{RELEASE}-workers-1", "Successfully assigned ml/x to node-1", "Normal"),
        _event(3, "FailedCreate", kind.name, RELEASE, 'pods "x" is forbidden: exceeded quota'),
        _event(4, "FailedMount", "Pod", f"{RELEASE}-workers-0", "no secret"),
        _event(5, "Unschedulable", "PodGroup", _GROUP, "queue resource quota insufficient: insufficient cpu"),
    ]
    found[kinds.WORKLOAD.path()][0]["metadata"]["ownerReferences"][0]["kind"] = kind.name
    for other, item in others:
        found[other.path()].append(item)
    return found


def _jobset(pods: list[dict[str, Any]], restarts: int = 0, **conditions: str) -> Objects:
    run = _own(manifests.jobset(RELEASE, 2, namespace=SPACE, queue=_QUEUE), restarts=restarts)
    run["spec"]["failurePolicy"]["maxRestarts"] = 3
    run["spec"]["suspend"] = conditions.get("Suspended") == "True"
    run["status"]["conditions"] = _conditions(**conditions)
    return _with(run, kinds.JOBSET, pods)


def _queued(*conditions: dict[str, str]) -> Objects:
    found = _jobset([], Suspended="True")
    check = {"name": "prov", "state": "Pending", "message": "m", "lastTransitionTime": _AT}
    found[kinds.WORKLOAD.path()][0]["status"] = {"conditions": [*conditions], "admissionChecks": [check]}
    inactive = _condition("Active", "False", message="no flavor")
    found[kinds.CLUSTER_QUEUE.path()][0]["status"]["conditions"] = [inactive]
    return found


def states() -> Iterator[tuple[str, Objects]]:
    """Yield a name and the objects of each state."""
    yield "running", _jobset(_pods("runs", "runs"), 1, Suspended="False")
    yield "failed", _jobset(_pods("failed", "runs"), 3, Failed="True")
    yield "lost", _jobset([], 3, Failed="True")
    yield "evicted", _jobset(_pods("evicted", "runs"))
    yield "finished", _jobset(_pods("succeeded", "succeeded"), Completed="True")
    yield "pending", _jobset(_pods("stuck", "unplaced"))
    yield "without pods", _jobset([])
    message = "insufficient unused quota for nvidia.com/gpu in flavor a3-mega, 8 more needed"
    yield "queued", _queued(_condition("QuotaReserved", "False", message=message))
    evicted = _condition("Evicted", "True", message="Preempted to accommodate a workload (UID: x) due to priority")
    yield (
        "stopped",
        _queued(_condition("QuotaReserved", "False", message=f"ClusterQueue {_QUEUE} is inactive"), evicted),
    )
    yield "checked", _queued(_condition("QuotaReserved", "True"))
    two = ("failed", "runs")
    ended = {"conditions": _conditions(Failed="True")}
    run = manifests.job(RELEASE, 2, namespace=SPACE, queue=_QUEUE)
    yield "job", _with(_own(run, **ended, failed=1), kinds.JOB, _pods(*two))
    run = manifests.pytorchjob(RELEASE, 2, namespace=SPACE, queue=_QUEUE)
    yield "pytorchjob", _with(_own(run, **ended), kinds.PYTORCHJOB, _pods(*two, owner="PyTorchJob"))
    run = manifests.mpijob(RELEASE, 2, namespace=SPACE, queue=_QUEUE)
    succeeded = {"conditions": _conditions(Succeeded="True")}
    yield "mpijob", _with(_own(run, **succeeded), kinds.MPIJOB, _pods("runs", "runs", owner="MPIJob"))
    run = manifests.volcano_job(RELEASE, 2, namespace=SPACE)
    state = {"phase": "Pending", "reason": "x", "message": "y", "lastTransitionTime": _AT}
    group = _named(_GROUP, spec={"minMember": 3}, status={"phase": "Pending"})
    yield (
        "volcano",
        _with(
            _own(run, state=state, conditions=[{"status": "Pending"}]), kinds.VOLCANO_JOB, [], (kinds.POD_GROUP, group)
        ),
    )
    failed = {"state": {**state, "phase": "Failed"}, "retryCount": 1}
    yield "volcano failed", _with(_own(run, **failed), kinds.VOLCANO_JOB, _pods(*two))
    inner = _own(manifests.jobset(RELEASE, 2, namespace=SPACE), **ended, restarts=2)
    inner["metadata"]["ownerReferences"] = [{"kind": "TrainJob", "name": RELEASE, "uid": f"{SPACE}-{RELEASE}"}]
    runtime = _own(manifests.training_runtime(RELEASE, 2, namespace=SPACE))
    whole = _own(manifests.trainjob(RELEASE, namespace=SPACE, queue=_QUEUE), **ended)
    parts = ((kinds.TRAINING_RUNTIME, runtime), (kinds.JOBSET, inner))
    yield "trainjob", _with(whole, kinds.TRAINJOB, _pods(*two), *parts)
    group = {"groupName": "workers", "replicas": 2, "template": manifests._pod(RELEASE)}
    spec: dict[str, Any] = {
        "rayClusterSpec": {"headGroupSpec": {"template": manifests._pod(RELEASE, gpus=0)}},
        "backoffLimit": 2,
    }
    spec["rayClusterSpec"]["workerGroupSpecs"] = [group]
    run = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": RELEASE, "namespace": SPACE}, "spec": spec}
    ray = {"jobDeploymentStatus": "Failed", "jobStatus": "FAILED", "reason": "AppFailed", "message": "m", "failed": 1}
    yield "rayjob", _with(_own(run, **ray, endTime=_AT), kinds.RAYJOB, _pods(*two, owner="RayCluster"))


def answers(objects: Objects) -> dict[str, bytes]:
    """Return the answers of a cluster by their paths, with the logs of its pods."""
    texts = {path: json.dumps(each).encode() for path, each in hostileclusters._paths(objects).items()}
    logs = (f"{kinds.POD.path(SPACE, f'{RELEASE}-workers-{number}')}/log" for number in (0, 1))
    return texts | dict.fromkeys(logs, hostileclusters._LOG * 3)
