"""Failure of a run: the first failed rank with its last lines, what followed, and machines that failed before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from chartgen.errors import MissingToolError
from chartgen.kube import LEASE, Cluster, ClusterError, Object
from chartgen.kube.run_kinds import kind_of
from chartgen.kube.workloads import outcome, why_failed
from chartgen.releases.lock import lease_name, notes_of
from chartgen.releases.status.events import RemovedPod
from chartgen.releases.status.members import End, Member, each_member, last_lines
from chartgen.releases.status.messages import LONGEST

if TYPE_CHECKING:
    from chartgen.releases.state import State

_READ, _SHOWN = 200, 10  # lines of the log: searched, shown
_LATE = datetime.max.replace(tzinfo=timezone.utc)
_SIGNALLED = {137, 143}  # SIGKILL, SIGTERM: usually caused by the end of another pod
# Reports of torchrun and mpirun on the process that failed first (torch/distributed/elastic/multiprocessing/errors;
# Open MPI, orte/tools/orterun/help-orterun.txt and prrte, src/tools/prte/help-prte.txt).
_ROOT_CAUSE = re.compile(r"Root Cause \(first observed failure\):.*?rank\s+: (\d+) .*?exitcode\s+: (-?\d+)", re.DOTALL)
_MPI = re.compile(r"Process name: \[[^\]]*\],\s*(\d+)\]\s+Exit code:\s+(\d+)")
_SUMMARIES = {"Root Cause (first observed failure):": _ROOT_CAUSE, "Process name: [": _MPI}
_REPORT = 4096  # searched characters from there; torchrun's report has five short lines and the error's first line
# torchrun's first message after a failed process (torch/distributed/elastic/multiprocessing/api.py); its own
# traceback and summary follow.
_LAUNCHER = re.compile(r"torch/distributed/elastic/.*failed \(exitcode: |^torch\.distributed\.elastic\..*Error:")
# The last line of a Python traceback, and the message of a start script. PyTorch puts the rank before the error that
# ended a rank; lines without a rank are errors during Python's cleanup.
_CAUSE = re.compile(
    r"^(?P<rank>\[rank\d+\]: ?)?([A-Za-z_][\w.]*(Error|Exception|Interrupt)(: |$)|"
    r"transport: (?!warning: |.* as promised)|examine: (machine|the run)|chartgen: )"
)
_HINTS = {
    "OOMKilled": "raise `launchers.<name>.resources`, or lower what the program keeps in memory",
    "DeadlineExceeded": "raise `run.deadlineSeconds`",
}
_GENERAL = {"unknown", "exception"}  # causes without advice of their own
_HUNG = 75  # library/workloads/common/files/watch.py


@dataclass(frozen=True)
class FirstFailure:
    """The first failure of a run."""

    what: str  # description of the failure, in one line
    rank: int | None = None  # global rank of the process that failed first; None when unknown
    exit_code: int | None = None  # its exit code, else that of its container; None when unknown
    pod: str = ""  # its pod; empty when it is gone and its name is unknown
    machine: str = ""  # its machine
    at: datetime | None = None  # time of the failure
    lines: tuple[str, ...] = ()  # the lines of its log that show the cause
    then: tuple[str, ...] = ()  # reactions of the controllers, one sentence each
    hint: str = ""  # advice for the user


def find_failure(
    cluster: Cluster,
    runs: Sequence[Object],
    failed: Sequence[Member],
    lost: Sequence[RemovedPod],
    release: str,
    namespace: str,
) -> FirstFailure:
    """Return the first failure of a run: of its failed pods, else the first removal of a pod."""
    then = tuple(reactions(runs))
    if failed:
        return _of_pod(cluster, min(failed, key=_when), len(failed), then, release, namespace)
    hint = "see `kubectl get events`; Kubernetes keeps them for an hour"
    unknown = FirstFailure("no failed pod is left: the first one was evicted or deleted", then=then, hint=hint)
    return find_loss(runs, lost) or unknown


def find_loss(runs: Sequence[Object], lost: Sequence[RemovedPod]) -> FirstFailure | None:
    """Return the first removal of a pod, which makes controllers restart a run; None without one."""
    if not lost:
        return None
    first = lost[0]
    where, hint = "", ""
    if first.machine:
        where, hint = f" on machine {first.machine}", f"see `kubectl describe node {first.machine}`"
    what = f"pod {first.pod}{where} was taken away: {first.why}"
    return FirstFailure(what, pod=first.pod, machine=first.machine, at=first.at, then=tuple(reactions(runs)), hint=hint)


def reactions(runs: Iterable[Object]) -> list[str]:
    """Report the reactions of the controllers to a failure of runs."""
    return [text for run in runs for text in (_restarted(run), why_failed(run)) if text]


def restarts(run: Object) -> int:
    """Return how often the controller has restarted a whole run."""
    return kind_of(run).status.count_restarts(run)


def _restarted(run: Object) -> str:
    count, most = restarts(run), kind_of(run).status.most_restarts(run)
    return f"{run['kind']} {run['metadata']['name']} was started again {count} of at most {most} times" if count else ""


def _of_pod(
    cluster: Cluster, member: Member, count: int, then: tuple[str, ...], release: str, namespace: str
) -> FirstFailure:
    from chartgen.releases.why.explanation import explain
    from chartgen.releases.why.run_log import read_run_log

    end = member.ends[0]
    log = end.message.splitlines() or _log(cluster, member, namespace)
    rank, code = _root_cause("\n".join(log))
    if rank is None and len(member.ranks) == 1:
        rank = member.ranks[0]
    exit_code = code if code is not None else end.exit_code or None
    others = f"; {count - 1} more failed after it" if count > 1 else ""
    shown = next((f" --rank {each}" for each in (rank, *member.ranks) if each is not None), "")
    more = f"`chartgen logs {release}{shown}` shows " + ("where it hung" if exit_code == _HUNG else "more")
    known = explain([read_run_log(member.name, log, ranks=member.ranks)])
    more = f"{known.what}: {known.hint}; {more}" if known.cause not in _GENERAL else more
    hint = _HINTS.get(end.reason, more)
    return FirstFailure(
        what=f"{_who(member, rank)} {_how(end, exit_code)}{others}",
        rank=rank,
        exit_code=exit_code,
        pod=member.name,
        machine=member.machine,
        at=end.at,
        lines=tuple(telling(log, _SHOWN)),
        then=then,
        hint=hint,
    )


def _log(cluster: Cluster, member: Member, namespace: str) -> list[str]:
    try:
        return last_lines(cluster, member, namespace, _READ)
    except (ClusterError, MissingToolError) as error:
        # the machine may be gone with the pod's log; still report the rest
        return [f"(the log cannot be read: {error})"]


def _when(member: Member) -> tuple[datetime, bool, int]:
    """Return the sort key of a failure: the earliest first; of simultaneous ones, those without a signal first."""
    end = member.ends[0]
    return end.at or _LATE, end.exit_code in _SIGNALLED, member.index or 0


def _root_cause(log: str) -> tuple[int | None, int | None]:
    for begin, pattern in _SUMMARIES.items():
        at = max(log.find(begin), 0)
        if match := pattern.search(log, at, at + _REPORT):
            return int(match[1]), int(match[2])
    return None, None


def _who(member: Member, rank: int | None) -> str:
    place = f"pod {member.name}" + (f" on machine {member.machine}" if member.machine else "")
    if rank is not None:
        return f"rank {rank} ({place})"
    if member.ranks:
        return f"one of the ranks {member.ranks[0]} to {member.ranks[-1]} ({place})"
    return place


def _how(end: End, exit_code: int | None) -> str:
    if not end.container:
        return f"failed: {end.message or end.reason or 'no reason given'}"
    reason = f" ({end.reason})" if end.reason not in {"", "Error"} else ""
    return f"failed first: {end.container} ended with exit code {exit_code}{reason}"


def telling(log: Sequence[str], count: int) -> list[str]:
    """Return the consecutive lines that end with the cause of a program's failure; the last lines if unknown."""
    end = next((index for index, line in enumerate(log) if _LAUNCHER.search(line, 0, LONGEST)), len(log))
    causes = {index: match["rank"] for index in range(end) if (match := _CAUSE.match(log[index]))}
    last = max((index for index in causes if causes[index]), default=max(causes, default=len(log) - 1)) + 1
    return [*log[max(0, last - count) : last]]


