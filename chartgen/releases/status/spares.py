"""The hot spares of a run: the pods that wait, and those that took the place of a lost one, as their logs show it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone

from chartgen.errors import MissingToolError
from chartgen.kube import Cluster, ClusterError
from chartgen.releases.status.events import RemovedPod
from chartgen.releases.status.members import Member, each_member, last_lines, pod_log
from chartgen.visible import counted

# What ft_launcher logs on each machine (nvidia-resiliency-ext v0.6.0 and d8686d9, ft_rendezvous_barrier.py). The
# training meets as `run`, the check of the network before it as `run-transport` (workloads/common/files/spares.sh).
_MEETS = re.compile(r"attempts to join the next round of the rendezvous 'run'")
_JOINED = re.compile(r"has joined the rendezvous 'run' as rank \d+ ")
_ROUND = re.compile(r"Assigned active rank \d+ \(round=(\d+)\)")
_MOST = 32  # logs that are read, those of the pods that started last first: whoever comes last is the spare
_TAIL = 50  # lines; a spare logs nothing else
_EARLY, _LATE = datetime.min.replace(tzinfo=timezone.utc), datetime.max.replace(tzinfo=timezone.utc)
_HEAD = 1 << 18  # bytes, in which a machine joins for the first time: a spare logs nothing while it waits


@dataclass(frozen=True)
class TakeOver:
    """A spare that trains, and the pod whose loss it made good; empty if that is not known."""

    pod: str
    lost: str


@dataclass(frozen=True)
class Spares:
    """The spares of a run.

    Args:
        count: Machines beside those that train, when the run began.
        waiting: Pods that wait for a loss.
        took_over: Spares that train now, in the order in which they joined.
        unknown: Why nothing is known of the other spares; empty if all are known.
    """

    count: int
    waiting: tuple[str, ...] = ()
    took_over: tuple[TakeOver, ...] = ()
    unknown: str = ""

    def __str__(self) -> str:
        names = f": {', '.join(self.waiting)}" if self.waiting else ""
        is_known = self.waiting or self.took_over or not self.unknown
        parts = [f"{len(self.waiting)} of {self.count} ready{names}" if is_known else str(self.count)]
        parts += [f"{each.pod} took the place of {each.lost or 'a lost machine'}" for each in self.took_over]
        return "; ".join(filter(None, [*parts, self.unknown]))


def find_spares(
    cluster: Cluster, count: int, failed: Iterable[Member], lost: Iterable[RemovedPod], release: str, namespace: str
) -> Spares:
    """Return the spares of a run that trains.

    Args:
        count: Its spares when it began.
        failed: Its failed pods.
        lost: Pods that were removed from it, oldest removal first.
    """
    running = [member for member, _ in each_member(cluster, release, namespace) if member.phase == "Running"]
    began = min((member.since for member in running if member.since), default=_EARLY)
    gone = [(member.ends[0].at if member.ends and member.ends[0].at else _LATE, member.name) for member in failed]
    gone += [(each.at, each.pod) for each in lost if each.at >= began]
    names = [name for _, name in sorted(gone)]
    running.sort(key=lambda each: (each.since or _EARLY, each.index or 0), reverse=True)
    read = [member for member in running if member.index][:_MOST]
    lead = [member for member in running if member.index == 0]
    waiting: list[str] = []
    joined: list[tuple[int, str]] = []
    for member in [*lead, *read]:
        try:
            is_ready = waits(last_lines(cluster, member, namespace, _TAIL))
            if is_ready and member in lead:
                return Spares(count, unknown="not known while the machines meet")
            if is_ready:
                waiting.append(member.name)
            elif names and (number := first_round(pod_log(cluster, member, namespace, limitBytes=_HEAD))):
                joined.append((number, member.name))
        except (ClusterError, MissingToolError) as error:
            unread = f"the others are unknown: the log of pod {member.name} cannot be read: {error}"
            return Spares(count, tuple(waiting), unknown=unread)
        if len(waiting) + len(joined) == count:
            break
    pods = [pod for _, pod in sorted(joined)]
    # a machine lost before the training began was not replaced, so the last ones are those that were
    replaced = [*[""] * len(pods), *names][len(names) :]
    missing = count - len(waiting) - len(names)
    unknown = f"{missing} not known yet from {counted(len(read), 'log')}" if missing > 0 else ""
    return Spares(count, tuple(waiting), tuple(map(TakeOver, pods, replaced)), unknown)


def waits(lines: Iterable[str]) -> bool:
    """Report whether the end of a machine's log shows that it is ready for the training, and has no part in it."""
    found = False
    for line in lines:
        found = bool(_MEETS.search(line)) or (found and not _JOINED.search(line))
    return found


def first_round(lines: Iterable[str]) -> int:
    """Return the number of the round in which a machine trained first: after a failure, more than 0."""
    number = 0
    for line in lines:
        if found := _ROUND.search(line):
            number = int(found[1])
        elif _JOINED.search(line):
            return number
    return 0
