"""Default behaviour of newer Kueue versions; the values do not state the version of a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.checks.claim import KeyProblem
from chartgen.checks.compatibility import fragments, uses
from chartgen.checks.job import Job
from chartgen.data.compatibility import lock
from chartgen.findings import Rule

_CLAIMS = "resourceClaims.yaml"


def kueue_integration(job: Job) -> Iterator[KeyProblem]:
    """Kueue queues only the kinds in its configuration, and newer versions list fewer of them by default."""
    for row in lock()["integrations"]:
        if _queued(job) and row["workload"] == job.kind:
            message = f"{row['of']} {row['from']} and newer do not queue a {row['kind']} by default"
            yield KeyProblem("queue.name", message, _step(f"integrations.frameworks lists {row['framework']}"))


def kueue_device_classes(job: Job) -> Iterator[KeyProblem]:
    """Kueue does not admit a run that claims devices of a class which its configuration does not map to a resource."""
    claiming = [each for each in job.target.fragments if (each.path / _CLAIMS).is_file() and uses(job, each.name)]
    for row in lock()["deviceClasses"]:
        if _queued(job) and claiming and not _counts_more(job):
            names = ", ".join(fragment.name for fragment in claiming)
            message = (
                f"{row['of']} {row['from']} and newer admit no run with device claims ({names}) that are not mapped"
            )
            step = _step("resources.deviceClassMappings maps their device classes")
            yield KeyProblem("queue.name", message, f"{step}; add the mapped resources to setup.quota.resources")


def _counts_more(job: Job) -> bool:
    """Report whether the quota has more resources for the job's machine type; a map is that of another type."""
    resources = job.values["setup"]["quota"]["resources"]
    return any(name == job.machine.name or not isinstance(given, dict) for name, given in resources.items())


def _queued(job: Job) -> bool:
    return "kueue" in fragments(job) and bool(job.values["queue"]["name"])


def _step(what: str) -> str:
    return f"check that {what} in Kueue's ConfigMap kueue-manager-config (chartgen doctor looks it up)"


_RUNS = ("train", "test")
KUEUE = (
    Rule.of(
        kueue_integration,
        "kubernetes-sigs/kueue v0.19.2, config/components/manager/controller_manager_config.yaml",
        "warning",
        tasks=_RUNS,
        remedy=("`queue.name`: check that … in Kueue's ConfigMap kueue-manager-config (chartgen doctor looks it up)"),
    ),
    Rule.of(
        kueue_device_classes,
        "kubernetes-sigs/kueue v0.19.2, pkg/dra/claims.go",
        "warning",
        tasks=_RUNS,
        remedy="`queue.name`: …; add the mapped resources to setup.quota.resources",
    ),
)
