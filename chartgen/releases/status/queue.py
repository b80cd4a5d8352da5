"""Reasons why a run waits in its queue: Kueue suspends it, or Volcano does not create its pods yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from chartgen.kube import EVENT, POD_GROUP, QUEUE_LABEL, WORKLOAD, WORKLOAD_V1BETA1, Cluster, Object
from chartgen.kube.workloads import is_volcano

_GANG = "tasks in gang"  # message of Volcano's gang plugin for every waiting PodGroup, whatever the cause
# Messages of Volcano 1.14 (plugins overcommit, proportion and capacity) for a gang that it does not admit.
_VOLCANO_WORDS = (
    (re.compile(r"resource in cluster is overused: overused (.+)"), r"all machines together have too little free \1"),
    (re.compile(r"queue resource quota insufficient: insufficient (.+)"), r"its capability leaves too little \1"),
)


def find_workloads(
    cluster: Cluster, runs: Iterable[Object], namespace: str
) -> Iterator[tuple[Object, Object | None, int]]:
    """Yield the Workload of each run in a Kueue queue, and the number of workloads before it in that queue.

    The Workload is None for a run that Kueue does not know.
    """
    queued = [run for run in runs if QUEUE_LABEL in run["metadata"].get("labels", {}) and not is_volcano(run)]
    if not queued:
        return
    found = cluster.list(WORKLOAD, namespace=namespace) or cluster.list(WORKLOAD_V1BETA1, namespace=namespace)
    workloads = [item for item, _ in cluster.judged(found, _facts)]
    for run in queued:
        own = [item for item in workloads if run["metadata"]["uid"] in _owner_uids(item)]
        for item in own:
            yield run, item, sum(_is_before(other, item) for other in workloads)
        if not own:
            yield run, None, 0


def _facts(workload: Object) -> object:
    """Return everything that readers need of each workload: one without the form of its kind is left out here."""
    return _rank(workload) < (0, ""), _is_reserved(workload), _owner_uids(workload)


def _is_before(one: Object, other: Object) -> bool:
    """Report whether Kueue considers a waiting workload first: by priority, then by age (pkg/cache/queue)."""
    if one["spec"].get("queueName") != other["spec"].get("queueName") or _is_reserved(one) or one is other:
        return False
    return _rank(one) < _rank(other)


def _rank(workload: Object) -> tuple[int, str]:
    return -workload["spec"].get("priority", 0), workload["metadata"]["creationTimestamp"]


def _is_reserved(workload: Object) -> bool:
    ended = {"QuotaReserved", "Finished"}
    conditions = workload.get("status", {}).get("conditions", ())
    return any(condition["type"] in ended and condition["status"] == "True" for condition in conditions)


def why_volcano_waits(cluster: Cluster, run: Object, namespace: str) -> list[str]:
    """Report why a Volcano Job has no pods yet: its PodGroup is not admitted."""
    if run.get("status", {}).get("state", {}).get("phase", "Pending") != "Pending":
        return []
    name = f"{run['metadata']['name']}-{run['metadata']['uid']}"
    group = cluster.get(POD_GROUP, name, namespace)
    if group is None:
        return [_unknown(run)]
    if group.get("status", {}).get("phase", "Pending") != "Pending":
        return []
    events = cluster.list(EVENT, namespace=namespace, fields=f"involvedObject.name={name},reason=Unschedulable")
    messages = dict.fromkeys(str(event.get("message")) for event in events)
    members, queue = group["spec"].get("minMember"), f"queue {run['spec'].get('queue', 'default')!r}"
    causes = [_volcano_words(message) for message in messages if _GANG not in message]
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
