"""What a job's values alone determine of its plan: machines, layout, speed, and what brings it back after a failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.checks.job import Job, data_parallel, global_batch, micro_batches
from chartgen.checks.memory import GB
from chartgen.checks.memory_fit import load_of
from chartgen.checks.published import published_layout
from chartgen.checks.speed import describe_speed, speed_of
from chartgen.visible import counted

_SIZES = ("tensor", "pipeline", "virtualPipeline", "context", "expert", "expertTensor")
# What templates/_figures.tpl chooses for a run that saves, by kind; unknown for a kind of the user's own.
_PROGRESS = "until 3 starts in a row bring no new checkpoint"
_CHOSEN = {"job": "none: a Job has none", "rayjob": "3"} | dict.fromkeys(
    ("jobset", "trainjob", "pytorchjob", "mpijob", "volcano-job"), _PROGRESS
)


def outline(job: Job) -> Iterator[tuple[str, str]]:
    """Yield what a job's values alone determine of its plan, without Helm, as lines of (label, text)."""
    values, owns = job.values, job.launcher.owns
    gpus = 0 if job.launcher.task == "data" else job.world
    storage, queue = values.get("storage", {}), values.get("queue", {})  # a target of one's own may lack both
    outputs = storage.get("outputs", {}).get("from", "")
    spares = values["run"].get("spares", 0) if gpus else 0
    yield machine_line(job.nodes + spares, values["machineType"], gpus + spares * job.gpus_per_node, spares)
    yield "program", job.launcher.name
    if job.trains and "parallelism.tensor" in owns:
        yield from layout_lines(layout_sizes(values, gpus), batch_sizes(values, gpus), int(values["steps"]))
    if job.trains and (load := load_of(job)):
        yield "memory", f"{load.memory} of {load.capacity / GB:.0f} on the fullest GPU"
    yield from speed_lines(job, int(values["steps"]))
    yield "image", job.image or "none"
    yield "queue", queue.get("name") or "none"
    yield "outputs", outputs or "none"
    if job.trains:
        yield from recovery(job)


def machine_line(nodes: int, machine: str, gpus: int, spares: int) -> tuple[str, str]:
    """Return the machines of a run, spares among them, as a line of (label, text)."""
    among = f", {spares} to spare" if spares else ""
    return ("machines", f"{nodes} x {machine} = {gpus} GPUs{among}") if gpus else ("pods", f"{nodes} without GPUs")


def layout_lines(sizes: dict[str, int], batch: dict[str, int], steps: int) -> Iterator[tuple[str, str]]:
    """Yield the layout, batch and steps of a training as lines of (label, text)."""
    shown = {name: size for name, size in sizes.items() if size > 1 or name in ("tensor", "pipeline", "data")}
    yield "layout", " x ".join(f"{name} {size}" for name, size in shown.items())
    parts = f"{batch['microBatches']} micro-batch{'es' * (batch['microBatches'] != 1)}"
    yield "batch", f"{counted(batch['global'], 'sample')} a step, {batch['micro']} at a time, {parts}"
    yield "steps", str(steps or "set by the program's own configuration")


def speed_lines(job: Job, steps: int) -> Iterator[tuple[str, str]]:
    """Yield the estimate of a training run and the nearest published one, as lines of (label, text)."""
    found = speed_of(job) if job.trains else None
    if found and (line := describe_speed(found, steps)):
        yield "estimate", line
        if figure := published_layout(found.run):
            yield "published", str(figure)


def layout_sizes(values: dict[str, Any], gpus: int) -> dict[str, int]:
    """Return the sizes of the layout that the values set, and the resulting data parallel size."""
    given = values["parallelism"]
    return {name: int(given[name]) for name in _SIZES if given.get(name)} | {"data": data_parallel(values, gpus)}


def batch_sizes(values: dict[str, Any], gpus: int) -> dict[str, int]:
    """Return samples: of a step, at a time, and the micro-batches of each pipeline."""
    sizes = {"micro": int(values["batch"]["micro"]), "global": global_batch(values, gpus)}
    return {**sizes, "microBatches": micro_batches(values, gpus)}


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
    speed = speed_of(job) if counted else None
    about = ""
    if speed and speed.estimate:
        about = f" (about {speed.estimate.step_seconds.middle * interval / 60:.0f} minutes, estimated)"
    elif speed:
        about = f" (in unknown time: {speed.reason})"
    grace = f", the last within {int(job.values['run']['gracePeriodSeconds'])} s of a stop"
    return f"every {interval} steps{about}, on {where}{grace if job.launcher.processes != 'ray' else ''}"
