"""All checks of the doctor, in the order of a table: the client first, then what a release needs, then its past."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from chartgen.helm.chart import Chart
from chartgen.helm.values import Values
from chartgen.kube import Cluster, ClusterError, Object
from chartgen.releases.preflight import (
    claims,
    controllers,
    device_classes,
    leftovers,
    nodes,
    permissions,
    queues,
    references,
    security,
    sharing,
    versions,
    volcano,
)
from chartgen.releases.preflight.context import PreflightContext, denied
from chartgen.releases.preflight.result import Diagnosis, Sign

Check: TypeAlias = "Callable[[PreflightContext], Iterator[Sign]]"

# A check's name with dashes is its id.
RELEASE: tuple[Check, ...] = (
    versions.helm_version,
    versions.kubernetes_version,
    versions.machine_versions,
    security.namespace,
    permissions.permissions,
    controllers.api_versions,
    controllers.controllers,
    controllers.admission,
    controllers.queue_integration,
    queues.queue,
    queues.queue_quota,
    queues.queue_tolerations,
    queues.queue_topology,
    device_classes.queue_device_classes,
    volcano.volcano_queue,
    nodes.machines,
    nodes.machine_taints,
    nodes.machine_capacity,
    nodes.machines_free,
    claims.claims,
    references.secrets,
    references.pull_secrets,
    references.config_maps,
    references.service_account,
    references.priority_classes,
    references.networks,
    security.pod_security,
    security.pod_admission,
    security.namespace_quota,
    sharing.outputs_of_others,
    leftovers.orphans,
    leftovers.stuck_release,
)
CLUSTER: tuple[Check, ...] = (
    versions.helm_version,
    versions.kubernetes_version,
    permissions.permissions,
    controllers.controllers,
    nodes.gpu_machines,
)


def examine(
    cluster: Cluster, chart: Chart, values: Values, objects: list[Object], release: str, namespace: str
) -> list[Diagnosis]:
    """Look up in a cluster whether it has all that a release needs; nothing is changed.

    Args:
        cluster: The cluster.
        chart: The release's chart.
        values: The user's layers, which fit the chart.
        objects: The manifests, as the chart renders them with these values.
        release: The release's name.
        namespace: Its namespace.

    Returns:
        What each check that concerns these objects found. What the caller may not read is a warning.

    Raises:
        MissingToolError: The cluster does not answer.
    """
    return _examine(RELEASE, PreflightContext(cluster, chart, values, objects, release, namespace))


def examine_cluster(cluster: Cluster, namespace: str = "") -> list[Diagnosis]:
    """Look up what can be said of a cluster without a chart.

    Args:
        cluster: The cluster.
        namespace: Where releases would live; default the context's.

    Raises:
        MissingToolError: The cluster does not answer.
    """
    return _examine(CLUSTER, PreflightContext(cluster, None, None, [], "", namespace or cluster.namespace))


def _examine(checks: tuple[Check, ...], context: PreflightContext) -> list[Diagnosis]:
    return [
        Diagnosis(_id(check), sign.status, sign.text, sign.fix) for check in checks for sign in _run(check, context)
    ]


def _run(check: Check, context: PreflightContext) -> Iterator[Sign]:
    """Run a check; what the caller may not read is said, not raised."""
    try:
        yield from check(context)
    except ClusterError as error:
        what = denied(error)
        if not what:
            raise
        verb, _, resource = what.partition(" ")
        fix = f"ask for it (kubectl auth can-i {verb} {resource}), or let somebody who may run chartgen doctor"
        yield Sign("warn", f"not checked: no permission to {what}", fix)


def _id(check: Check) -> str:
    return check.__name__.replace("_", "-")
