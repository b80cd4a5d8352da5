"""The time for a run to save its state when it is stopped."""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.checks.claim import KeyProblem
from chartgen.checks.job import Job
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
