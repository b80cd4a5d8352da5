"""What makes no sense as a training run, although every machine would start it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import PurePosixPath

from chartgen.checks.checkpoint_time import GRACE
from chartgen.checks.claim import KeyProblem
from chartgen.checks.job import Job
from chartgen.checks.line_patterns import compile_lines
from chartgen.checks.machine import quantity
from chartgen.findings import Rule


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
