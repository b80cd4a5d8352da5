"""The runs of a release, whatever their kind: how many pods they ask for, and how they failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chartgen.kube import INSTANCE_LABEL, JOB, JOBSET, POD, PYTORCHJOB, VOLCANO_JOB, Cluster, Object

RUN_KINDS = (JOBSET, PYTORCHJOB, VOLCANO_JOB, JOB)
# Kinds that own the pods of a run: a JobSet's belong to its Jobs, and both kinds of Job have one name.
_POD_OWNERS = {"Job", "PyTorchJob"}
_FINISHED = {"Complete", "Completed", "Succeeded"}  # conditions of a Job, a JobSet and a PyTorchJob
_VOLCANO_FAILED = {"Failed", "Aborted", "Terminated"}  # final phases of a Volcano Job, beside Completed


def find_runs(cluster: Cluster, release: str, namespace: str, *, deleting: bool = False) -> list[Object]:
    """Return the release's own runs, without the Jobs of a JobSet, and without those that are `deleting`."""
    labels = {INSTANCE_LABEL: release}
    # The API leaves out kind and version of built-in objects in lists.
    found = [
        {"kind": kind.name, "apiVersion": kind.api_version, **item}
        for kind in RUN_KINDS
        if cluster.serves(kind)
        for item in cluster.list(kind, namespace=namespace, labels=labels)
    ]
    return [item for item in found if not owners(item) and (deleting or "deletionTimestamp" not in item["metadata"])]


def find_pods(cluster: Cluster, release: str, namespace: str) -> list[Object]:
    """Return the release's pods that a run made and that are not being deleted."""
    return [*each_pod(cluster, release, namespace)]


def each_pod(
    cluster: Cluster, release: str, namespace: str, labels: Mapping[str, str] | None = None
) -> Iterator[Object]:
    """Return the same pods one by one, or those with some more labels; no more than a page of them is held."""
    for pod in cluster.each(POD, namespace=namespace, labels={INSTANCE_LABEL: release, **(labels or {})}):
        if _POD_OWNERS & set(owners(pod)) and "deletionTimestamp" not in pod["metadata"]:
            yield pod


def is_volcano(run: Object) -> bool:
    """Distinguish Volcano's Jobs from those of Kubernetes, which have the same kind."""
    return bool(run["apiVersion"] == VOLCANO_JOB.api_version)


def expected_pods(run: Object) -> int:
    """Count the pods that a run asks for."""
    spec = run["spec"]
    if "replicatedJobs" in spec:
        return sum(job.get("replicas", 1) * _parallelism(job["template"]["spec"]) for job in spec["replicatedJobs"])
    if "pytorchReplicaSpecs" in spec:
        return sum(int(replica.get("replicas", 1)) for replica in spec["pytorchReplicaSpecs"].values())
    if "tasks" in spec:
        return sum(int(task.get("replicas", 1)) for task in spec["tasks"])
    return _parallelism(spec)


def why_failed(run: Object) -> str:
    """Say that a run has failed, and why; empty when it has not."""
    status, name = run.get("status", {}), f"{run['kind']} {run['metadata']['name']}"
    if is_volcano(run):
        phase, restarts = status.get("state", {}).get("phase"), status.get("retryCount", 0)
        return f"{name} has failed: {phase}, attempt {max(restarts, 1)}" if phase in _VOLCANO_FAILED else ""
    for condition in status.get("conditions", ()):
        if condition["type"] == "Failed" and condition["status"] == "True":
            return f"{name} has failed: {condition.get('message')}"
    return ""


def outcome(run: Object) -> str:
    """Report how a run ended: "finished" or "failed"; empty while it waits or runs."""
    if why_failed(run):
        return "failed"
    status = run.get("status", {})
    if is_volcano(run):
        return "finished" if status.get("state", {}).get("phase") == "Completed" else ""
    ended = {condition["type"] for condition in status.get("conditions", ()) if condition["status"] == "True"}
    return "finished" if ended & _FINISHED else ""


def owners(item: Object) -> list[str]:
    """Return the kinds of an object's owners."""
    return [owner["kind"] for owner in item["metadata"].get("ownerReferences", ())]


def _parallelism(job: Mapping[str, Any]) -> int:
    parallelism = int(job.get("parallelism", 1))
    return min(parallelism, int(job.get("completions", parallelism)))
