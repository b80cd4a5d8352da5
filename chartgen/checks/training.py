"""What makes no sense as a training run, although every machine would start it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import PurePosixPath

from chartgen.checks.job import Job
from chartgen.checks.machine import quantity
from chartgen.checks.memory import model_parameters
from chartgen.findings import KeyProblem, rule, rules_in

# Bytes of a checkpoint for each parameter: weights, and the optimizer's FP32 copy and two moments.
_SAVED_BYTES = 14
# Write rate of one machine to shared storage; few file systems are faster, so the time is a lower bound.
_WRITTEN_GIGABYTES = 5
# What a save of a small model took (megatron-core 0.19.2 on one H200, 2026-11-24: 4.5 to 8 s).
_LEAST_SECONDS = 5
# Llama 3 405B: 419 unexpected interruptions of 16,384 GPUs in 54 days (arXiv 2407.21783, section 3.3.4).
GPU_HOURS_BETWEEN_FAILURES = 50_677
_HOUR = 3600


def save_seconds(job: Job) -> float:
    """Return the measured time of a checkpoint, or the least one if the machines write side by side."""
    from chartgen.checks.speed import architecture_of

    model = architecture_of(job)
    least = max(_written_seconds(job, model.parameters if model else 0), _LEAST_SECONDS)
    return float(job.values["checkpoint"].get("saveSeconds") or least)


def _written_seconds(job: Job, parameters: float) -> float:
    return parameters * _SAVED_BYTES / 1e9 / _WRITTEN_GIGABYTES / job.nodes


def chosen_interval(job: Job) -> int | None:
    """Return the steps between two checkpoints that lose least; None if they or their time are not known."""
    from chartgen.checks.speed import speed_of

    saves = job.values["checkpoint"]["enabled"] and "checkpoint.interval" in job.launcher.owns
    found = speed_of(job).estimate if saves and job.world % job.model_parallel == 0 else None
    if found is None:
        return None
    step = found.step_seconds
    best = best_interval(save_seconds(job), job.world)
    steps = rounded_steps(min(best, _HOUR * step.middle / step.high), step.middle)
    return min(steps, int(job.values["steps"]) or steps)


def chosen_grace(job: Job) -> int | None:
    """Return the given seconds, or more if a stopped run saves in them twice as slowly; None if it saves nothing."""
    saves = job.values["checkpoint"]["enabled"] and job.launcher.processes != "ray"
    if not saves or not job.describes_model or job.world % job.model_parallel:
        return None
    needed = math.ceil(_written_seconds(job, model_parameters(job)) / 5) * 10 + 60
    return max(needed, int(job.values["run"]["gracePeriodSeconds"]))


def best_interval(save: float, gpus: int) -> float:
    """Return the seconds between two checkpoints that lose least, an hour at most.

    Young's formula (CACM 17(9), 1974), the square root of 2 x save x time between failures; Daly's terms of higher
    order matter only where a save takes a noticeable part of that time (FGCS 22(3), 2006).
    """
    return min(math.sqrt(2 * save * GPU_HOURS_BETWEEN_FAILURES * _HOUR / gpus), _HOUR)


def rounded_steps(seconds: float, step: float) -> int:
    """Return the steps that fit into a time, 1 at least, cut to two digits."""
    steps = max(int(seconds / step), 1)
    unit: int = 10 ** max(len(str(steps)) - 2, 0)
    return steps // unit * unit


@rule(
    "arXiv 2407.21783, section 3.3.4 (failures); Young, CACM 17(9), 1974 (interval)",
    "warning",
    remedy="`checkpoint.interval`: use …, where saves and losses take least",
)
def interval_within_an_hour(job: Job) -> Iterator[KeyProblem]:
    """A failure takes back the steps since the last checkpoint: those of more than an hour are too many."""
    from chartgen.checks.speed import speed_of

    best, found = chosen_interval(job), speed_of(job).estimate
    if best is None or found is None:
        return
    interval = job.values["checkpoint"]["interval"]
    steps, step = min(interval, job.values["steps"] or interval), found.step_seconds
    if steps * step.low > _HOUR:
        hours = f"{steps * step.middle / _HOUR:.1f} hours (estimated)"
        message = f"{interval} steps take {hours}, lost with a failure"
        hint = f"use {best}, where saves and losses take least, or leave it out"
        yield KeyProblem("checkpoint.interval", message, hint, ("nodes", "steps"))


@rule(
    "NVIDIA/Megatron-LM core_v0.19.0, docs/user-guide/features/dist_optimizer.md",
    "error",
    remedy="`run.gracePeriodSeconds`: use … or more",
)
def grace_for_a_checkpoint(job: Job) -> Iterator[KeyProblem]:
    """A stopped run saves once more, but Kubernetes kills it if its grace period ends first."""
    enough = chosen_grace(job)
    if enough is None:
        return
    parameters = model_parameters(job)
    grace, needed = int(job.values["run"]["gracePeriodSeconds"]), _written_seconds(job, parameters)
    size = parameters * _SAVED_BYTES / 1e12
    if grace < needed:
        message = (
            f"{grace} s is less than the {needed:.0f} s that a checkpoint of {size:.1f} TB takes if each of "
            f"{job.nodes} machines writes {_WRITTEN_GIGABYTES} GB/s (assumed)"
        )
        hint = f"use {enough} or more"
        yield KeyProblem("run.gracePeriodSeconds", message, hint, ("checkpoint.interval", "nodes"))


@rule("Kubernetes API, core/v1 EmptyDirVolumeSource")
def room_for_staged_data(job: Job) -> Iterator[KeyProblem]:
    """Data sets that are copied to memory:// share the machine's memory, or the container's limit, with /dev/shm."""
    if not job.values["data"]["stage"] or job.values["storage"]["scratch"]["from"] != "memory://":
        return
    memory = job.resources("limits").get("memory") or job.machine.capacity.get("memory", "")
    shared, room = quantity(job.values.get("sharedMemory", "0")) or Fraction(0), quantity(memory)
    if room is not None and room <= shared:
        message = f"memory:// has no room for the copy: sharedMemory may take all of {memory}"
        hint = "use disk:// where machines have local disks, less sharedMemory, or data.stage false"
        yield KeyProblem("storage.scratch.from", message, hint, ("sharedMemory", "data.stage"))


