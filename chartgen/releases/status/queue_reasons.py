"""Why a queue holds a run back, in words: which resource is short by how much, who is before it, who stopped it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from chartgen.kube import CLUSTER_QUEUE, LOCAL_QUEUE, Cluster, ClusterError, Object
from chartgen.kube.workloads import is_volcano
from chartgen.releases.status.messages import LONGEST, Cause, Wording, reword
from chartgen.releases.status.queue import find_workloads, why_volcano_waits

_WAIT = "wait, ask for fewer `nodes`, or set `queue.priorityClass`"
_NEVER = "no waiting helps: ask for fewer `nodes`, or for a larger quota"


def _wording(pattern: str, words: str, hint: str) -> Wording:
    return Wording(re.compile(pattern), words, hint)


# Words of Kueue 0.19 (pkg/scheduler/flavorassigner, pkg/cache/scheduler/tas_flavor_snapshot.go, pkg/controller/core).
_KUEUE = (
    _wording(
        r"insufficient unused quota for (\S+) in flavor (\S+?), (\S+) more needed",
        r"\3 more \1 needed than flavor \2 has free",
        _WAIT,
    ),
    _wording(
        r"insufficient quota for (\S+) in flavor (\S+?), .*?podset request \((\S+)\) > maximum capacity \((\S+)\)",
        r"it asks for \3 \1, and flavor \2 has \4 in all",
        _NEVER,
    ),
    _wording(
        r'topology "(\S+)" allows to fit only (\d+) out of (\d+) pod\(s\)',
        r"the free machines of topology \1 hold \2 of its \3 pods",
        f"{_WAIT}; a looser `topology.mode` may fit too",
    ),
    _wording(
        r'topology "(\S+)" doesn\'t allow to fit any of (\d+) pod\(s\)',
        r"the free machines of topology \1 hold none of its \2 pods",
        f"{_WAIT}; a looser `topology.mode` may fit too",
    ),
    _wording(
        r"resource (\S+) unavailable in ClusterQueue",
        r"the queue holds no \1, which the pods ask for",
        "add it to the ClusterQueue, as the setup chart does; no waiting helps",
    ),
    _wording(
        r"flavor (\S+) doesn't match node affinity",
        r"the machines of flavor \1 have other labels than the pods ask for",
        r"compare `kubectl get resourceflavor \1 --output yaml` with `machineType` and `nodeSelector`",
    ),
    _wording(
        r"untolerated taint (\{.+?\}) in flavor (\S+?)(?=[,;]|$)",
        r"the machines of flavor \2 have the taint \1, which the pods do not tolerate",
        "add it to `tolerations`; no waiting helps",
    ),
    _wording(  # for a moment, until Kueue has looked at it again
        r"The (LocalQueue|ClusterQueue) is stopped",
        r"its \1 is stopped",
        "ask who stopped it; spec.stopPolicy None starts it",
    ),
    _wording(
        r"(LocalQueue|ClusterQueue) (\S+) doesn't exist",
        r"there is no \1 \2",
        "see `kubectl get localqueues`, and correct `queue.name`",
    ),
)
_INACTIVE = re.compile(r"(LocalQueue|ClusterQueue) (\S+) is inactive")
_PREEMPTOR = re.compile(r"Preempted to accommodate a workload .* due to (?P<why>.+?)(?:;.*)?")
# What `queues` says of Volcano's queues.
_VOLCANO = (
    _wording(
        r"queue '(.+)': its capability leaves too little", r"\g<0>", "wait, ask for fewer `nodes`, or a larger queue"
    ),
    _wording(r"all machines together have too little free", r"\g<0>", "wait, ask for fewer `nodes`, or add machines"),
)


def why_queued(cluster: Cluster, runs: Iterable[Object], namespace: str) -> list[Cause]:
    """Say why queues hold runs back; nothing when they are admitted or ask for no queue."""
    runs = list(runs)
    causes = [
        cause
        for run, own, before in find_workloads(cluster, runs, namespace)
        for cause in _kueue(run, own, before, cluster)
    ]
    for run in filter(is_volcano, runs):
        for text in why_volcano_waits(cluster, run, namespace):
            hints = [cause.hint for cause in reword(text, _VOLCANO)]
            causes.append(Cause(text, hints[0] if hints else ""))
    return causes


def _kueue(run: Object, workload: Object | None, before: int, cluster: Cluster) -> Iterator[Cause]:
    if workload is None:
        text = f"Kueue does not know {run['kind']} {run['metadata']['name']} yet"
        yield Cause(text, "if it stays so, see whether Kueue runs and manages this kind")
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
        yield Cause(f"{queue}: {cause.text}", cause.hint)
    if before:
        priority = workload["spec"].get("priority", 0)
        yield Cause(f"{queue}: {before} waiting run{'s' if before > 1 else ''} before it; its priority is {priority}")


def _not_reserved(message: str, cluster: Cluster, workload: Object) -> list[Cause]:
    if inactive := _INACTIVE.search(message):
        return [_stopped(inactive[1], inactive[2], cluster, workload["metadata"]["namespace"])]
    return reword(message, _KUEUE) or [Cause(message or "not considered yet")]


def _stopped(kind: str, name: str, cluster: Cluster, namespace: str) -> Cause:
    """Say what is wrong with an inactive queue; the reason stands in its own status."""
    try:
        found = cluster.get(LOCAL_QUEUE if kind == "LocalQueue" else CLUSTER_QUEUE, name, namespace) or {}
    except ClusterError as error:
        if error.status != 403:  # a ClusterQueue belongs to no namespace, so many users cannot read it
            raise
        found = {}
    policy = found.get("spec", {}).get("stopPolicy", "None")
    if policy != "None":
        hint = f"ask who stopped it; `kubectl patch {kind.lower()} {name}` with spec.stopPolicy None starts it"
        return Cause(f"{kind} {name} is stopped (stopPolicy {policy})", hint)
    conditions = found.get("status", {}).get("conditions", ())
    why = next((each["message"] for each in conditions if each["type"] == "Active"), "")
    return Cause(
        f"{kind} {name} is inactive" + (f": {why}" if why else ""), f"see `kubectl describe {kind.lower()} {name}`"
    )


def _evicted(condition: Object) -> Cause:
    match = _PREEMPTOR.fullmatch(condition.get("message", "")[:LONGEST])
    why = f"another run has taken its place, by {match['why']}" if match else condition.get("message", "")
    return Cause(
        f"it was evicted ({condition['reason']}): {why}",
        "it starts again once it is admitted, from its newest checkpoint if it saves any",
    )


def _checks(queue: str, status: Object) -> Iterator[Cause]:
    waiting = [check for check in status.get("admissionChecks", ()) if check["state"] != "Ready"]
    for check in waiting:
        text = f"{queue}: admission check {check['name']} is {check['state']}: {check.get('message', '')}".rstrip(": ")
        yield Cause(text, f"see `kubectl describe admissioncheck {check['name']}`")
    if not waiting:
        yield Cause(f"{queue}: quota is reserved, admission is not finished")
