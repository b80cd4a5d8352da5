"""Checks of the queue of a run: it exists and admits runs, and its quota or capability suffices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

from chartgen.data.compatibility import lock, within
from chartgen.errors import ChartgenError
from chartgen.kube import NAMESPACE, VOLCANO_QUEUE, Kind, Object, wait_for
from chartgen.kube.quantities import Quantities, add, amount_text, read_quantities, read_quantity
from chartgen.kube.scheduling import is_matched, is_selected, why_unusable
from chartgen.kube.workloads import is_volcano
from chartgen.releases.preflight.context import (
    Diagnosis,
    PreflightContext,
    condition,
    failed,
    passed,
    read_if_allowed,
    warned,
)
from chartgen.releases.preflight.controllers import kueue_version
from chartgen.releases.preflight.kueue import (
    change_of_configuration,
    cluster_queue,
    flavors_of,
    kueue_config,
    local_queue,
    look_at_configuration,
    mapped_classes,
    newest_kind,
    resource_groups,
)
from chartgen.releases.preflight.setup_hint import RELEASE, other_queues, setup_step

_SEEN = 5.0  # seconds
_PODSET = "kueue.x-k8s.io/podset-"
# Requests for a level of the topology, and the request without a level (Kueue, pkg/controller/constants).
_LEVELS = tuple(f"{_PODSET}{mode}-topology" for mode in ("required", "preferred", "slice-required"))
_ANY_LEVEL = f"{_PODSET}unconstrained-topology"


def queue(context: PreflightContext) -> Iterator[Diagnosis]:
    """The queue exists, and admits runs."""
    if not context.queue:
        return
    local = local_queue(context)
    if local is None:
        yield _absent(context)
        return
    name, owner = local["spec"]["clusterQueue"], cluster_queue(context)
    if owner is None:
        yield failed(f"queue {context.queue} leads to ClusterQueue {name}, which does not exist", setup_step(context))
        return
    space = read_if_allowed(lambda: context.get(NAMESPACE, context.namespace))
    if space and not is_matched(space, owner["spec"].get("namespaceSelector")):
        place = f"namespace {context.namespace}"
        text = f"ClusterQueue {name} takes no runs of {place}: its namespaceSelector leaves it out"
        yield failed(text, f"kubectl label {place}; kubectl get clusterqueue {name} -o yaml shows the selector")
        return
    both = ((local, "localqueue"), (owner, "clusterqueue"))
    stopped = [(item, kind) for item, kind in both if item["spec"].get("stopPolicy", "None") != "None"]
    for item, kind in stopped:
        text = f"{kind} {item['metadata']['name']} is stopped ({item['spec']['stopPolicy']})"
        change = '--type merge --patch \'{"spec": {"stopPolicy": "None"}}\''
        place = f"--namespace {context.namespace} " if item is local else ""
        yield failed(text, f"kubectl {place}patch {kind} {item['metadata']['name']} {change}")
    active = condition(owner if stopped else _settled(context, owner), "Active")
    if active.get("status") == "True" and not stopped:
        waiting = owner["status"].get("pendingWorkloads", 0)
        yield passed(f"queue {context.queue} is active, {waiting} runs wait in ClusterQueue {name}")
    elif not stopped:
        reason = active.get("message") or "Kueue has not processed it"
        yield failed(f"ClusterQueue {name} is not active: {reason}", f"kubectl describe clusterqueue {name}")


def _settled(context: PreflightContext, owner: Object) -> Object:
    """Return the ClusterQueue, once Kueue has seen flavors that were made after it, as Helm makes them."""
    names = [flavor["name"] for group in resource_groups(context) for flavor in group["flavors"]]
    kind = newest_kind(context.cluster, "ResourceFlavor")
    if condition(owner, "Active").get("status") == "True" or not all(context.get(kind, name) for name in names):
        return owner

    def active() -> Object | None:
        now = context.cluster.get(newest_kind(context.cluster, "ClusterQueue"), owner["metadata"]["name"]) or owner
        return now if condition(now, "Active").get("status") == "True" else None

    with suppress(ChartgenError):
        return wait_for(active, what="that Kueue sees the flavors", timeout=_SEEN)
    return owner


def queue_quota(context: PreflightContext) -> Iterator[Diagnosis]:
    """The quota covers every resource that the pods request, and suffices for the whole run."""
    owner = cluster_queue(context)
    if owner is None:
        return
    name, requested = owner["metadata"]["name"], add(pods.total for pods in context.pods)
    groups = resource_groups(context)
    covered = {resource for group in groups for resource in group["coveredResources"]}
    for resource in sorted(set(requested) - covered):
        text = f"ClusterQueue {name} does not cover {resource}, which the pods request: the run is never admitted"
        yield failed(text, f"kubectl edit clusterqueue {name}: add {resource} to coveredResources, with a quota")
    usable = {flavor["metadata"]["name"] for flavor in flavors_of(context)}
    for group in groups:
        wanted = {resource: requested[resource] for resource in group["coveredResources"] if resource in requested}
        if wanted:
            yield _quota(context, owner, [flavor for flavor in group["flavors"] if flavor["name"] in usable], wanted)


def queue_tolerations(context: PreflightContext) -> Iterator[Diagnosis]:
    """The pods already have the flavors' tolerations; if Kueue adds them to a run, its next upgrade is a conflict."""
    flavors = flavors_of(context)
    clean = True
    for flavor in flavors:
        for pods in context.pods:
            own = [_normal(toleration) for toleration in pods.spec.get("tolerations", ())]
            added = [each for each in flavor["spec"].get("tolerations", ()) if _normal(each) not in own]
            if added:
                clean = False
                name, shown = flavor["metadata"]["name"], ", ".join(str(each.get("key", "any")) for each in added)
                text = (
                    f"flavor {name} adds a toleration of {shown} to {pods}: upgrades of the running job will conflict"
                )
                yield warned(text, f"write it alike in tolerations and in ResourceFlavor {name}, field by field")
    if flavors and clean:
        yield passed("the pods carry the tolerations of the queue's flavors")


