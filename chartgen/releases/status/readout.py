"""State of a release in one readout, from Helm's record down to the first failed rank."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypeAlias

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.kube import QUEUE_LABEL, Cluster, ClusterError, Kind, Object, side_by_side
from chartgen.kube.manifest_walk import title
from chartgen.kube.run_kinds import kind_of, run_kind, run_names
from chartgen.kube.workloads import expected_pods, find_runs, find_workers, is_suspended, outcome, why_no_run
from chartgen.releases.history import UNFINISHED, RevisionRecord, is_owned, parse_time, read_last_record
from chartgen.releases.status.events import events_of, removed_pods
from chartgen.releases.status.failure import FirstFailure, find_failure, find_loss, restarts, with_repeats
from chartgen.releases.status.members import last_lines
from chartgen.releases.status.pending import why_not_started
from chartgen.releases.status.pod_summary import PodSummary, summarize_pods
from chartgen.releases.status.queue_reasons import why_queued
from chartgen.releases.status.spares import Spares, find_spares

_KIND = re.compile(r"^kind: (\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class Revision:
    """The last revision in Helm's store."""

    number: int  # from 1
    chart: str  # name and version of the chart
    status: str  # Helm's status
    updated: datetime  # creation time


def revision_of(record: RevisionRecord) -> Revision:
    """Return the fields of a record that a readout shows, without values and manifest."""
    return Revision(record.revision, f"{record.chart}-{record.chart_version}", record.status, record.updated)


def record_causes(record: RevisionRecord, runs: Sequence[Object]) -> Iterator[Problem]:
    """Yield the anomalies of a release's record."""
    if command := UNFINISHED.get(record.status):
        text = f"Helm's record is {record.status}: a command still works on it, or was interrupted"
        yield Problem(text, hint=f"the next `chartgen {command}` recovers it")
    elif record.status == "failed":
        yield Problem(
            f"revision {record.revision} has failed: {record.description}", hint="correct it and upgrade once more"
        )
    elif record.status == "deployed":
        for run in runs:
            kind, name = run["kind"], run["metadata"]["name"]
            if not re.search(rf'^  name: "?{re.escape(name)}"?$', record.manifest, re.MULTILINE):
                text = f"{kind} {name} is left over from another revision"
                yield Problem(text, hint="the next `chartgen upgrade` or `chartgen uninstall` removes it")


def why_absent(release: str, namespace: str, record: RevisionRecord | None) -> Problem:
    """Return why the release has no run."""
    if record is None:
        text = f"no release {release} in namespace {namespace}"
        return Problem(text, hint="`helm list --all-namespaces` shows all releases")
    if run_names().isdisjoint(_KIND.findall(record.manifest)):
        return why_no_run(f"chart {record.chart}", record.objects)
    return Problem(
        "its run is not in the cluster: it was deleted, or its time to live has passed",
        hint="`chartgen upgrade` with another `run.again` starts it once more",
    )


def why_leaving(runs: Sequence[Object]) -> Problem:
    """Return why the release has no run while its last ones are being deleted."""
    names = ", ".join(map(title, runs))
    return Problem(f"{names} is being deleted: an upgrade replaces it, or an uninstall removes it")


Phase: TypeAlias = Literal["absent", "queued", "starting", "running", "finished", "failed"]
_LOG_LINES = 200  # enough to contain the last iteration


@dataclass(frozen=True)
class Readout:
    """State of a release."""

    release: str  # its name
    namespace: str  # its namespace
    phase: Phase  # its phase
    since: datetime | None = None  # start time of this phase, if the cluster reports it
    revision: Revision | None = None  # Helm's last record; None when Helm does not know the release
    runs: tuple[str, ...] = ()  # kind and name of its runs; of an absent one, those that are being deleted
    pods_expected: int = 0  # pods that the runs request
    pods: int = 0  # pods that exist
    ready: int = 0  # pods that are ready, or have succeeded
    started: int = 0  # pods that run, or have succeeded
    machines: int = 0  # machines of the pods
    gpus: int = 0  # GPUs of the placed pods
    rendezvous: str = ""  # MASTER_ADDR:MASTER_PORT of its pods; empty without them
    restarts: int = 0  # restarts of whole runs
    container_restarts: int = 0  # restarts of single containers
    # The oldest remaining event of the runs while none of their pods runs; empty afterwards, when the wait is over
    first_event: str = ""
    progress: str = ""  # step and speed, when the log shows them
    # Which pods are spares, and which took the place of a lost one; None unless it trains and has spares
    spares: Spares | None = None
    causes: tuple[Problem, ...] = ()  # reasons for the wait, and anomalies
    failure: FirstFailure | None = None  # the failure, or the cause of a restart
    # What is unknown because the user may not read it (kinds of runs that the release does not contain, events, or the
    # queue), or because it cannot be read: objects with content of another form
    unread: tuple[Problem, ...] = ()

    @property
    def ended(self) -> bool:
        """Report whether its run has ended for good."""
        return self.phase in {"finished", "failed"}

    @property
    def gone(self) -> bool:
        """Report whether it has no run, and none is being deleted, as an upgrade does before it creates the next."""
        return self.phase == "absent" and not self.runs


