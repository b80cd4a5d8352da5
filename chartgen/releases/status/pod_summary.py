"""Counts of all pods of a release's runs at one moment, with a few pods as examples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from chartgen.kube import Cluster, Object
from chartgen.kube.workloads import each_pod
from chartgen.releases.status.members import Member, member, rendezvous


@dataclass
class PodSummary:
    """The pods of a release, as counts and examples."""

    names: list[str] = field(default_factory=list)  # names of the pods that are placed but do not run
    pods: int = 0
    ready: int = 0  # pods that are ready, or have succeeded
    started: int = 0  # pods that run, or have succeeded
    silent: int = 0  # pods without a machine and without a message of the scheduler
    restarts: int = 0
    gpus: int = 0
    since: datetime | None = None  # start time of the last pod
    machines: set[str] = field(default_factory=set)
    # Number of pods that the scheduler cannot place, by its message
    unplaced: Counter[str] = field(default_factory=Counter)
    example: dict[str, Object] = field(default_factory=dict)  # a pod for each of these messages
    # Number of pods with a container that does not start, by its reason, image and message
    stuck: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    failed: list[Member] = field(default_factory=list)
    first: Member | None = None
    last: Member | None = None  # the pod with the last rank, which prints the loss
    rendezvous: str = ""  # MASTER_ADDR:MASTER_PORT of the pods; empty without them
    # The pod without GPUs that starts the program for the other pods, and prints their output
    master: Member | None = None

    @property
    def speakers(self) -> list[Member]:
        """Return the pods whose logs show the progress, the most informative first."""
        found = [self.master] if self.master else [self.last, self.first]
        return list(dict.fromkeys(member for member in found if member and member.started))

    def count(self, pod: Object) -> None:
        """Add one pod; one without the form of its kind raises an error, and adds nothing."""
        found, _ = member(pod), {**pod["spec"].get("nodeSelector", {})}  # a map, as `pending` needs it
        # all pods of a run have the same one, and thousands of them many variables
        self.rendezvous = self.rendezvous or rendezvous(pod)
        self.pods += 1
        self.ready += found.ready
        self.started += found.started
        self.restarts += found.restarts
        self.since = max(filter(None, (self.since, found.since)), default=None)
        if found.machine:
            self.machines.add(found.machine)
            self.gpus += found.gpus
        if found.phase == "Failed":
            self.failed.append(found)
        elif not found.started:
            self._wait(found, pod)
        self._rank(found)

    def _wait(self, member: Member, pod: Object) -> None:
        if member.unplaced:
            self.unplaced[member.unplaced] += 1
            self.example.setdefault(member.unplaced, pod)
        elif member.stuck:
            self.stuck[member.stuck] += 1
        elif member.machine:
            self.names.append(member.name)
        else:
            self.silent += 1

    def _rank(self, member: Member) -> None:
        if member.drives:
            self.master = member
        if not member.ranks:
            return
        if self.first is None or member.ranks[0] < self.first.ranks[0]:
            self.first = member
        if self.last is None or member.ranks[0] > self.last.ranks[0]:
            self.last = member


def summarize_pods(cluster: Cluster, release: str, namespace: str) -> PodSummary:
    """Count the pods of a release."""
    summary = PodSummary()
    pods = each_pod(cluster, release, namespace)
    for _ in cluster.judged(pods, summary.count):
        pass
    return summary