def queue_topology(context: PreflightContext) -> Iterator[Diagnosis]:
    """A run that requests a topology gets a flavor with a topology, and the machines have all labels of its levels."""
    levels_wanted = {key: value for pods in context.pods for key, value in pods.annotations.items() if key in _LEVELS}
    is_wanted = levels_wanted or any(_ANY_LEVEL in pods.annotations for pods in context.pods)
    for flavor in flavors_of(context) if is_wanted else ():
        name, topology = flavor["metadata"]["name"], flavor["spec"].get("topologyName")
        found = context.get(newest_kind(context.cluster, "Topology"), topology) if topology else None
        if found is None:
            text = f"Topology {topology} of flavor {name} does not exist"
            text = text if topology else f"flavor {name} has no topology"
            yield failed(text, f"{setup_step(context)}, or set topology.mode to an empty text")
            continue
        levels = [level["nodeLabel"] for level in found["spec"]["levels"]]
        yield from _levels(context, topology, levels, levels_wanted)


def _levels(context: PreflightContext, topology: str, levels: list[str], wanted: dict[str, str]) -> Iterator[Diagnosis]:
    for level in sorted(set(wanted.values()) - set(levels)):
        yield failed(f"topology {topology} has no level {level}", f"set topology.level to one of {', '.join(levels)}")
    for pods in context.pods:
        nodes = [node for node in context.nodes if is_selected(node, pods.spec) and not why_unusable(node)]
        for level in levels:
            bare = [node["metadata"]["name"] for node in nodes if level not in node["metadata"]["labels"]]
            if bare:
                text = f"{len(bare)} of {len(nodes)} machines lack label {level} of topology {topology}"
                text += f", such as {bare[0]}"
                yield failed(text, f"label them, or leave {level} out of the topology (setup.topologyLevels)")
        if nodes and all(level in node["metadata"]["labels"] for level in levels for node in nodes):
            yield passed(f"{len(nodes)} machines have the {len(levels)} labels of topology {topology}")


def _quota(context: PreflightContext, owner: Object, flavors: list[dict[str, Any]], requested: Quantities) -> Diagnosis:
    """Check the flavors of one resource group; like Kueue, use the first with enough quota for the run."""
    name = owner["metadata"]["name"]
    tables = {flavor["name"]: {item["name"]: item for item in flavor["resources"]} for flavor in flavors}
    cohort = owner["spec"].get("cohortName") or owner["spec"].get("cohort")
    for flavor, quotas in tables.items():
        nominal = {resource: read_quantity(quotas[resource]["nominalQuota"]) for resource in requested}
        short = {resource for resource, amount in requested.items() if nominal[resource] < amount}
        if not short:
            return _room(context, owner, flavor, nominal, requested)
        if all(requested[resource] <= _most(quotas[resource], cohort, requested[resource]) for resource in short):
            text = f"{_amounts(requested, short)} of flavor {flavor} go beyond the queue's own quota"
            return warned(f"{text}: the rest is borrowed", f"kubectl get clusterqueues shows what cohort {cohort} has")
    if not tables:
        text = f"no flavor of ClusterQueue {name} has the machines that the pods select"
        return failed(text, f"kubectl describe clusterqueue {name}, and compare nodeLabels with nodeSelector")
    flavor, quotas = next(iter(tables.items()))
    most = {resource: _most(quotas[resource], cohort, requested[resource]) for resource in requested}
    short = {resource for resource, amount in requested.items() if most[resource] < amount}
    text = f"the run asks for {_amounts(requested, short)}, flavor {flavor} of ClusterQueue {name} has "
    text += _amounts(most, short) + " with what it may borrow" * bool(cohort)
    change = "raise nominalQuota (setup.quota.nodes or setup.queues), or use fewer nodes or run.spares"
    return failed(text, f"kubectl edit clusterqueue {name}: {change}")


