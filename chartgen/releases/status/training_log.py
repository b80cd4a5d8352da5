"""What a release's logs tell of its training, and its values of its model: the first and the last rank's log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from chartgen.errors import ChartgenError, Problem
from chartgen.helm.values import Values
from chartgen.kube import Cluster, ClusterError
from chartgen.metrics.figures.jobs import facts_of_release
from chartgen.metrics.read.log import Log, read_streams
from chartgen.programs import Progress
from chartgen.releases.history import read_records, restore_chart
from chartgen.releases.status.logs import find_sources
from chartgen.releases.status.members import Member
from chartgen.releases.status.pod_logs import pod_log


def read_release(
    cluster: Cluster, release: str, namespace: str, *, progress: Progress
) -> tuple[Log, Mapping[str, Any]]:
    """Read the logs of a release's first and last rank, and the facts that its values tell.

    Args:
        cluster: Where it runs.
        release: Its name.
        namespace: Its namespace.
        progress: Gets a line for each log that cannot be read.

    Raises:
        ChartgenError: There is no such release, it has no pods, or they have not logged a step.
    """
    records = read_records(cluster, release, namespace)
    if not records:
        problem = f"there is no file and no release {release} in namespace {namespace}"
        raise ChartgenError(Problem(problem, hint="name a log, or another namespace with -n"))
    facts = facts_of_release(restore_chart(records[-1]), Values(records[-1].values))
    members = [source.member for source in find_sources(cluster, release, namespace)]
    return read_streams((each.name, _text(cluster, each, namespace, progress)) for each in members), facts


def _text(cluster: Cluster, member: Member, namespace: str, progress: Progress) -> Iterator[bytes]:
    """Return the log of a pod, after that of its container before a restart; what cannot be read hides nothing else."""
    times = member.program_restarts
    if times > 1:
        progress(f"{member.name} was restarted {times} times: of the starts before, only the last has a log")
    for previous in ("true", "false") if times else ("false",):
        try:
            for line in pod_log(cluster, member, namespace, timestamps="true", previous=previous):
                yield f"{line}\n".encode()
        except ClusterError as error:
            progress(str(error))
