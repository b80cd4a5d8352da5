"""Versions: Helm, Kubernetes, and what both must be for this chart and its machines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chartgen.checks import job_of
from chartgen.checks.compatibility import outdated_cluster
from chartgen.data.compatibility import version
from chartgen.errors import MissingToolError
from chartgen.helm.program import find_helm
from chartgen.helm.yaml import load, require_map
from chartgen.releases.preflight.context import Patient
from chartgen.releases.preflight.controllers import kueue_version
from chartgen.releases.preflight.result import Sign, failed, passed

_AT_LEAST = re.compile(r">=\s*v?([0-9.]+)")


def helm_version(_: Patient) -> Iterator[Sign]:
    """Helm is there, and new enough."""
    try:
        helm = find_helm()
    except MissingToolError as error:
        yield failed(str(error), "chartgen engines build helm")
    else:
        yield passed(f"Helm {'.'.join(map(str, helm.version))} at {helm.executable}")


def kubernetes_version(patient: Patient) -> Iterator[Sign]:
    """Kubernetes is as new as the chart asks for."""
    found = patient.cluster.version
    floor = _floor(patient)
    if floor and version(found) < version(floor):
        text = f"Kubernetes {found}, {patient.chart.name if patient.chart else ''} needs {floor} or newer"
        yield failed(text, f"upgrade the cluster to {floor} or newer, or choose another with --context")
    else:
        yield passed(f"Kubernetes {found}" + (f", {floor} or newer is needed" if floor else ""))


def machine_versions(patient: Patient) -> Iterator[Sign]:
    """Kubernetes and Kueue are as new as the machine type and the setup chart's dialect need."""
    job = job_of(patient.chart, patient.values) if patient.chart and patient.values else None
    if job:
        kueue = kueue_version(patient) if patient.queue else ""
        for claim in outdated_cluster(job, patient.cluster.version, kueue):
            yield failed(f"{claim.key}: {claim.message}", claim.hint)


def _floor(patient: Patient) -> str:
    """Return the lowest Kubernetes version of the chart; all of chartgen's say `>=`."""
    head = patient.chart.files["Chart.yaml"] if patient.chart else "{}"
    match = _AT_LEAST.search(str(require_map(load(head, "Chart.yaml"), "Chart.yaml").get("kubeVersion", "")))
    return match[1] if match else ""
