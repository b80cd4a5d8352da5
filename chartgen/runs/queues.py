"""Why a run waits in its queue: Kueue's, which holds it back, or Volcano's, which makes no pods for it yet."""

from __future__ import annotations

import re
from collections.abc import Iterable

from chartgen.cluster import EVENT, POD_GROUP, WORKLOAD, WORKLOAD_V1BETA1, Cluster, Object
from chartgen.runs.objects import is_volcano

_QUEUE = "kueue.x-k8s.io/queue-name"
_GANG = "tasks in gang"  # what Volcano's gang plugin says of every waiting PodGroup, whatever the cause
# Words of Volcano 1.14 (plugins overcommit, proportion and capacity) for a gang that it does not let in.
_VOLCANO_WORDS = (
    (re.compile(r"resource in cluster is overused: overused (.+)"), r"all machines together have too little free \1"),
    (re.compile(r"queue resource quota insufficient: insufficient (.+)"), r"its capability leaves too little \1"),
)


def why_not_admitted(cluster: Cluster, runs: Iterable[Object], namespace: str) -> list[str]:
    """Say why queues hold runs back; nothing when they are admitted or ask for no queue."""
    runs = list(runs)
    return [*_kueue(cluster, runs, namespace), *_volcano(cluster, runs, namespace)]


def _kueue(cluster: Cluster, runs: list[Object], namespace: str) -> list[str]:
    queued = [run for run in runs if _QUEUE in run["metadata"].get("labels", {}) and not is_volcano(run)]
    if not queued:
        return []
    workloads = cluster.list(WORKLOAD, namespace=namespace) or cluster.list(WORKLOAD_V1BETA1, namespace=namespace)
    reasons = []
    for run in queued:
        own = [item for item in workloads if run["metadata"]["uid"] in _owner_uids(item)]
        if not own:
            reasons.append(_unknown(run))
        reasons += [reason for item in own for reason in _why_pending(item)]
    return reasons


def _why_pending(workload: Object) -> list[str]:
    status = workload.get("status", {})
    conditions = {condition["type"]: condition for condition in status.get("conditions", ())}
    if conditions.get("Admitted", {}).get("status") == "True":
        return []
    checks = [
        f"admission check {check['name']} is {check['state']}: {check.get('message', '')}".rstrip(": ")
        for check in status.get("admissionChecks", ())
        if check["state"] != "Ready"
    ]
    reserved = conditions.get("QuotaReserved", {})
    if reserved.get("status") == "True":
        return checks or ["quota is reserved, admission is not finished"]
    queue = workload["spec"].get("queueName", "")
    return [f"queue {queue!r}: {reserved.get('message') or 'not considered yet'}"]


def _volcano(cluster: Cluster, runs: list[Object], namespace: str) -> list[str]:
    return [reason for run in runs if is_volcano(run) for reason in _why_no_pods(cluster, run, namespace)]


def _why_no_pods(cluster: Cluster, run: Object, namespace: str) -> list[str]:
    """Say why a Volcano Job that has not started has no pods yet: its PodGroup is not let in."""
    if run.get("status", {}).get("state", {}).get("phase", "Pending") != "Pending":
        return []
    name = f"{run['metadata']['name']}-{run['metadata']['uid']}"
    group = cluster.get(POD_GROUP, name, namespace)
    if group is None:
        return [_unknown(run)]
    if group.get("status", {}).get("phase", "Pending") != "Pending":
        return []
    events = cluster.list(EVENT, namespace=namespace, fields=f"involvedObject.name={name},reason=Unschedulable")
    said = dict.fromkeys(str(event.get("message")) for event in events)
    members, queue = group["spec"].get("minMember"), f"queue {run['spec'].get('queue', 'default')!r}"
    causes = [_volcano_words(message) for message in said if _GANG not in message]
    return [f"{queue}: {cause} for all {members} pods at once" for cause in causes] or [f"{queue}: not considered yet"]


def _volcano_words(message: str) -> str:
    for pattern, words in _VOLCANO_WORDS:
        if match := pattern.fullmatch(message):
            return match.expand(words)
    return message


def _unknown(run: Object) -> str:
    return f"{run['kind']} {run['metadata']['name']} is not known to the queue yet"


def _owner_uids(item: Object) -> list[str]:
    return [owner["uid"] for owner in item["metadata"].get("ownerReferences", ())]