def read_readout(
    cluster: Cluster, release: str, namespace: str = "", *, brief: bool = False, record: RevisionRecord | None = None
) -> Readout:
    """Read the state of a release.

    Args:
        brief: Whether to leave out what needs further requests and does not decide the phase: Helm's record, the first
            event, lost pods and progress.
        record: Its last record, if it has been read.

    Raises:
        ClusterError: The cluster denies access to Helm's records, the release's own kind of run, or its pods.
        MissingToolError: The cluster does not answer.
        ChartgenError: An object of the run has content of another form.
    """
    cluster.unread.clear()
    cluster.unreadable.clear()
    namespace = namespace or cluster.namespace
    try:
        readout = _read_brief(cluster, release, namespace) if brief else _read(cluster, release, namespace, record)
    except ValueError as error:  # of a time that Python does not know; other forms are refused as they are read
        text = f"the run of release {release} in namespace {namespace} has content of another form ({error})"
        raise ChartgenError(Problem(text, hint=f"see `kubectl --namespace {namespace} get all -o yaml`")) from None
    return replace(readout, unread=tuple(cluster.gaps))


def _read_brief(cluster: Cluster, release: str, namespace: str) -> Readout:
    runs = find_runs(cluster, release, namespace)
    with cluster.optional():
        runs = _own(runs, release, namespace, lambda: read_last_record(cluster, release, namespace))
    if not runs:
        return Readout(release, namespace, "absent", causes=(why_absent(release, namespace, None),))
    summary = summarize_pods(cluster, release, namespace)
    state = _counted(cluster, runs, summary, release, namespace)
    if state.phase != "failed":
        return state
    lost = [] if summary.failed else removed_pods(cluster, runs, namespace)
    return replace(state, failure=find_failure(cluster, runs, summary.failed, lost, release, namespace))


def _read(cluster: Cluster, release: str, namespace: str, record: RevisionRecord | None) -> Readout:
    def of_run() -> tuple[RevisionRecord | None, list[Object]]:
        last = record or read_last_record(cluster, release, namespace)
        return last, find_runs(cluster, release, namespace, deleting=True, needed=partial(_contains, last))

    # the pods may be thousands: the server writes them meanwhile
    reads: tuple[Callable[[], Any], ...] = (of_run, partial(summarize_pods, cluster, release, namespace))
    (record, found), summary = side_by_side(reads)
    runs = [run for run in found if "deletionTimestamp" not in run["metadata"]]
    runs = _own(runs, release, namespace, lambda: record)
    revision = revision_of(record) if record else None
    odd = record_causes(record, runs) if record else ()
    if not runs:
        causes = (*odd, why_leaving(found) if found else why_absent(release, namespace, record))
        return Readout(release, namespace, "absent", revision=revision, runs=tuple(map(title, found)), causes=causes)
    state = _counted(cluster, runs, summary, release, namespace)
    progress, slow = progress_now(cluster, summary, namespace, record) if state.phase == "running" else ("", None)
    has_failed = state.phase == "failed"
    is_short = has_failed or state.restarts or summary.pods < state.pods_expected
    lost = removed_pods(cluster, runs, namespace) if is_short else []
    failure = find_loss(runs, lost)
    count = _spares(runs) if state.phase == "running" else 0
    if has_failed or (count and summary.failed):
        failure = find_failure(cluster, runs, summary.failed, lost, release, namespace)
    return replace(
        state,
        since=_since(state.phase, runs, summary),
        revision=revision,
        first_event="" if summary.started else _first_event(cluster, runs),
        progress=progress,
        spares=find_spares(cluster, count, summary.failed, lost, release, namespace) if count else None,
        causes=(*odd, *state.causes, *([slow] if slow else [])),
        failure=with_repeats(cluster, failure, lost, release, namespace) if failure else None,
    )


