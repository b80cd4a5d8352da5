"""What newer versions of Kueue do to a run by themselves; values do not know which version a cluster has."""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.checks.claim import Check, Claim
from chartgen.checks.compatibility import fragments, uses
from chartgen.checks.job import Job
from chartgen.data.compatibility import lock

_CLAIMS = "resourceClaims.yaml"


def kueue_integration(job: Job) -> Iterator[Claim]:
    """Kueue holds back only the kinds that its configuration lists, and newer versions list fewer by themselves."""
    for row in lock()["integrations"]:
        if _queued(job) and row["workload"] == job.kind:
            message = (
                f"{row['of']} {row['from']} and newer let a {row['kind']} pass the queue by, if not told otherwise"
            )
            yield Claim("queue.name", message, _step(f"integrations.frameworks lists {row['framework']}"))


def kueue_device_classes(job: Job) -> Iterator[Claim]:
    """Kueue admits no run that claims devices of a class which its configuration does not map to a resource."""
    claiming = [each for each in job.target.fragments if (each.path / _CLAIMS).is_file() and uses(job, each.name)]
    for row in lock()["deviceClasses"]:
        if _queued(job) and claiming:
            names = ", ".join(each.name for each in claiming)
            message = (
                f"{row['of']} {row['from']} and newer admit no run with device claims ({names}) that are not mapped"
            )
            step = _step("resources.deviceClassMappings maps their device classes")
            yield Claim("queue.name", message, f"{step}; add what they are mapped to as setup.quota.resources")


def _queued(job: Job) -> bool:
    return "kueue" in fragments(job) and bool(job.values["queue"]["name"])


def _step(what: str) -> str:
    return f"see that {what} in Kueue's ConfigMap kueue-manager-config (chartgen doctor looks it up)"


_RUNS = ("train", "test")
KUEUE = (
    Check(
        kueue_integration,
        "kubernetes-sigs/kueue v0.19.2, config/components/manager/controller_manager_config.yaml",
        "warning",
        _RUNS,
    ),
    Check(kueue_device_classes, "kubernetes-sigs/kueue v0.19.2, pkg/dra/claims.go", "warning", _RUNS),
)
