"""The time for a run to save its state when it is stopped."""

from __future__ import annotations

import math
from collections.abc import Iterator

from chartgen.checks.claim import Claim
from chartgen.checks.job import Job
from chartgen.checks.memory import model_parameters
from chartgen.findings import Rule

# Bytes of a checkpoint for each parameter: weights, and the optimizer's FP32 copy and two moments.
_SAVED_BYTES = 14
# From torchrun's SIGTERM to its SIGKILL (pytorch/pytorch v2.11.0, torch/distributed/elastic/multiprocessing/api.py).
_TORCHRUN_SECONDS = 30
# run.gracePeriodSeconds of every chart by default.
_GRACE = 120
# Write rate of one machine to shared storage; few file systems are faster, so the time is a lower bound.
_WRITTEN_GIGABYTES = 5


def grace_for_a_checkpoint(job: Job) -> Iterator[Claim]:
    """A stopped run saves once more, but Kubernetes kills it if its grace period ends first.

    torchrun kills its processes 30 s after the signal, so a longer grace period has no effect with it.
    """
    grace, size = int(job.values["run"]["gracePeriodSeconds"]), model_parameters(job) * _SAVED_BYTES / 1e9
    needed = size / _WRITTEN_GIGABYTES / job.nodes
    cut = _is_cut(job, needed)
    if job.world % job.model_parallel or not job.values["checkpoint"]["enabled"]:
        return
    if job.launcher.processes == "ray":  # whose programs end at once
        return
    # a user who raises the grace period relies on it
    if grace < needed or (cut and grace > _GRACE):
        limit = f"{grace} s, of which torchrun leaves {_TORCHRUN_SECONDS}," if cut else f"{grace} s"
        message = (
            f"{limit} is less than the {needed:.0f} s that a checkpoint of {size / 1000:.1f} TB takes if each of "
            f"{job.nodes} machines writes {_WRITTEN_GIGABYTES} GB/s (assumed)"
        )
        yield Claim("run.gracePeriodSeconds", message, _in_time(job, needed), ("checkpoint.interval", "nodes"))


def _in_time(job: Job, needed: float) -> str:
    if _is_cut(job, needed):
        machines = math.ceil(needed * job.nodes / _TORCHRUN_SECONDS)
        return f"use {machines} machines or more, or save often enough to lose little"
    return f"use {int(needed * 2) + 60} or more"


def _is_cut(job: Job, needed: float) -> bool:
    """Report whether torchrun ends the processes before they have saved; mpirun does not."""
    return not job.by_mpirun and needed > _TORCHRUN_SECONDS


GRACE = (
    Rule.of(
        grace_for_a_checkpoint,
        "NVIDIA/Megatron-LM core_v0.19.0, docs/user-guide/features/dist_optimizer.md",
        "warning",
        remedy=(
            "`run.gracePeriodSeconds`: use … or more or use … machines or more, or save often enough to lose little"
        ),
    ),
)
