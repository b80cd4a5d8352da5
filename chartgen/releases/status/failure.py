"""How a run failed: which rank first, with which exit code and last words, and what the controllers did then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from chartgen.kube import Cluster, ClusterError, Object
from chartgen.kube.run_kinds import kind_of
from chartgen.kube.workloads import why_failed
from chartgen.releases.status.events import losses
from chartgen.releases.status.last_lines import telling
from chartgen.releases.status.members import End, Member
from chartgen.releases.status.pod_logs import last_lines

_READ, _SHOWN = 200, 10  # lines of the log that are searched, and shown
_LATE = datetime.max.replace(tzinfo=timezone.utc)
_SIGNALLED = {137, 143}  # SIGKILL, SIGTERM: mostly the consequence of another pod's end
# What torchrun and mpirun say of the process that failed first (torch/distributed/elastic/multiprocessing/errors;
# Open MPI, orte/tools/orterun/help-orterun.txt and prrte, src/tools/prte/help-prte.txt).
_ROOT_CAUSE = re.compile(r"Root Cause \(first observed failure\):.*?rank\s+: (\d+) .*?exitcode\s+: (-?\d+)", re.DOTALL)
_MPI = re.compile(r"Process name: \[[^\]]*\],\s*(\d+)\]\s+Exit code:\s+(\d+)")
_TOLD = {"Root Cause (first observed failure):": _ROOT_CAUSE, "Process name: [": _MPI}
_REPORT = 4096  # characters from there that are searched; torchrun's report has five short lines and the error's first
_HINTS = {
    "OOMKilled": "raise `launchers.<name>.resources`, or lower what the program keeps in memory",
    "DeadlineExceeded": "raise `run.deadlineSeconds`",
}


@dataclass(frozen=True)
class Failure:
    """The first failure of a run.

    Args:
        what: Who failed and how, in one line.
        rank: Global rank of the process that failed first; None when nobody tells.
        exit_code: Its exit code, else that of its container; None when nobody tells.
        pod: Its pod; empty when it is gone and nothing tells its name.
        machine: Its machine.
        at: When.
        lines: The lines of its log that say why.
        then: What the controllers did, one sentence each.
        hint: What to do.
    """

    what: str
    rank: int | None = None
    exit_code: int | None = None
    pod: str = ""
    machine: str = ""
    at: datetime | None = None
    lines: tuple[str, ...] = ()
    then: tuple[str, ...] = ()
    hint: str = ""


def find_failure(
    cluster: Cluster, runs: Sequence[Object], failed: Sequence[Member], release: str, namespace: str
) -> Failure:
    """Report a run's first failure.

    Args:
        cluster: Where it ran.
        runs: The release's runs.
        failed: Its pods that failed.
        release: The release's name.
        namespace: Its namespace.
    """
    then = tuple(reactions(runs))
    if failed:
        first = min(failed, key=_when)
        return _of_pod(cluster, first, len(failed), then, release, namespace)
    hint = "see `kubectl get events`; Kubernetes keeps them for an hour"
    unknown = Failure("no failed pod is left: the first one was evicted or deleted", then=then, hint=hint)
    return find_loss(cluster, runs, namespace) or unknown


def find_loss(cluster: Cluster, runs: Sequence[Object], namespace: str) -> Failure | None:
    """Return which pod of runs was taken away first, which makes controllers start a run again; None when none was."""
    lost = losses(cluster, runs, namespace)
    if not lost:
        return None
    first = lost[0]
    where, hint = (
        (f" on machine {first.machine}", f"see `kubectl describe node {first.machine}`") if first.machine else ("", "")
    )
    what = f"pod {first.pod}{where} was taken away: {first.why}"
    return Failure(what, pod=first.pod, machine=first.machine, at=first.at, then=tuple(reactions(runs)), hint=hint)


def reactions(runs: Iterable[Object]) -> list[str]:
    """Say what the controllers did with runs after a failure."""
    return [text for run in runs for text in (_restarted(run), why_failed(run)) if text]


def restarts(run: Object) -> int:
    """Count how often the controller has started a whole run again."""
    return kind_of(run).status.restarts(run)


def _restarted(run: Object) -> str:
    count, most = restarts(run), kind_of(run).status.most_restarts(run)
    return f"{run['kind']} {run['metadata']['name']} was started again {count} of at most {most} times" if count else ""


def _of_pod(
    cluster: Cluster, member: Member, count: int, then: tuple[str, ...], release: str, namespace: str
) -> Failure:
    end = member.ends[0]
    log = end.message.splitlines() or _log(cluster, member, namespace)
    rank, code = _root_cause("\n".join(log))
    if rank is None and len(member.ranks) == 1:
        rank = member.ranks[0]
    exit_code = code if code is not None else end.exit_code or None
    others = f"; {count - 1} more failed after it" if count > 1 else ""
    shown = next((f" --rank {each}" for each in (rank, *member.ranks) if each is not None), "")
    hint = _HINTS.get(end.reason, f"`chartgen logs {release}{shown}` shows more")
    return Failure(
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
    except ClusterError as error:  # the machine may be gone with the pod's log; the rest is still worth telling
        return [f"(the log cannot be read: {error})"]


def _when(member: Member) -> tuple[datetime, bool, int]:
    """Order failures: the earliest first; of equal ones not what a signal ended."""
    end = member.ends[0]
    return end.at or _LATE, end.exit_code in _SIGNALLED, member.index or 0


def _root_cause(log: str) -> tuple[int | None, int | None]:
    for begin, pattern in _TOLD.items():
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
