"""Checks of the versions of Helm and Kubernetes that this chart and its machines require."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chartgen.checks import job_of
from chartgen.checks.compatibility import outdated_cluster
from chartgen.data.compatibility import version
from chartgen.errors import MissingToolError
from chartgen.helm.program import find_helm
from chartgen.helm.yaml import load, require_map
from chartgen.releases.preflight.context import Diagnosis, PreflightContext, failed, passed
from chartgen.releases.preflight.controllers import kueue_version

_AT_LEAST = re.compile(r">=\s*v?([0-9.]+)")


def helm_version(_: PreflightContext) -> Iterator[Diagnosis]:
    """Helm is installed and new enough."""
    try:
        helm = find_helm()
    except MissingToolError as error:
        yield failed(str(error), "chartgen engines get helm")
    else:
        yield passed(f"Helm {'.'.join(map(str, helm.version))} at {helm.executable}")


def kubernetes_version(context: PreflightContext) -> Iterator[Diagnosis]:
    """Kubernetes has at least the version that the chart requires."""
    found = context.cluster.version
    floor = _floor(context)
    if floor and version(found) < version(floor):
        text = f"Kubernetes {found}, {context.chart.name if context.chart else ''} needs {floor} or newer"
        yield failed(text, f"upgrade the cluster to {floor} or newer, or choose another with --context")
    else:
        yield passed(f"Kubernetes {found}" + (f", {floor} or newer is needed" if floor else ""))


def machine_versions(context: PreflightContext) -> Iterator[Diagnosis]:
    """Kubernetes and Kueue have at least the versions that the machine type and the setup chart's dialect require."""
    job = job_of(context.chart, context.values) if context.chart and context.values else None
    if job:
        kueue = kueue_version(context) if context.queue else ""
        for claim in outdated_cluster(job, context.cluster.version, kueue):
            yield failed(f"{claim.key}: {claim.message}", claim.hint)


def _floor(context: PreflightContext) -> str:
    """Return the lowest Kubernetes version of the chart; all charts of chartgen use `>=`."""
    head = context.chart.files["Chart.yaml"] if context.chart else "{}"
    match = _AT_LEAST.search(str(require_map(load(head, "Chart.yaml"), "Chart.yaml").get("kubeVersion", "")))
    return match[1] if match else ""
