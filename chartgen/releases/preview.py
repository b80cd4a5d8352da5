"""Preview of the effect of a command on the run of a release, and the work that is lost with its pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from chartgen.kube.workloads import find_pods, find_workers, outcome
from chartgen.releases.survival import Survival, stored_values, survival
from chartgen.visible import counted

if TYPE_CHECKING:
    from chartgen.kube import Cluster, Object
    from chartgen.kube.workloads import Workers
    from chartgen.releases.history import RevisionRecord
    from chartgen.releases.state import State


@dataclass(frozen=True)
class Preview:
    """The effect of a change on the run."""

    effect: str  # description of the effect; empty when neither revision has a run
    survival: Survival | None = None  # data that outlives the pods of the previous run; None without such a run
    losses: list[LostWork] = field(default_factory=list)  # work that is lost with live runs


def preview(
    cluster: Cluster, state: State, base: RevisionRecord | None, rendered: Iterable[Object], values: Mapping[str, Any]
) -> Preview:
    """Return the effect of a change of a release on its run; nothing is changed.

    Args:
        base: The revision to start from; None for a first install.
        rendered: The objects of the new revision.
        values: The values that its templates received, chart defaults included.
    """
    before = side(base.objects if base else [], stored_values(base) if base else {})
    after = side(rendered, values)
    next_run = after.workers.name if after.workers else ""
    going = [run for run in state.runs if run["metadata"]["name"] != next_run]
    words = effect(before, after, old_run(cluster, state, before.workers))
    return Preview(words, before.survival, lost_work(cluster, state, going))


@dataclass(frozen=True)
class LostWork:
    """Work of a run that is lost with its pods."""

    run: str  # name of the run
    why: str  # why no checkpoint stays
    progress: str  # progress according to its log; empty when the log shows none
    # GPUs times the time since its pods started; None when the cluster does not report the start
    gpu_hours: float | None

    def __str__(self) -> str:
        hours = f"{self.gpu_hours:,.1f} GPU-hours" if self.gpu_hours is not None else "GPU-hours not known"
        return f"all steps of {self.run} ({self.progress or 'step not known'}; {hours}): {self.why}"


def lost_work(cluster: Cluster, state: State, runs: Iterable[Object]) -> list[LostWork]:
    """Return the work that is lost when live runs end; runs that have ended or never started lose nothing."""
    going = [run for run in runs if not outcome(run) and "deletionTimestamp" not in run["metadata"]]
    return [loss for run in going if (loss := _loss(cluster, state, run))]


def record_of(state: State, run: str) -> RevisionRecord | None:
    """Return the newest revision that contains a run; None if no revision does."""
    return next((record for record in reversed(state.records) if run in record.manifest), None)


def survival_of_live(state: State, run: Object) -> Survival | None:
    """Return the data that outlives the pods of a live run; None when chartgen does not know its pods."""
    workers, record = find_workers([run]), record_of(state, run["metadata"]["name"])
    return survival(workers, stored_values(record) if record else {}) if workers else None


def _loss(cluster: Cluster, state: State, run: Object) -> LostWork | None:
    found = survival_of_live(state, run)
    if found is None or found.is_safe:
        return None
    from chartgen.releases.status.pod_summary import summarize_pods
    from chartgen.releases.status.readout import progress_now

    summary = summarize_pods(cluster, state.release, state.namespace)
    if not summary.started:
        return None
    hours = (datetime.now(timezone.utc) - summary.since).total_seconds() / 3600 if summary.since else None
    return LostWork(
        run=run["metadata"]["name"],
        why=found.risk,
        progress=progress_now(cluster, summary, state.namespace, record_of(state, run["metadata"]["name"]))[0],
        gpu_hours=None if hours is None else round(max(hours, 0.0) * summary.gpus, 1),
    )


RUN_AGAIN = "to run it again, add --set run.again=<word>"


@dataclass(frozen=True)
class Side:
    """The pods of a run before a change or after it, and the data that outlives them; None without a run."""

    workers: Workers | None = None
    survival: Survival | None = None


@dataclass(frozen=True)
class OldRun:
    """State of a run in the cluster."""

    outcome: str = ""  # "finished" or "failed"; empty while it waits or runs
    pods: int | None = None  # its existing pods; None when the run itself no longer exists


def side(rendered: Iterable[Object], values: Mapping[str, Any]) -> Side:
    """Return one side of a change; see `survival` for the values."""
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
    if was is None:
        return f"{will.kind} {will.name} starts with {counted(will.count, 'pod')}" if will else ""
    name = f"{was.kind} {was.name}"
    if will is None:
        return f"{name} is removed: {_end(old)}"
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
    is_kept = old.checkpoints.stays != "no"
    if not (was.trains and here == there and is_there and here and is_kept) or new.saves == "no":
        kept = ""
        if there and is_kept and old.saves != "no":
            kept = f", and {there}{'' if is_there else ' of the old storage'} stays unchanged"
        return f"training starts from the beginning{f' in {here}' if here else ''}{kept}"
    newest = f"training resumes from the newest checkpoint in {here}"
    if old.checkpoints.stays == "machine":
        return f"{newest} where machines get the same pods as before, else from the beginning"
    if old.saves == "no":
        return f"{newest} that an earlier run has saved, else from the beginning"
    if old.risk:
        return f"{newest}, if it exists: {old.risk}"
    return newest + (f", saved every {old.interval} steps" if old.interval else "")


def _end(old: OldRun) -> str:
    if old.outcome:
        return f"it has {old.outcome} and is removed"
    return "it is gone already" if old.pods is None else f"{counted(old.pods, 'pod')} stop"
