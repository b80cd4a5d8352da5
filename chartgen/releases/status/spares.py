"""The hot spares of a run: the pods that wait, and those that took the place of a lost one, as their logs show it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

from chartgen.errors import MissingToolError
from chartgen.kube import Cluster, ClusterError
from chartgen.releases.status.events import RemovedPod
from chartgen.releases.status.members import Member, each_member, last_lines, pod_log
from chartgen.visible import counted

# What ft_launcher logs on each machine (nvidia-resiliency-ext v0.6.0 and d8686d9, ft_rendezvous_barrier.py). The
# training meets as `run`, the check of the network before it as `run-transport` (workloads/common/files/spares.sh).
_MEETS, _JOINED = "attempts to join the next round of the rendezvous 'run'", "has joined the rendezvous 'run' as rank"
_ROUND = re.compile(r"Assigned active rank \d+ \(round=(\d+)\)")
_MOST = 32  # logs that are read, those of the pods that started last first: whoever comes last is the spare
_TAIL = 50  # lines; a spare logs nothing else
_EARLY, _LATE = datetime.min.replace(tzinfo=timezone.utc), datetime.max.replace(tzinfo=timezone.utc)
_HEAD = 1 << 18  # bytes, in which a machine joins for the first time: a spare logs nothing while it waits


@dataclass(frozen=True)
class Spares:
    """The spares of a run, of which it had `count` when it began."""

    count: int
    waiting: tuple[str, ...] = ()  # pods that wait for a loss
    # Spares that train now, each with the pod whose place it took; empty if that is not known
    took_over: Mapping[str, str] = field(default_factory=dict)
    unknown: str = ""  # why nothing is known of the others; empty if all are known

    def __str__(self) -> str:
        ready = f", ready: {', '.join(self.waiting)}" if self.waiting else ""
        parts = [f"{self.count}{ready}"]
        parts += [f"{pod} took the place of {lost or 'a lost machine'}" for pod, lost in self.took_over.items()]
        return "; ".join(filter(None, [*parts, self.unknown]))


def find_spares(
    cluster: Cluster, count: int, failed: Iterable[Member], removed: Iterable[RemovedPod], release: str, namespace: str
) -> Spares:
    """Return the spares of a run that trains and began with a number of them."""
    running = [member for member, _ in each_member(cluster, release, namespace) if member.phase == "Running"]
    # the first machine, where all meet, is never a spare
    running.sort(key=lambda each: (each.index == 0, each.since or _EARLY, each.index or 0), reverse=True)
    began = min((member.since for member in running if member.since), default=_EARLY)
    gone = [(member.ends[0].at if member.ends and member.ends[0].at else _LATE, member.name) for member in failed]
    lost = [pod for _, pod in sorted(gone + [(each.at, each.pod) for each in removed if each.at >= began])]
    waiting: list[str] = []
    joined: list[tuple[int, str]] = []
    for member in running[:_MOST]:
        try:
            if not waits(last_lines(cluster, member, namespace, _TAIL)):
                number = first_round(pod_log(cluster, member, namespace, limitBytes=_HEAD)) if lost else 0
                joined += [(number, member.name)] if number else []
            elif member.index == 0:
                return Spares(count, unknown="not known while the machines meet")
            else:
                waiting.append(member.name)
        except (ClusterError, MissingToolError) as error:
            unread = f"the others are unknown: the log of pod {member.name} cannot be read: {error}"
            return Spares(count, tuple(waiting), unknown=unread)
        if len(waiting) + len(joined) == count:
            break
    # a machine lost before the training began was not replaced, so the last ones are those that were
    replaced = [*[""] * len(joined), *lost][len(lost) :]
    missing = count - len(waiting) - len(lost)
    unknown = f"{missing} not known yet, from {counted(len(running[:_MOST]), 'log')}" if missing > 0 else ""
    pods = [pod for _, pod in sorted(joined)]
    return Spares(count, tuple(waiting), dict(zip(pods, replaced, strict=True)), unknown)


def waits(lines: Iterable[str]) -> bool:
    """Report whether the end of a machine's log shows that it is ready for the training, and has no part in it."""
    last = [_MEETS in line for line in lines if _MEETS in line or _JOINED in line][-1:]
    return last == [True]


def first_round(lines: Iterable[str]) -> int:
    """Return the number of the round in which a machine trained first: after a failure, more than 0."""
    number = 0
    for line in lines:
        if found := _ROUND.search(line):
            number = int(found[1])
        elif _JOINED in line:
            return number
    return 0
