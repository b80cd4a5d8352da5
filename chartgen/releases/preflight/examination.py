"""All checks of the doctor, in table order: first the client, then the requirements of a release, then its past."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from chartgen.errors import ChartgenError, Problem
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values
from chartgen.kube import Cluster, ClusterError, Object, side_by_side
from chartgen.releases.preflight import (
    controllers,
    leftovers,
    nodes,
    permissions,
    queues,
    references,
    security,
    storage,
    versions,
)
from chartgen.releases.preflight.context import Diagnosis, PreflightContext, warned

Check: TypeAlias = "Callable[[PreflightContext], Iterator[Diagnosis]]"

# The id of a check is its name with dashes.
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
    queues.queue_device_classes,
    queues.volcano_queue,
    nodes.machines,
    nodes.machine_taints,
    nodes.machine_capacity,
    nodes.machines_free,
    storage.claims,
    storage.storage_drivers,
    references.secrets,
    references.pull_secrets,
    references.config_maps,
    references.service_account,
    references.priority_classes,
    references.runtime_classes,
    references.networks,
    security.pod_security,
    security.pod_admission,
    security.namespace_quota,
    storage.outputs_of_others,
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
    """Check whether a cluster meets all requirements of a release; nothing is changed.

    Args:
        values: The user's layers, validated against the chart.
        objects: The manifests of the chart with these values.

    Returns:
        The results of all applicable checks; a missing read permission is a warning.

    Raises:
        MissingToolError: The cluster does not answer.
    """
    return _examine(RELEASE, PreflightContext(cluster, chart, values, objects, release, namespace))


def examine_cluster(cluster: Cluster, namespace: str = "") -> list[Diagnosis]:
    """Run the checks of a cluster that need no chart; raise MissingToolError if it does not answer."""
    return _examine(CLUSTER, PreflightContext(cluster, None, None, [], "", namespace or cluster.namespace))


def _examine(checks: tuple[Check, ...], context: PreflightContext) -> list[Diagnosis]:
    rows = side_by_side(partial(_run, check, context.of_check()) for check in checks)
    reported: dict[Problem, None] = {}
    found: list[Diagnosis] = []
    for check, (diagnoses, gaps) in zip(checks, rows, strict=True):
        fresh = [warned(f"not checked: {gap.message}", gap.hint) for gap in gaps if gap not in reported]
        found += [replace(each, name=check.__name__.replace("_", "-")) for each in (*diagnoses, *fresh)]
        reported |= dict.fromkeys(gaps)
    return found


def _run(check: Check, context: PreflightContext) -> tuple[list[Diagnosis], list[Problem]]:
    """Run a check; return what it found, and what it could not read of what it asked for."""
    return [*_found(check, context)], context.cluster.gaps


def _found(check: Check, context: PreflightContext) -> Iterator[Diagnosis]:
    try:
        yield from check(context)
    except ClusterError as error:
        if error.denied is None:
            raise
        fix = f"{error.denied.fix}; or run chartgen doctor as an account that may"
        yield warned(f"not checked: {error.denied.missing.message}", fix)
    except ChartgenError:
        raise
    # an object of the cluster that someone has written must not end the other checks; this one is reported
    except Exception as error:  # noqa: BLE001
        text = f"not checked: an object of the cluster has another form than its kind ({type(error).__name__})"
        yield warned(text, "inspect the objects that this check reads with `kubectl get -o yaml`")