BROKEN = "brokenOn"  # note: machines of the runs that had failed when they were replaced, one for each failure


def broken_machine(cluster: Cluster, state: State) -> list[str]:
    """Return the machine on which a pod of a failed release failed first, as a note; empty when it is unknown."""
    if not any(outcome(run) == "failed" for run in state.runs):
        return []
    failed = [member for member, _ in each_member(cluster, state.release, state.namespace) if member.ends]
    machine = min(failed, key=_when).machine if failed else ""
    return [machine] if machine else []


def with_repeats(
    cluster: Cluster, failure: FirstFailure, lost: Sequence[RemovedPod], release: str, namespace: str
) -> FirstFailure:
    """Add a hint to a failure on a machine on which an earlier run, or another pod, has failed or was lost."""
    others = [each.machine for each in lost if each.pod != failure.pod]
    count = 1 + [*others, *_earlier(cluster, release, namespace)].count(failure.machine)
    if not failure.machine or count == 1:
        return failure
    often = "twice" if count == 2 else f"{count} times"
    hint = f"machine {failure.machine} has failed {often}: upgrade with --avoid-node {failure.machine}"
    return replace(failure, hint=f"{hint}; {failure.hint}" if failure.hint else hint)


def _earlier(cluster: Cluster, release: str, namespace: str) -> Iterable[str]:
    try:
        lease = cluster.get(LEASE, lease_name(release), namespace)
        notes = next((notes for _, notes in cluster.judged([lease] if lease else [], notes_of)), {})
    except ClusterError as error:
        if error.status == 403:  # to read the notes needs a permission that `status` can do without
            return []
        raise
    return notes.get(BROKEN, [])
