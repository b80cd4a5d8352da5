"""Default behaviour of newer Kueue versions; the values do not state the version of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.checks.compatibility import uses
from chartgen.checks.job import RUNS, Job
from chartgen.composer.pod_files import slot_text
from chartgen.data.compatibility import lock
from chartgen.findings import KeyProblem, rule, rules_in

_CLAIMS = "resourceClaims.yaml"


@rule(
    "kubernetes-sigs/kueue v0.19.2, config/components/manager/controller_manager_config.yaml",
    "warning",
    tasks=RUNS,
    remedy="`queue.name`: check that … in Kueue's ConfigMap kueue-manager-config (chartgen doctor looks it up)",
)
def kueue_integration(job: Job) -> Iterator[KeyProblem]:
    """Kueue queues only the kinds in its configuration, and newer versions list fewer of them by default."""
    for row in lock()["integrations"]:
        if _queued(job) and row["workload"] == job.kind:
            message = f"{row['of']} {row['from']} and newer do not queue a {row['kind']} by default"
            yield KeyProblem("queue.name", message, _step(f"integrations.frameworks lists {row['framework']}"))


@rule(
    "kubernetes-sigs/kueue v0.19.2, pkg/dra/claims.go",
    "warning",
    tasks=RUNS,
    remedy="`queue.name`: …; add the mapped resources to setup.quota.resources",
)
def kueue_device_classes(job: Job) -> Iterator[KeyProblem]:
    """Kueue does not admit a run that claims devices of a class which its configuration does not map to a resource."""
    claiming = [each for each in job.target.fragments if slot_text(each.path, _CLAIMS)[1] and uses(job, each.name)]
    for row in lock()["deviceClasses"]:
        if _queued(job) and claiming and not _counts_more(job):
            names = ", ".join(fragment.name for fragment in claiming)
            message = (
                f"{row['of']} {row['from']} and newer admit no run with device claims ({names}) that are not mapped"
            )
            step = _step("resources.deviceClassMappings maps their device classes")
            yield KeyProblem("queue.name", message, f"{step}; add the mapped resources to setup.quota.resources")


@rule(
    "kubernetes-sigs/kueue v0.19.2, pkg/scheduler/preemption",
    "warning",
    remedy="`checkpoint.enabled`: use true, or change preemption.…",
)
def evicted_runs_save(job: Job) -> Iterator[KeyProblem]:
    """A run that saves nothing loses all its steps when a waiting run of no higher priority evicts it."""
    if _queued(job) and "checkpoint.enabled" in job.launcher.owns and not job.values["checkpoint"]["enabled"]:
        for who, key in _evicting(job.values["setup"], job.values["queue"]["name"]):
            message = f"false, and {who} may evict the run, which then starts from the first step"
            yield KeyProblem("checkpoint.enabled", message, f"use true, or change {key}", ("queue.name",))


def _evicting(setup: dict[str, Any], name: str) -> Iterator[tuple[str, str]]:
    """Yield which runs of no higher priority evict those of a queue, each with the value that permits it.

    A queue evicts runs that borrow, so one that borrows nothing has none of them.
    """
    queue = setup.get("queues", {}).get(name, {})
    preemption = setup.get("preemption", {}) | queue.get("preemption", {})
    if preemption.get("withinClusterQueue") == "LowerOrNewerEqualPriority":
        yield "an older run of the same priority", "preemption.withinClusterQueue"
    if queue.get("cohort") and queue.get("borrowing") != 0 and preemption.get("reclaimWithinCohort") == "Any":
        yield f"cohort {queue['cohort']}, where the queue borrows,", "preemption.reclaimWithinCohort"


def _counts_more(job: Job) -> bool:
    """Report whether the quota has more resources for the job's machine type; a map is that of another type."""
    resources = job.values["setup"]["quota"]["resources"]
    return any(name == job.machine.name or not isinstance(given, dict) for name, given in resources.items())


def _queued(job: Job) -> bool:
    return "kueue" in job.fragments and bool(job.values["queue"]["name"])


def _step(what: str) -> str:
    return f"check that {what} in Kueue's ConfigMap kueue-manager-config (chartgen doctor looks it up)"


KUEUE = rules_in(globals())
