"""Machines on which runs of a release have failed more than once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chartgen.kube import Cluster, ClusterError, Object
from chartgen.kube.workloads import outcome
from chartgen.releases.lease import read_notes
from chartgen.releases.status.events import removed_pods
from chartgen.releases.status.failure import FirstFailure, first_of
from chartgen.releases.status.members import each_member

if TYPE_CHECKING:
    from chartgen.releases.state import State

BROKEN = "brokenOn"  # note: machines of the runs that had failed when they were replaced, one for each failure


def broken_machine(cluster: Cluster, state: State) -> list[str]:
    """Return the machine on which a pod of a failed release failed first, as a note; empty when it is unknown."""
    if not any(outcome(run) == "failed" for run in state.runs):
        return []
    failed = [member for member, _ in each_member(cluster, state.release, state.namespace) if member.ends]
    return [first_of(failed).machine] if failed and first_of(failed).machine else []


def with_repeats(
    cluster: Cluster, failure: FirstFailure, runs: Sequence[Object], release: str, namespace: str
) -> FirstFailure:
    """Add a hint to a failure on a machine on which an earlier run, or another pod, has failed or was lost."""
    lost = [each.machine for each in removed_pods(cluster, runs, namespace) if each.pod != failure.pod]
    count = 1 + [*lost, *_earlier(cluster, release, namespace)].count(failure.machine)
    if not failure.machine or count == 1:
        return failure
    often = "twice" if count == 2 else f"{count} times"
    hint = f"machine {failure.machine} has failed {often}: upgrade with --avoid-node {failure.machine}"
    return replace(failure, hint=f"{hint}; {failure.hint}" if failure.hint else hint)


def _earlier(cluster: Cluster, release: str, namespace: str) -> Iterable[str]:
    try:
        notes = read_notes(cluster, release, namespace) or {}
    except ClusterError as error:
        if error.status == 403:  # to read the notes needs a permission that `status` can do without
            return []
        raise
    return notes.get(BROKEN, [])
