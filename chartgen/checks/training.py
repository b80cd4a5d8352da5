"""What makes no sense as a training run, although every machine would start it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import PurePosixPath

from chartgen.checks.claim import KeyProblem
from chartgen.checks.job import Job
from chartgen.checks.line_patterns import compile_lines
from chartgen.checks.machine import quantity
from chartgen.checks.memory import model_parameters
from chartgen.findings import Rule

# Bytes of a checkpoint for each parameter: weights, and the optimizer's FP32 copy and two moments.
_SAVED_BYTES = 14
# Write rate of one machine to shared storage; few file systems are faster, so the time is a lower bound.
_WRITTEN_GIGABYTES = 5


def grace_for_a_checkpoint(job: Job) -> Iterator[KeyProblem]:
    """A stopped run saves once more, but Kubernetes kills it if its grace period ends first."""
    grace, size = int(job.values["run"]["gracePeriodSeconds"]), model_parameters(job) * _SAVED_BYTES / 1e9
    needed = size / _WRITTEN_GIGABYTES / job.nodes
    if job.world % job.model_parallel or not job.values["checkpoint"]["enabled"]:
        return
    if job.launcher.processes == "ray":  # whose programs end at once
        return
    if grace < needed:
        message = (
            f"{grace} s is less than the {needed:.0f} s that a checkpoint of {size / 1000:.1f} TB takes if each of "
            f"{job.nodes} machines writes {_WRITTEN_GIGABYTES} GB/s (assumed)"
        )
        yield KeyProblem(
            "run.gracePeriodSeconds", message, f"use {int(needed * 2) + 60} or more", ("checkpoint.interval", "nodes")
        )


GRACE = (
    Rule.of(
        grace_for_a_checkpoint,
        "NVIDIA/Megatron-LM core_v0.19.0, docs/user-guide/features/dist_optimizer.md",
        "warning",
        remedy="`run.gracePeriodSeconds`: use … or more",
    ),
)


def room_for_staged_data(job: Job) -> Iterator[KeyProblem]:
    """Data sets that are copied to memory:// share the machine's memory, or the container's limit, with /dev/shm."""
    if not job.values["data"]["stage"] or job.values["storage"]["scratch"]["from"] != "memory://":
        return
    limits = (job.values["launchers"][job.launcher.name].get("resources") or {}).get("limits") or {}
    memory = limits.get("memory") or job.machine.capacity.get("memory", "")
    shared, room = quantity(job.values.get("sharedMemory", "0")) or Fraction(0), quantity(memory)
    if room is not None and room <= shared:
        message = f"memory:// has no room for the copy: sharedMemory may take all of {memory}"
        hint = "use disk:// where machines have local disks, less sharedMemory, or data.stage false"
        yield KeyProblem("storage.scratch.from", message, hint, ("sharedMemory", "data.stage"))


def data_outlives_its_program(job: Job) -> Iterator[KeyProblem]:
    """What another program puts into memory:// is gone when training starts: its data sets must be in real storage."""
    data, store = job.values["data"], PurePosixPath("/data")
    mounted = (PurePosixPath(mount["mountPath"]) for mount in job.values["extraVolumeMounts"])
    prefixes = [prefix["path"] if isinstance(prefix, dict) else prefix for prefix in data["prefixes"]]
    read = [PurePosixPath(data["directory"], each) for each in [*prefixes, *filter(None, [data["name"]])]]
    inside = any(each.is_relative_to(store) for each in read) and not any(
        each.is_relative_to(store) for each in mounted
    )
    if inside and job.values["storage"]["data"]["from"] == "memory://":
        yield KeyProblem(
            "storage.data.from", "memory:// is empty when the run starts", "use storage such as pvc://", ("data",)
        )


def expressions_for_the_log(job: Job) -> Iterator[KeyProblem]:
    """Expressions that read steps from a log have known groups, and never look back at what they have read."""
    try:
        if texts := job.own.get("metrics"):
            compile_lines(texts)
    except ValueError as error:
        yield KeyProblem(f"launchers.{job.launcher.name}.metrics", str(error), "correct it, or use [] for no figures")


TRAINING = (
    *GRACE,
    Rule.of(room_for_staged_data, "Kubernetes API, core/v1 EmptyDirVolumeSource"),
    Rule.of(
        data_outlives_its_program,
        "Kubernetes API, core/v1 EmptyDirVolumeSource",
        remedy="`storage.data.from`: use storage such as pvc://",
    ),
    Rule.of(expressions_for_the_log, "chartgen/checks/line_patterns.py"),
)
