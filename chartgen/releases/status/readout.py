"""What is going on with a release: one readout, from Helm's record down to the first rank that failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chartgen.kube import QUEUE_LABEL, Cluster, ClusterError, Object
from chartgen.kube.run_kinds import kind_of
from chartgen.kube.workloads import expected_pods, find_runs, outcome
from chartgen.releases.history import Record, read_records, read_time
from chartgen.releases.status.events import events_of
from chartgen.releases.status.failure import Failure, find_failure, find_loss, restarts
from chartgen.releases.status.messages import Cause
from chartgen.releases.status.pending import why_not_started
from chartgen.releases.status.pod_logs import last_lines
from chartgen.releases.status.pod_summary import PodSummary, summarize_pods
from chartgen.releases.status.progress import progress_of
from chartgen.releases.status.queue_reasons import why_queued
from chartgen.releases.status.release_record import Revision, record_causes, revision_of, why_absent

PHASES = ("absent", "queued", "starting", "running", "finished", "failed")
_LOG_LINES = 200  # of which one tells the last iteration


@dataclass(frozen=True)
class Readout:
    """What is going on with a release.

    Args:
        release: Its name.
        namespace: Its namespace.
        phase: One of `PHASES`.
        since: Since when it is in this phase, as far as the cluster tells.
        revision: Helm's last record; None when Helm knows no such release.
        runs: Kind and name of its runs.
        pods_expected: Pods that they ask for.
        pods: Pods that exist.
        ready: Pods that are ready, or have succeeded.
        machines: Machines that they are placed on.
        gpus: GPUs of the placed pods.
        restarts: How often whole runs were started again.
        container_restarts: How often single containers were.
        first_event: The oldest event of the runs that is kept, while none of their pods runs; empty afterwards, when
            it tells of a wait that is over.
        progress: Step and speed, when the log tells.
        causes: Why it is not further, and what is odd.
        failure: How it failed, or why it was started again.
    """

    release: str
    namespace: str
    phase: str
    since: datetime | None = None
    revision: Revision | None = None
    runs: tuple[str, ...] = ()
    pods_expected: int = 0
    pods: int = 0
    ready: int = 0
    machines: int = 0
    gpus: int = 0
    restarts: int = 0
    container_restarts: int = 0
    first_event: str = ""
    progress: str = ""
    causes: tuple[Cause, ...] = ()
    failure: Failure | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to its run."""
        return self.phase in {"finished", "failed"}


def read(cluster: Cluster, release: str, namespace: str = "") -> Readout:
    """Read what is going on with a release.

    Args:
        cluster: Where it was installed.
        release: Its name.
        namespace: Its namespace; default the context's.

    Raises:
        ClusterError: The cluster refuses to be read.
        MissingToolError: The cluster does not answer.
    """
    namespace = namespace or cluster.namespace
    records = read_records(cluster, release, namespace)
    record = records[-1] if records else None
    runs = find_runs(cluster, release, namespace)
    revision = revision_of(record) if record else None
    odd = record_causes(record, runs) if record else ()
    if not runs:
        causes = (*odd, why_absent(release, namespace, record))
        return Readout(release, namespace, "absent", revision=revision, causes=causes)
    summary = summarize_pods(cluster, release, namespace)
    expected = sum(map(expected_pods, runs))
    phase, reasons = _judge(cluster, runs, summary, expected, namespace)
    again = sum(map(restarts, runs))
    failure = None
    if phase == "failed":
        failure = find_failure(cluster, runs, summary.failed, release, namespace)
    elif again or summary.pods < expected:
        failure = find_loss(cluster, runs, namespace)
    return Readout(
        release,
        namespace,
        phase,
        since=_since(phase, runs, summary),
        revision=revision,
        runs=tuple(f"{run['kind']} {run['metadata']['name']}" for run in runs),
        pods_expected=expected,
        pods=summary.pods,
        ready=summary.ready,
        machines=len(summary.machines),
        gpus=summary.gpus,
        restarts=again,
        container_restarts=summary.restarts,
        first_event="" if summary.started else _first_event(cluster, runs),
        progress=progress_now(cluster, summary, namespace, record) if phase == "running" else "",
        causes=(*odd, *reasons),
        failure=failure,
    )


def _judge(
    cluster: Cluster, runs: Sequence[Object], summary: PodSummary, expected: int, namespace: str
) -> tuple[str, list[Cause]]:
    """Return the phase of live runs, and why they are not further."""
    outcomes = {outcome(run) for run in runs}
    if "failed" in outcomes:
        return "failed", []
    if outcomes == {"finished"}:
        return "finished", []
    if summary.started >= expected:
        return "running", []
    if summary.started == 0:
        causes = [*why_queued(cluster, runs, namespace), *_suspended(runs)]
        if causes:
            return "queued", [*causes, *why_not_started(cluster, runs, summary, expected, namespace)]
    return "starting", why_not_started(cluster, runs, summary, expected, namespace)


def _suspended(runs: Sequence[Object]) -> Iterator[Cause]:
    for run in runs:
        spec = run["spec"]
        stopped = spec.get("suspend") or spec.get("runPolicy", {}).get("suspend")
        if stopped and QUEUE_LABEL not in run["metadata"].get("labels", {}):
            text = f"{run['kind']} {run['metadata']['name']} is suspended, and no queue will start it"
            yield Cause(text, "set `queue.name`, or see who suspended it")


def _since(phase: str, runs: Sequence[Object], summary: PodSummary) -> datetime | None:
    """Report since when runs are in their phase."""
    if phase == "running":
        return summary.since
    if phase in {"finished", "failed"}:
        return max((read_time(time) for run in runs for time in kind_of(run).status.ends(run)), default=None)
    return max(read_time(time) for run in runs for time in (run["metadata"]["creationTimestamp"], *_stops(run)))


def _stops(run: Object) -> Iterator[str]:
    """Return when a run was sent back to its queue, or started again."""
    yield from _times(run.get("status", {}), {"Suspended", "RestartingJobSet"})


def _times(status: dict[str, Any], types: set[str]) -> Iterator[str]:
    for condition in status.get("conditions", ()):
        if condition.get("type") in types and condition["status"] == "True":
            yield condition["lastTransitionTime"]


def _first_event(cluster: Cluster, runs: Sequence[Object]) -> str:
    events = sorted((event for run in runs for event in events_of(cluster, run)), key=lambda event: event.at)
    return f"{events[0].at:%Y-%m-%d %H:%M:%S} UTC {events[0]}" if events else ""


def progress_now(cluster: Cluster, summary: PodSummary, namespace: str, record: Record | None) -> str:
    """Return how far a run is, as the log of its most telling pod says; empty when that says nothing.

    Args:
        cluster: Where it runs.
        summary: Its pods.
        namespace: Their namespace.
        record: Helm's record of the release, which tells model and machines; None when there is none.
    """
    for member in summary.speakers:
        try:
            found = progress_of(list(last_lines(cluster, member, namespace, _LOG_LINES)), record)
        except ClusterError as error:  # a machine that does not answer is worth a line, not the end of the readout
            return f"unknown, the log of pod {member.name} cannot be read: {error}"
        if found:
            return found
    return ""