def _own(runs: list[Object], release: str, namespace: str, record: Callable[[], RevisionRecord | None]) -> list[Object]:
    """Leave out finished runs that Helm did not make, if it has a record: the name of one may be taken."""
    own = [run for run in runs if is_owned(run, release, namespace)]
    return runs if own == runs or {*map(outcome, runs)} != {"finished"} or record() is None else own


def _counted(cluster: Cluster, runs: Sequence[Object], summary: PodSummary, release: str, namespace: str) -> Readout:
    """Return the phase of live runs, its causes and the counts of their pods."""
    expected = sum(map(expected_pods, runs))
    phase, causes = _judge(cluster, runs, summary, expected, namespace)
    return Readout(
        release,
        namespace,
        phase,
        runs=tuple(map(title, runs)),
        pods_expected=expected,
        pods=summary.pods,
        ready=summary.ready,
        started=summary.started,
        machines=len(summary.machines),
        gpus=summary.gpus,
        rendezvous=summary.rendezvous,
        restarts=sum(map(restarts, runs)),
        container_restarts=summary.restarts,
        causes=tuple(causes),
    )


def _contains(record: RevisionRecord | None, kind: Kind) -> bool:
    """Report whether a revision contains a run of a kind."""
    own = map(run_kind, record.run_objects if record else ())
    return any(each.kind == kind for each in own if each)


def _judge(
    cluster: Cluster, runs: Sequence[Object], summary: PodSummary, expected: int, namespace: str
) -> tuple[Phase, list[Problem]]:
    """Return the phase of live runs, and the reasons for a wait."""
    outcomes = {outcome(run) for run in runs}
    if "failed" in outcomes:
        return "failed", []
    if outcomes == {"finished"}:
        return "finished", []
    if summary.started >= expected:
        return "running", []
    if summary.started >= expected - _spares(runs):  # the others may be lost, or spares that still start
        rest = replace(summary, failed=[])
        return "running", why_not_started(cluster, runs, rest, expected, namespace)
    queued = [] if summary.started else [*why_queued(cluster, runs, namespace), *_suspended(runs)]
    causes = [*queued, *why_not_started(cluster, runs, summary, expected, namespace)]
    return "queued" if queued else "starting", causes


def _spares(runs: Sequence[Object]) -> int:
    """Return how many machines more than its program needs a run began with."""
    workers = find_workers(runs)
    return workers.spares if workers else 0


def _suspended(runs: Sequence[Object]) -> Iterator[Problem]:
    for run in runs:
        if is_suspended(run) and QUEUE_LABEL not in run["metadata"].get("labels", {}):
            text = f"{title(run)} is suspended, and no queue will start it"
            yield Problem(text, hint="set `queue.name`, or see who suspended it")


def _since(phase: str, runs: Sequence[Object], summary: PodSummary) -> datetime | None:
    """Return the start time of the runs' phase."""
    if phase == "running":
        return summary.since
    if phase in {"finished", "failed"}:
        return max((parse_time(time) for run in runs for time in kind_of(run).status.ends(run)), default=None)
    return max(parse_time(time) for run in runs for time in (run["metadata"]["creationTimestamp"], *_stops(run)))


def _stops(run: Object) -> Iterator[str]:
    """Yield the times when a run returned to its queue or was restarted."""
    for condition in run.get("status", {}).get("conditions", ()):
        if condition.get("type") in {"Suspended", "RestartingJobSet"} and condition.get("status") == "True":
            yield condition.get("lastTransitionTime", "")


def _first_event(cluster: Cluster, runs: Sequence[Object]) -> str:
    events = sorted((event for run in runs for event in events_of(cluster, run)), key=lambda event: event.at)
    return f"{events[0].at:%Y-%m-%d %H:%M:%S} UTC {events[0]}" if events else ""


def progress_now(
    cluster: Cluster, summary: PodSummary, namespace: str, record: RevisionRecord | None
) -> tuple[str, Problem | None]:
    """Return the progress of a run from the log of its most informative pod; see `progress_of`."""
    for member in summary.speakers:
        try:
            lines = last_lines(cluster, member, namespace, _LOG_LINES)
        except (ClusterError, MissingToolError) as error:
            # report a machine that does not answer, and complete the readout
            return f"unknown, the log of pod {member.name} cannot be read: {error}", None
        from chartgen.releases.status.training_log import progress_of  # half of the modules of `status`

        progress = progress_of(lines, record)
        if progress.text:
            return progress
    return "", None