def _most(quota: dict[str, Any], cohort: str | None, requested: Fraction) -> Fraction:
    """Return how much of a resource a queue may use: its own, and up to its limit from its cohort."""
    if cohort and "borrowingLimit" not in quota:
        return requested
    return read_quantity(quota["nominalQuota"]) + read_quantity(quota.get("borrowingLimit", 0) if cohort else 0)


def _room(
    context: PreflightContext, owner: Object, flavor: str, nominal: Quantities, requested: Quantities
) -> Diagnosis:
    """Report whether enough quota is free now; a run of this release returns its own share."""
    reserved = owner.get("status", {}).get("flavorsReservation", [])
    rows = [item for each in reserved if each["name"] == flavor for item in each.get("resources", ())]
    taken = {item["name"]: read_quantity(item.get("total", 0)) for item in rows}
    free = {resource: amount - taken.get(resource, Fraction(0)) for resource, amount in nominal.items()}
    short = {resource for resource, amount in requested.items() if free[resource] < amount}
    devices = {resource for resource in requested if "/" in resource} or set(requested)
    if short and not context.is_running:
        text = f"{_amounts(free, short)} of flavor {flavor} are free now, the run asks for {_amounts(requested, short)}"
        return warned(text, "the run waits for its turn; `kubectl get workloads --all-namespaces` shows whose it is")
    return passed(f"flavor {flavor} has {_amounts(nominal, devices)}, the run asks for {_amounts(requested, devices)}")


def _amounts(table: Quantities, resources: set[str]) -> str:
    return " and ".join(f"{amount_text(table[resource], resource)} {resource}" for resource in sorted(resources))


def _shares(part: Quantities, whole: Quantities, resources: list[str]) -> str:
    rows = ((name, amount_text(part[name], name), amount_text(whole[name], name)) for name in resources)
    return " and ".join(f"{some} {name} of {all_of_it}" for name, some, all_of_it in rows)


def _absent(context: PreflightContext) -> Diagnosis:
    found = context.find(newest_kind(context.cluster, "LocalQueue"), namespace=context.namespace)
    names = sorted(item["metadata"]["name"] for item in found)
    others = f"; it has {', '.join(names)}" if names else ""
    text = f"no queue {context.queue!r} in namespace {context.namespace}{others}"
    own_queues = set(other_queues(context)) - {context.queue}
    if own_queues:
        return failed(text, f"set queue.name to {' or '.join(sorted(own_queues))}, which release {RELEASE} created")
    # a ClusterQueue is cluster-scoped, so many users cannot read it
    is_there = read_if_allowed(lambda: cluster_queue(context)) is not None
    return failed(text, f"{setup_step(context, has_cluster_half=is_there)}, or set queue.name")


def _normal(toleration: dict[str, Any]) -> dict[str, Any]:
    """Normalize a toleration as Kueue does (pkg/util/tolerations): no operator means Equal."""
    return {**toleration, "operator": toleration.get("operator") or "Equal"}


def volcano_queue(context: PreflightContext) -> Iterator[Diagnosis]:
    """The queue exists, is open, and its capability covers the requests of the gang."""
    if not (context.run and is_volcano(context.run)):
        return
    name = context.run["spec"].get("queue", "default")
    found = context.get(VOLCANO_QUEUE, name)
    if found is None:
        yield failed(f"no Volcano queue {name}", f"{setup_step(context)}, or set queue.name")
    elif (state := found.get("status", {}).get("state", "not processed yet")) != "Open":
        yield failed(f"Volcano queue {name} is {state}", f"vcctl queue operate --action open --name {name}")
    else:
        yield _capability(context, name, found)


def _capability(context: PreflightContext, name: str, found: Object) -> Diagnosis:
    requested = add(pods.total for pods in context.pods)
    most = read_quantities(found.get("spec", {}).get("capability") or {})
    used = read_quantities(found.get("status", {}).get("allocated") or {})
    short = sorted(resource for resource, amount in most.items() if requested.get(resource, 0) > amount)
    if short:
        shown = _shares(requested, most, short)
        text = f"the gang asks for {shown} that Volcano queue {name} may give"
        return failed(text, f"kubectl edit queues.scheduling.volcano.sh {name}: raise capability, or use fewer nodes")
    busy = sorted(each for each in most if requested.get(each, 0) > most[each] - used.get(each, 0))
    if busy and not context.is_running:
        shown = _shares(used, most, busy)
        return warned(f"Volcano queue {name} has given {shown}", "the gang waits until other jobs of the queue end")
    return passed(f"Volcano queue {name} is open")


