"""What brings a run back after a failure: its checkpoints, restarts and the end of a hang, set or chosen."""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.checks.job import Job
from chartgen.checks.speed import speed_of

# What templates/_figures.tpl chooses for a run that saves, by kind; unknown for a kind of the user's own.
_PROGRESS = "until 3 in a row bring no new checkpoint"
_CHOSEN = {"job": "none: a Job has none", "rayjob": "3"} | dict.fromkeys(
    ("jobset", "trainjob", "pytorchjob", "mpijob", "volcano-job"), _PROGRESS
)


def recovery(job: Job) -> Iterator[tuple[str, str]]:
    """Yield what brings a training run back, as lines of (label, text)."""
    saved, run, kind = job.values["checkpoint"], job.values["run"], job.workload or job.target.workload
    if "checkpoint.enabled" in job.launcher.owns:
        yield "checkpoints", _checkpoints(job) if saved["enabled"] else "none: a failure takes back all steps"
    chosen = _CHOSEN.get(kind, "") if saved["enabled"] else "none: the run saves nothing"
    count = run.get("maxRestarts")
    if restarts := chosen if count is None else str(count or "none"):
        yield "restarts", restarts
    read = run["stepLine"] or job.own.get("metrics") or job.launcher.step_line
    if minutes := run.get("hangMinutes"):
        yield "a hang ends", f"after {minutes} minutes without a step"
    elif minutes is None and read and kind != "rayjob":
        yield "a hang ends", "after 20 usual steps without a step, or 5 minutes and the grace period if that is longer"


def _checkpoints(job: Job) -> str:
    """Return where and how often a run saves, with the time between where a step's can be estimated."""
    interval = int(job.values["checkpoint"]["interval"])
    where = job.values.get("storage", {}).get("outputs", {}).get("from", "")
    counted = "checkpoint.interval" in job.launcher.owns and job.world % job.model_parallel == 0
    found = speed_of(job).estimate if counted else None
    about = f" (about {found.step_seconds.middle * interval / 60:.0f} minutes, estimated)" if found else ""
    return f"every {interval} steps{about}, on {where}"
