"""Work lost when the pods of a live run end: its steps so far, if no checkpoint stays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from chartgen.kube.workloads import find_workers, outcome
from chartgen.releases.status.pod_summary import summarize_pods
from chartgen.releases.status.readout import progress_now
from chartgen.releases.survival import Survival, stored_values, survival

if TYPE_CHECKING:
    from chartgen.kube import Cluster, Object
    from chartgen.releases.history import RevisionRecord
    from chartgen.releases.state import State


@dataclass(frozen=True)
class LostWork:
    """Work of a run that is lost with its pods.

    Args:
        run: Name of the run.
        why: Why no checkpoint stays.
        progress: Progress according to its log; empty when the log shows none.
        gpu_hours: GPUs times the time since its pods started; None when the cluster does not report the start.
    """

    run: str
    why: str
    progress: str
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
    summary = summarize_pods(cluster, state.release, state.namespace)
    if not summary.started:
        return None
    hours = (datetime.now(timezone.utc) - summary.since).total_seconds() / 3600 if summary.since else None
    return LostWork(
        run=run["metadata"]["name"],
        why=found.risk,
        progress=progress_now(cluster, summary, state.namespace, record_of(state, run["metadata"]["name"])),
        gpu_hours=None if hours is None else round(max(hours, 0.0) * summary.gpus, 1),
    )