_TEMPLATES = [
    Kind(f"resource.k8s.io/{version}", "ResourceClaimTemplate", "resourceclaimtemplates")
    for version in ("v1", "v1beta2", "v1beta1")
]
# Device class in a ComputeDomain's template, made later by its controller (NVIDIA/k8s-dra-driver-gpu v25.8, README.md).
_CHANNEL = "compute-domain-default-channel.nvidia.com"


def queue_device_classes(context: PreflightContext) -> Iterator[Diagnosis]:
    """Kueue maps the device classes that the run claims to resources of the queue; it never admits unmapped ones."""
    names = dict.fromkeys(
        str(claim["resourceClaimTemplateName"])
        for pods in context.pods
        for claim in pods.spec.get("resourceClaims") or ()
        if claim.get("resourceClaimTemplateName")
    )
    version = kueue_version(context)
    if not (context.queue and names):
        return
    if version and not any(within(row, version) for row in lock()["deviceClasses"]):
        yield passed(f"Kueue {version} ignores claims of devices")
        return
    for name in names:
        requests = _requests(context, name)
        classes = dict.fromkeys(str(each["deviceClassName"]) for each in requests if each.get("deviceClassName"))
        if refused := sorted(set(map(_uncountable, requests)) - {""}):
            text = f"Kueue admits no run with claim template {name}, whose requests have {' and '.join(refused)}"
            yield failed(text, "request a number of devices: exactly, with allocationMode ExactCount and count")
        else:
            yield from _judged(context, name, list(classes))


def _judged(context: PreflightContext, name: str, classes: list[str]) -> Iterator[Diagnosis]:
    found = kueue_config(context)
    if not classes or found is None:
        why = "Kueue's configuration cannot be read" if classes else "the template cannot be read"
        text = f"not checked whether Kueue maps the device classes of claim template {name}: {why}"
        yield warned(text, look_at_configuration() if classes else f"kubectl get resourceclaimtemplate {name}")
        return
    mapped = mapped_classes(found)
    covered = {resource for group in resource_groups(context) for resource in group["coveredResources"]}
    for each in classes:
        if each not in mapped:
            text = f"Kueue does not map device class {each}, and admits no run that claims it"
            yield failed(text, change_of_configuration(f"add {each} to resources.deviceClassMappings"))
        elif mapped[each] not in covered:
            text = f"Kueue counts device class {each} as {mapped[each]}, which queue {context.queue} does not cover"
            yield failed(text, f"add {mapped[each]} to setup.quota.resources, and {setup_step(context)}")
        else:
            yield passed(f"Kueue counts device class {each} as {mapped[each]}, which queue {context.queue} covers")


def _requests(context: PreflightContext, name: str) -> list[dict[str, Any]]:
    """Return the requests of a template, in the form of v1beta1 and of `exactly`; empty when it cannot be read."""
    for item in context.objects:
        spec: dict[str, Any] = item.get("spec") or {}
        if item["kind"] == "ComputeDomain" and _channel_of(spec) == name:
            return [{"deviceClassName": _CHANNEL}]
        if item["kind"] == "ResourceClaimTemplate" and item["metadata"]["name"] == name:
            return _requested(item)
    for kind in _TEMPLATES:
        found = read_if_allowed(lambda kind=kind: context.get(kind, name)) if context.cluster.serves(kind) else None  # type: ignore[misc]
        if found:
            return _requested(found)
    return []


def _channel_of(spec: dict[str, Any]) -> str:
    return str(((spec.get("channel") or {}).get("resourceClaimTemplate") or {}).get("name", ""))


def _requested(template: Object) -> list[dict[str, Any]]:
    # v1 and v1beta2 have these fields below `exactly`, v1beta1 one level higher
    requests = ((template["spec"].get("spec") or {}).get("devices") or {}).get("requests") or ()
    return [request.get("exactly") or request for request in requests]


def _uncountable(request: dict[str, Any]) -> str:
    """Return what Kueue cannot count in a request, if anything (kubernetes-sigs/kueue v0.19.2, pkg/dra/claims.go)."""
    if "firstAvailable" in request:
        return "firstAvailable"
    if request.get("adminAccess"):
        return "adminAccess"
    return "allocationMode All" if request.get("allocationMode") == "All" else ""
