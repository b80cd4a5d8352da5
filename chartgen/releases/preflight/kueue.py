"""The Kueue objects of a run's queue, in the API version that the cluster serves."""

from __future__ import annotations

from typing import Any

from chartgen.data.compatibility import lock
from chartgen.errors import ChartgenError
from chartgen.helm.yaml import load, require_map
from chartgen.kube import CONFIG_MAP, Cluster, Kind, Object
from chartgen.releases.preflight.context import PreflightContext, read_if_allowed

NAMESPACE = "kueue-system"
# Location of Kueue's own configuration with its installers (kubernetes-sigs/kueue v0.19.2, config/components/manager).
CONFIGURATION = "kueue-manager-config"
_FILE = "controller_manager_config.yaml"
# Without a list, Kueue manages only this kind (the same repository, apis/config/v1beta2/defaults.go).
_FRAMEWORKS = ["batch/job"]

_KINDS = {
    "LocalQueue": ("localqueues", True),
    "ClusterQueue": ("clusterqueues", False),
    "ResourceFlavor": ("resourceflavors", False),
    "Topology": ("topologies", False),
    "WorkloadPriorityClass": ("workloadpriorityclasses", False),
}


def newest_kind(cluster: Cluster, name: str) -> Kind:
    """Return a kind of Kueue in the newest version that a cluster serves; if none, in the newest version."""
    plural, namespaced = _KINDS[name]
    versions = [row["api"] for row in reversed(lock()["apis"]) if row["of"] == "Kueue"]
    kinds = [Kind(version, name, plural, namespaced=namespaced) for version in versions]
    return next((kind for kind in kinds if cluster.serves(kind)), kinds[0])


def local_queue(context: PreflightContext) -> Object | None:
    """Return the LocalQueue of the run."""
    return context.get(newest_kind(context.cluster, "LocalQueue"), context.queue) if context.queue else None


def cluster_queue(context: PreflightContext) -> Object | None:
    """Return the run's ClusterQueue; without a LocalQueue the one of the same name, which setup charts make."""
    if not context.queue:
        return None
    local = local_queue(context)
    return context.get(
        newest_kind(context.cluster, "ClusterQueue"), local["spec"]["clusterQueue"] if local else context.queue
    )


def resource_groups(context: PreflightContext) -> list[dict[str, Any]]:
    """Return the resource groups of the ClusterQueue; empty when it does not exist."""
    found: list[dict[str, Any]] = (cluster_queue(context) or {"spec": {}})["spec"].get("resourceGroups", [])
    return found


def flavors_of(context: PreflightContext) -> list[Object]:
    """Return the ResourceFlavors of the ClusterQueue whose machines the run's GPU pods may use."""
    names = dict.fromkeys(flavor["name"] for group in resource_groups(context) for flavor in group["flavors"])
    kind = newest_kind(context.cluster, "ResourceFlavor")
    found = [flavor for name in names if (flavor := context.get(kind, name))]
    return [flavor for flavor in found if all(_may_use(pods.spec, flavor) for pods in context.pods)]


def kueue_config(context: PreflightContext) -> dict[str, Any] | None:
    """Return Kueue's own configuration; None when it is not readable or not in the usual location."""

    def read() -> Object | None:
        return read_if_allowed(lambda: context.cluster.get(CONFIG_MAP, CONFIGURATION, NAMESPACE))

    text = ((context.once(CONFIGURATION, read) or {}).get("data") or {}).get(_FILE, "")
    try:
        return dict(require_map(load(text, _FILE), "Kueue's configuration")) or None
    except ChartgenError:
        return None


def frameworks(found: dict[str, Any]) -> list[str]:
    """Return the kinds that Kueue manages with a configuration, such as kubeflow.org/pytorchjob."""
    return list((found.get("integrations") or {}).get("frameworks") or _FRAMEWORKS)


def mapped_classes(found: dict[str, Any]) -> dict[str, str]:
    """Return the device classes that a configuration of Kueue maps, each with its resource."""
    rows = (found.get("resources") or {}).get("deviceClassMappings") or []
    return {name: str(row.get("name")) for row in rows for name in row.get("deviceClassNames") or ()}


def change_of_configuration(what: str) -> str:
    """Return the step that changes Kueue's configuration."""
    return f"{what} in ConfigMap {CONFIGURATION} of {NAMESPACE}, and restart Kueue"


def look_at_configuration() -> str:
    """Return the command that shows Kueue's configuration."""
    return f"kubectl --namespace {NAMESPACE} get configmap {CONFIGURATION} --output yaml"


def _may_use(spec: dict[str, Any], flavor: Object) -> bool:
    """Report whether a pod's selector allows a flavor's machines; only the flavor's labels count."""
    labels = flavor["spec"].get("nodeLabels", {})
    own = spec.get("nodeSelector") or {}
    return all(own.get(key, value) == value for key, value in labels.items())
