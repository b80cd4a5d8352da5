"""Why a release's run ended or hangs: from the logs of its pods, how they ended, and the cluster's events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.kube import Cluster, ClusterError, side_by_side
from chartgen.kube.workloads import find_runs
from chartgen.releases.status.events import removed_pods
from chartgen.releases.status.members import Member, each_member, pod_log
from chartgen.releases.why.explanation import EvidenceLine, Explanation, explain
from chartgen.releases.why.run_log import RunLog, ending, read_run_log
from chartgen.visible import counted

_MOST_PODS = 256  # whose logs are read: those that ended first, then by rank
_TAIL = 20_000  # lines of each
_AT_ONCE = 16
_MOST_IMAGES = 5  # a tag may have moved between two pods


def explain_release(cluster: Cluster, release: str, namespace: str) -> Explanation:
    """Return why a release's run ended or hangs; raise ChartgenError without pods, if none was removed."""
    members = sorted((member for member, _ in each_member(cluster, release, namespace)), key=_order)
    lost = _removals(cluster, release, namespace)
    if not members and not lost:
        hint = "name a folder with its logs"
        raise ChartgenError(Problem(f"release {release} has no pods in namespace {namespace}", hint=hint))
    logs = side_by_side((partial(_log_of, cluster, member, namespace) for member in members[:_MOST_PODS]), _AT_ONCE)
    left_out = [f"{len(members) - _MOST_PODS} more pods: not read"] if len(members) > _MOST_PODS else []
    verdict = explain([*logs, *lost], examined=left_out)
    images = Counter(member.image for member in members if member.image).most_common(_MOST_IMAGES)
    ran = (EvidenceLine(counted(number, "pod"), f"image {image}") for image, number in images)
    return replace(verdict, evidence=(*verdict.evidence, *ran))


def _order(member: Member) -> tuple[bool, float, int]:
    at = member.ends[0].at if member.ends else None
    return not member.ends, at.timestamp() if at else 0.0, member.index or 0


def _removals(cluster: Cluster, release: str, namespace: str) -> list[RunLog]:
    removed = removed_pods(cluster, find_runs(cluster, release, namespace), namespace)
    return [
        read_run_log(f"event of {each.pod}", [f"{each.at:%Y-%m-%dT%H:%M:%SZ} {each.why}"], machine=each.machine)
        for each in removed
    ]


def _log_of(cluster: Cluster, member: Member, namespace: str) -> RunLog:
    """Read a pod's log before and after its last restart, and add how its containers ended."""
    read = partial(read_run_log, member.name, machine=member.machine, ranks=member.ranks)
    unread: list[ChartgenError] = []  # the machine may be gone with the log; the other pods and events remain
    log = read(_lines(cluster, member, namespace, unread))
    if not log.clues:  # its end may be in the container's message alone
        log.clues = read(line for end in member.ends for line in end.message.splitlines()).clues
    log.unread = unread[-1].problems[0].message if unread else ""
    for end in member.ends:
        text = f"{end.container} ended with exit code {end.exit_code} {end.reason}"
        log.clues += ending(log, end.exit_code, text, end.at.timestamp() if end.at else None)
    return log


def _lines(cluster: Cluster, member: Member, namespace: str, unread: list[ChartgenError]) -> Iterator[str]:
    for previous in ("true", "false") if member.program_restarts else ("false",):
        try:
            yield from pod_log(cluster, member, namespace, timestamps="true", previous=previous, tailLines=_TAIL)
        except (ClusterError, MissingToolError) as error:
            unread.append(error)
