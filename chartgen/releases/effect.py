"""Describe the effect of a change on the run in its current state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from chartgen.kube.workloads import find_pods, find_workers
from chartgen.releases.survival import Survival, survival
from chartgen.visible import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from chartgen.kube import Cluster, Object
    from chartgen.kube.workloads import Workers
    from chartgen.releases.state import State

RUN_AGAIN = "to run it again, add --set run.again=<word>"


@dataclass(frozen=True)
class Side:
    """A render of a release, before a change or after it.

    Args:
        workers: The pods of its run; None without a run.
        survival: The data that outlives them.
    """

    workers: Workers | None = None
    survival: Survival | None = None


@dataclass(frozen=True)
class OldRun:
    """State of a run in the cluster.

    Args:
        outcome: "finished" or "failed"; empty while it waits or runs.
        pods: Its existing pods; None when the run itself no longer exists.
    """

    outcome: str = ""
    pods: int | None = None


def side(rendered: Iterable[Object], values: Mapping[str, Any]) -> Side:
    """Return one side of a change.

    Args:
        rendered: The objects of a release.
        values: The values that its templates received, chart defaults included.
    """
    workers = find_workers(rendered)
    return Side(workers, survival(workers, values)) if workers else Side()


def old_run(cluster: Cluster, state: State, workers: Workers | None) -> OldRun:
    """Read the state of a run."""
    if workers is None:
        return OldRun()
    outcome, live = state.outcome(workers.name), state.run(workers.name)
    if outcome or live is None or "deletionTimestamp" in live["metadata"]:
        return OldRun(outcome)
    pods = find_pods(cluster, state.release, state.namespace)
    return OldRun("", sum(pod["metadata"].get("labels", {}).get("run", workers.name) == workers.name for pod in pods))


def effect(before: Side, after: Side, old: OldRun) -> str:
    """Report the effect of an upgrade on the run; empty when neither side has a run."""
    was, will = before.workers, after.workers
    if was is None or will is None:
        return _one_sided(was, will, old)
    name = f"{was.kind} {was.name}"
    if was.name != will.name:
        return f"{name} is replaced by {will.name}: {_end(old)}; {resumption(before, after)}"
    if old.outcome:
        return f"{name} has {old.outcome} and is not started again; {RUN_AGAIN}"
    return f"{name} continues unchanged"


def resumption(before: Side, after: Side) -> str:
    """Report from where the program of the new run starts."""
    was, will = before.workers, after.workers
    if not (was and will and before.survival and after.survival and will.trains):
        return "its program starts again"
    old, new = before.survival, after.survival
    here, there = new.checkpoints.directory, old.checkpoints.directory
    is_there = was.volume(there) == will.volume(there)
    if (
        not (was.trains and here == there and is_there)
        or new.saves == "no"
        or not here
        or old.checkpoints.stays == "no"
    ):
        return f"training starts from the beginning{f' in {here}' if here else ''}{_kept(old, is_moved=not is_there)}"
    newest = f"training resumes from the newest checkpoint in {here}"
    if old.checkpoints.stays == "machine":
        return f"{newest} where machines get the same pods as before, else from the beginning"
    if old.saves == "no":
        return f"{newest} that an earlier run has saved, else from the beginning"
    if old.risk:
        return f"{newest}, if it exists: {old.risk}"
    return newest + (f", saved every {old.interval} steps" if old.interval else "")


def _kept(old: Survival, *, is_moved: bool) -> str:
    """Report which earlier checkpoints stay when the new run does not use them."""
    if not old.checkpoints.directory or old.checkpoints.stays == "no" or old.saves == "no":
        return ""
    return f", and {old.checkpoints.directory}{' of the old storage' if is_moved else ''} stays unchanged"


def _one_sided(was: Workers | None, will: Workers | None, old: OldRun) -> str:
    if will:
        return f"{will.kind} {will.name} starts with {counted(will.count, 'pod')}"
    return f"{was.kind} {was.name} is removed: {_end(old)}" if was else ""


def _end(old: OldRun) -> str:
    if old.outcome:
        return f"it has {old.outcome} and is removed"
    return "it is gone already" if old.pods is None else f"{counted(old.pods, 'pod')} stop"
