"""Checks of the objects that the pods refer to and the release does not make, such as secrets and networks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from chartgen.kube import CONFIG_MAP, SECRET, Kind
from chartgen.kube.pods import Pods
from chartgen.kube.references import OF_PODS, references
from chartgen.releases.preflight.context import Diagnosis, PreflightContext, failed, passed
from chartgen.releases.preflight.kueue import newest_kind
from chartgen.releases.preflight.setup_hint import setup_step

_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
_PRIORITY = Kind("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", namespaced=False)
_RUNTIME = Kind("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", namespaced=False)
_WORKLOAD_PRIORITY = "kueue.x-k8s.io/priority-class"  # on the run (Kueue, pkg/controller/constants)
_NETWORK = Kind("networking.gke.io/v1", "Network", "networks", namespaced=False)
_PARAMETERS = Kind("networking.gke.io/v1", "GKENetworkParamSet", "gkenetworkparamsets", namespaced=False)
# GKE, "Set up multi-network support for Pods": interfaces of a pod, and the network without an object.
_INTERFACES, _POD_NETWORK = "networking.gke.io/interfaces", "default"


def secrets(context: PreflightContext) -> Iterator[Diagnosis]:
    """The secrets that the pods read exist, with the required keys."""
    for name, keys in sorted(_needed(context, "Secret").items()):
        found = context.get(SECRET, name)
        place = f"kubectl --namespace {context.namespace}"
        if found is None:
            make = "".join(f" --from-literal={key}=..." for key in sorted(keys)) or " --from-literal=KEY=..."
            text = f"no secret {name} in namespace {context.namespace}"
            yield failed(text, f"{place} create secret generic {name}{make}")
        elif missing := sorted(keys - set(found.get("data", {}))):
            yield failed(f"secret {name} has no key {', '.join(missing)}", f"{place} edit secret {name}")
        else:
            yield passed(f"secret {name} exists")


def pull_secrets(context: PreflightContext) -> Iterator[Diagnosis]:
    """Secrets for pulling images exist."""
    names = {secret["name"] for pods in context.pods for secret in pods.spec.get("imagePullSecrets", ())}
    make = "create secret docker-registry {} --docker-server=... --docker-username=... --docker-password=..."
    yield from _existing(context, SECRET, "image pull secret", names, make)


def config_maps(context: PreflightContext) -> Iterator[Diagnosis]:
    """ConfigMaps that the pods read and the release does not make exist."""
    make = "create configmap {} --from-file=..."
    yield from _existing(context, CONFIG_MAP, "ConfigMap", _needed(context, "ConfigMap"), make)


def service_account(context: PreflightContext) -> Iterator[Diagnosis]:
    """The service account of the pods exists; without it pods cannot be created."""
    names = _needed(context, "ServiceAccount")
    yield from _existing(context, _ACCOUNT, "service account", names, "create serviceaccount {}")


def runtime_classes(context: PreflightContext) -> Iterator[Diagnosis]:
    """The runtime classes of the pods exist; without them pods cannot be created."""
    names = {pods.spec["runtimeClassName"] for pods in context.pods if pods.spec.get("runtimeClassName")}
    fix = "install the operator that creates it, such as NVIDIA's GPU Operator"
    yield from _existing(context, _RUNTIME, "RuntimeClass", names, fix)


def priority_classes(context: PreflightContext) -> Iterator[Diagnosis]:
    """The priority classes of the pods, and of the run in its queue, exist."""
    fix = "ask the platform team for a {}, or leave it out"
    if context.run and (name := context.run["metadata"].get("labels", {}).get(_WORKLOAD_PRIORITY)):
        kind = newest_kind(context.cluster, "WorkloadPriorityClass")
        yield from _existing(context, kind, kind.name, [name], fix.format(kind.name))
    names = {pods.spec["priorityClassName"] for pods in context.pods if "priorityClassName" in pods.spec}
    yield from _existing(context, _PRIORITY, _PRIORITY.name, names, fix.format(_PRIORITY.name))


def _existing(context: PreflightContext, kind: Kind, title: str, names: Iterable[str], fix: str) -> Iterator[Diagnosis]:
    """Check that objects exist; `fix` is what to do, or for a namespaced kind kubectl's arguments to create {}."""
    where, kubectl = "", ""
    if kind.namespaced:
        where, kubectl = f" in namespace {context.namespace}", f"kubectl --namespace {context.namespace} "
    for name in sorted(names):
        if context.get(kind, name) is None:
            yield failed(f"no {title} {name}{where}", kubectl + fix.format(name))
        else:
            yield passed(f"{title} {name} exists")


def networks(context: PreflightContext) -> Iterator[Diagnosis]:
    """GKE's network objects for the pods' further interfaces exist, with their parameters."""
    names = {name for pods in context.pods for name in _networks(pods)}
    if not names:
        return
    found = {item["metadata"]["name"]: item for item in context.find(_NETWORK)}
    sets = {item["metadata"]["name"] for item in context.find(_PARAMETERS)}
    wanted = {name: found[name]["spec"]["parametersRef"]["name"] for name in sorted(names & set(found))}
    empty = sorted(name for name, parameters in wanted.items() if parameters not in sets)
    if missing := sorted(names - set(found)):
        text = f"no network {', '.join(missing)}"
        yield failed(text, f"{setup_step(context)} with setup.networks, or set network.hostNetwork=true")
    if empty:
        yield failed(
            f"network {', '.join(empty)} has no GKENetworkParamSet", f"{setup_step(context)} with setup.networks"
        )
    if not missing and not empty:
        yield passed(f"{len(names)} networks exist")


def _needed(context: PreflightContext, kind: str) -> dict[str, set[str]]:
    """Return the objects of a kind that the pods need and the release does not make, each with the needed keys."""
    found: dict[str, set[str]] = {}
    for each in (reference for pods in context.pods for reference in references(pods.spec, OF_PODS)):
        if each.kind == kind and not each.optional and not context.makes(kind, each.name):
            found.setdefault(each.name, set()).update(key for _, key in each.keys)
    return found


def _networks(pods: Pods) -> set[str]:
    interfaces = json.loads(pods.annotations.get(_INTERFACES, "[]"))
    return {interface["network"] for interface in interfaces} - {_POD_NETWORK}