@rule("Kubernetes API, core/v1 EmptyDirVolumeSource", remedy="`storage.data.from`: use storage such as pvc://")
def data_outlives_its_program(job: Job) -> Iterator[KeyProblem]:
    """What another program puts into memory:// is gone when training starts: its data sets must be in real storage."""
    data, store = job.values["data"], PurePosixPath("/data")
    mounted = (PurePosixPath(mount["mountPath"]) for mount in job.values["extraVolumeMounts"])
    prefixes = [prefix["path"] if isinstance(prefix, dict) else prefix for prefix in data["prefixes"]]
    read = [PurePosixPath(data["directory"], each) for each in [*prefixes, *filter(None, [data["name"]])]]
    is_own = any(each.is_relative_to(store) for each in mounted)
    reads = any(each.is_relative_to(store) for each in read)
    if reads and not is_own and job.values["storage"]["data"]["from"] == "memory://":
        message = "memory:// is empty when the run starts"
        yield KeyProblem("storage.data.from", message, "use storage such as pvc://", ("data",))


@rule("chartgen/checks/line_patterns.py")
def expressions_for_the_log(job: Job) -> Iterator[KeyProblem]:
    """Expressions that read steps from a log have known groups, and never look back at what they have read."""
    try:
        if texts := job.own.get("metrics"):
            from chartgen.checks.line_patterns import compile_lines  # few programs have lines of their own

            compile_lines(texts)
    except ValueError as error:
        yield KeyProblem(job.key("metrics"), str(error), "correct it, or use [] for no figures")


TRAINING = rules_in(globals())
