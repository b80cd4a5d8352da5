"""Plain reasons why a queue does not admit a run: missing resources, runs before it, or a stopped queue."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from chartgen.errors import Problem
from chartgen.kube import (
    CLUSTER_QUEUE,
    EVENT,
    LOCAL_QUEUE,
    POD_GROUP,
    QUEUE_LABEL,
    WORKLOAD,
    WORKLOAD_V1BETA1,
    Cluster,
    ClusterError,
    Object,
)
from chartgen.kube.manifest_walk import title
from chartgen.kube.run_kinds import queue_of
from chartgen.kube.workloads import is_suspended, is_volcano
from chartgen.releases.status.messages import LONGEST, Wording, reword

_GANG = "tasks in gang"  # message of Volcano's gang plugin for every waiting PodGroup, whatever the cause


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


def _owner_uids(item: Object) -> list[str]:
    return [owner["uid"] for owner in item["metadata"].get("ownerReferences", ())]


_WAIT = "wait, ask for fewer `nodes`, or set `queue.priorityClass`"
_NEVER = "waiting does not help: ask for fewer `nodes`, or for a larger quota"


# Messages of Kueue 0.19 (pkg/scheduler/flavorassigner, pkg/cache/scheduler/tas_flavor_snapshot.go,
# pkg/controller/core).
_KUEUE = (
    Wording(
        r"insufficient unused quota for (\S+) in flavor (\S+?), (\S+) more needed",
        r"\3 more \1 needed than flavor \2 has free",
        _WAIT,
    ),
    Wording(
        r"insufficient quota for (\S+) in flavor (\S+?), .*?podset request \((\S+)\) > maximum capacity \((\S+)\)",
        r"it asks for \3 \1, and flavor \2 has \4 in all",
        _NEVER,
    ),
    Wording(
        r'topology "(\S+)" allows to fit only (\d+) out of (\d+) pod\(s\)',
        r"the free machines of topology \1 have room for \2 of its \3 pods",
        f"{_WAIT}; a looser `topology.mode` may fit too",
    ),
    Wording(
        r'topology "(\S+)" doesn\'t allow to fit any of (\d+) pod\(s\)',
        r"the free machines of topology \1 have room for none of its \2 pods",
        f"{_WAIT}; a looser `topology.mode` may fit too",
    ),
    Wording(
        r"resource (\S+) unavailable in ClusterQueue",
        r"the queue does not cover \1, which the pods request",
        "add it to the ClusterQueue, as the setup chart does; waiting does not help",
    ),
    Wording(
        r"flavor (\S+) doesn't match node affinity",
        r"the machines of flavor \1 have other labels than the pods ask for",
        r"compare `kubectl get resourceflavor \1 --output yaml` with `machineType` and `nodeSelector`",
    ),
    Wording(
        r"untolerated taint (\{.+?\}) in flavor (\S+?)(?=[,;]|$)",
        r"the machines of flavor \2 have the taint \1, which the pods do not tolerate",
        "add it to `tolerations`; waiting does not help",
    ),
    Wording(  # temporary, until Kueue checks it again
        r"The (LocalQueue|ClusterQueue) is stopped",
        r"its \1 is stopped",
        "ask who stopped it; spec.stopPolicy None starts it",
    ),
    Wording(
        r"(LocalQueue|ClusterQueue) (\S+) doesn't exist",
        r"no \1 \2",
        "see `kubectl get localqueues`, and correct `queue.name`",
    ),
)
_INACTIVE = re.compile(r"(LocalQueue|ClusterQueue) (\S+) is inactive")
_PREEMPTOR = re.compile(r"Preempted to accommodate a workload .* due to (?P<why>.+?)(?:;.*)?")
# Messages of Volcano 1.14 (plugins overcommit, proportion and capacity) for a gang that it does not admit.
_VOLCANO = (
    Wording(
        r"resource in cluster is overused: overused (.+)",
        r"all machines together have too little free \1",
        "wait, ask for fewer `nodes`, or add machines",
    ),
    Wording(
        r"queue resource quota insufficient: insufficient (.+)",
        r"its capability leaves too little \1",
        "wait, ask for fewer `nodes`, or a larger queue",
    ),
)


def why_queued(cluster: Cluster, runs: Iterable[Object], namespace: str) -> list[Problem]:
    """Return why queues do not admit runs; empty when they are admitted or do not use a queue."""
    runs = list(runs)
    try:
        causes = [
            cause
            for run, own, before in find_workloads(cluster, runs, namespace)
            for _, found in cluster.judged([own or run], lambda _: [*_kueue(run, own, before, cluster)])  # noqa: B023
            for cause in found
        ]
    except ClusterError as error:
        if error.denied is None:
            raise
        cluster.unread[error.denied] = None
        why, hint = f"for a reason that is unknown: {error.denied.missing.message}", error.denied.fix
        waiting = filter(None, (queue_of(run) for run in runs if is_suspended(run)))
        causes = [Problem(f"queue {name} has not admitted it, {why}", hint=hint) for name in waiting]
    with cluster.optional():
        for _, found in cluster.judged(filter(is_volcano, runs), lambda run: _volcano(cluster, run, namespace)):
            causes += found
    return causes


def _volcano(cluster: Cluster, run: Object, namespace: str) -> list[Problem]:
    """Return why a Volcano Job has no pods yet: its PodGroup is not admitted."""
    if run.get("status", {}).get("state", {}).get("phase", "Pending") != "Pending":
        return []
    name = f"{run['metadata']['name']}-{run['metadata']['uid']}"
    group = cluster.get(POD_GROUP, name, namespace)
    if group is None:
        return [Problem(f"{title(run)} is not known to the queue yet")]
    if group.get("status", {}).get("phase", "Pending") != "Pending":
        return []
    events = cluster.list(EVENT, namespace=namespace, fields=f"involvedObject.name={name},reason=Unschedulable")
    messages = dict.fromkeys(str(event.get("message")) for event in events)
    members, queue = group["spec"].get("minMember"), f"queue {run['spec'].get('queue', 'default')!r}"
    found = [reword(message, _VOLCANO) or [Problem(message)] for message in messages if _GANG not in message]
    return [
        Problem(f"{queue}: {cause.message} for all {members} pods at once", hint=cause.hint)
        for causes in found
        for cause in causes
    ] or [Problem(f"{queue}: not considered yet")]


def _kueue(run: Object, workload: Object | None, before: int, cluster: Cluster) -> Iterator[Problem]:
    if workload is None:
        text = f"Kueue does not know {title(run)} yet"
        yield Problem(text, hint="if this persists, check whether Kueue runs and manages this kind")
        return
    status = workload.get("status", {})
    conditions = {condition["type"]: condition for condition in status.get("conditions", ())}
    if conditions.get("Admitted", {}).get("status") == "True":
        return
    if conditions.get("Evicted", {}).get("status") == "True":
        yield _evicted(conditions["Evicted"])
    queue = f"queue {workload['spec'].get('queueName', '')}"
    if conditions.get("QuotaReserved", {}).get("status") == "True":
        yield from _checks(queue, status)
        return
    message = conditions.get("QuotaReserved", {}).get("message", "")
    for cause in _not_reserved(message, cluster, workload):
        yield Problem(f"{queue}: {cause.message}", hint=cause.hint)
    if before:
        priority = workload["spec"].get("priority", 0)
        yield Problem(f"{queue}: {before} waiting run{'s' if before > 1 else ''} before it; its priority is {priority}")


def _not_reserved(message: str, cluster: Cluster, workload: Object) -> list[Problem]:
    if inactive := _INACTIVE.search(message):
        return [_stopped(inactive[1], inactive[2], cluster, workload["metadata"]["namespace"])]
    return reword(message, _KUEUE) or [Problem(message or "not considered yet")]


def _stopped(kind: str, name: str, cluster: Cluster, namespace: str) -> Problem:
    """Return the problem of an inactive queue, from its status."""
    try:
        found = cluster.get(LOCAL_QUEUE if kind == "LocalQueue" else CLUSTER_QUEUE, name, namespace) or {}
    except ClusterError as error:
        if error.status != 403:  # a ClusterQueue is cluster-scoped, so many users cannot read it
            raise
        found = {}
    policy = found.get("spec", {}).get("stopPolicy", "None")
    if policy != "None":
        hint = f"ask who stopped it; `kubectl patch {kind.lower()} {name}` with spec.stopPolicy None starts it"
        return Problem(f"{kind} {name} is stopped (stopPolicy {policy})", hint=hint)
    conditions = found.get("status", {}).get("conditions", ())
    why = next((condition["message"] for condition in conditions if condition["type"] == "Active"), "")
    return Problem(
        f"{kind} {name} is inactive" + (f": {why}" if why else ""), hint=f"see `kubectl describe {kind.lower()} {name}`"
    )


def _evicted(condition: Object) -> Problem:
    match = _PREEMPTOR.fullmatch(condition.get("message", "")[:LONGEST])
    why = f"another run has taken its place, by {match['why']}" if match else condition.get("message", "")
    return Problem(
        f"it was evicted ({condition['reason']}): {why}",
        hint="it starts again once it is admitted, from its newest checkpoint if it saves any",
    )


def _checks(queue: str, status: Object) -> Iterator[Problem]:
    waiting = [check for check in status.get("admissionChecks", ()) if check["state"] != "Ready"]
    for check in waiting:
        text = f"{queue}: admission check {check['name']} is {check['state']}: {check.get('message', '')}".rstrip(": ")
        yield Problem(text, hint=f"see `kubectl describe admissioncheck {check['name']}`")
    if not waiting:
        yield Problem(f"{queue}: quota is reserved, admission is not finished")
