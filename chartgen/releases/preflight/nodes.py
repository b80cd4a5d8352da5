"""Checks of the machines: enough of them have the labels, are Ready, are tolerated, large enough and free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from chartgen.kube import CONFIG_MAP, INSTANCE_LABEL, POD, Kind, Object
from chartgen.kube.pods import Pods
from chartgen.kube.quantities import Quantities, add, amount_text
from chartgen.kube.scheduling import has_label, is_selected, offers, room, untolerated, wanted_labels, why_unusable
from chartgen.releases.preflight.context import Diagnosis, PreflightContext, failed, passed, read_if_allowed, warned
from chartgen.releases.preflight.kueue import flavors_of
from chartgen.visible import counted

# Signs of an autoscaler in a cluster: a status (kubernetes/autoscaler, cluster-autoscaler/FAQ.md), or its own kind
# (karpenter.sh, Concepts). A run for which Kueue requests machines has their duration (GKE, Flex Start).
_AUTOSCALER = "cluster-autoscaler-status"
_KARPENTER = Kind("karpenter.sh/v1", "NodePool", "nodepools", namespaced=False)
_ON_DEMAND = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"


@dataclass(frozen=True)
class Fleet:
    """The machines for one sort of pods."""

    pods: Pods
    selected: list[Object]  # machines that match the selector of the pods
    usable: list[Object]  # selected machines that are Ready and not cordoned
    tolerated: list[Object]  # usable machines whose taints the pods tolerate
    needed: int  # number of machines that the pods fill
    places: int  # number of pods that fit onto the tolerated machines when these are empty


def machines(context: PreflightContext) -> Iterator[Diagnosis]:
    """Enough machines have the labels that the pods ask for, are Ready and not cordoned."""
    for fleet in _fleets(context):
        lacking = _lacking(context, fleet)
        if lacking and _grows(context):
            yield warned(lacking, "wait for the cluster's autoscaler, which has to add them")
        elif lacking:
            yield failed(lacking, _labels_hint(fleet))
        else:
            yield passed(f"{counted(len(fleet.usable), 'machine')} Ready, {fleet.needed} needed for {fleet.pods}")


def machine_taints(context: PreflightContext) -> Iterator[Diagnosis]:
    """The pods tolerate the taints of enough machines."""
    for fleet in _fleets(context):
        least = min(fleet.needed, len(fleet.usable))
        if len(fleet.tolerated) < least:
            counts = Counter(taint for node in fleet.usable for taint in _untolerated(context, fleet.pods, node))
            shown = ", ".join(f"{taint} on {count}" for taint, count in sorted(counts.items()))
            text = f"{fleet.pods} tolerate{'s' * (fleet.pods.count == 1)} {len(fleet.tolerated)} of "
            text += f"{len(fleet.usable)} machines: {shown}"
            remove = f"`kubectl taint nodes --all {min(counts)}-`"
            yield failed(text, f"add it to tolerations, or {remove} where it is not meant")
        elif fleet.usable:
            yield passed(f"the taints of {len(fleet.tolerated)} machines let {fleet.pods} in")


def machine_capacity(context: PreflightContext) -> Iterator[Diagnosis]:
    """Enough machines offer the GPUs, network adapters and memory that a pod asks for."""
    for fleet in _fleets(context):
        count = len(fleet.tolerated)
        small = [node for node in fleet.tolerated if not room(offers(node), fleet.pods.requests)]
        if small and fleet.places < fleet.pods.count:
            name, shown = small[0]["metadata"]["name"], _shortage(small[0], fleet.pods)
            text = f"{count - len(small)} of {count} machines have room for one of {fleet.pods}: {name} {shown}"
            yield failed(text, f"kubectl describe node {name}, and check its device plugins")
        elif count >= fleet.needed and fleet.places < fleet.pods.count:
            text = f"{counted(count, 'machine')} together have room for {fleet.places} of {fleet.pods}"
            yield failed(text, "add machines, or ask for fewer or smaller pods")
        elif fleet.tolerated and fleet.pods.devices:
            shown = " and ".join(f"{amount_text(amount, name)} {name}" for name, amount in fleet.pods.devices.items())
            yield passed(f"machines offer {shown} to a pod")


def machines_free(context: PreflightContext) -> Iterator[Diagnosis]:
    """Enough machines are free now; the release's own pods make room for their successors."""
    fleets = [fleet for fleet in _fleets(context) if fleet.pods.devices and fleet.places >= fleet.pods.count]
    if not fleets:
        return
    used: dict[str, Quantities] = {node["metadata"]["name"]: {} for fleet in fleets for node in fleet.tolerated}
    # as a stream: the pods of a large cluster fill hundreds of megabytes
    pods = context.cluster.each(POD, fields="status.phase!=Succeeded,status.phase!=Failed")
    others = (pod for pod in pods if pod["spec"].get("nodeName") and not _is_own(context, pod))
    for _, (place, requests) in context.cluster.judged(others, _taken):
        if place in used:
            used[place] = add([used[place], requests])
    for fleet in fleets:
        free = sum(room(_free(node, used), fleet.pods.requests) for node in fleet.tolerated)
        if free < fleet.pods.count:
            text = f"room for {free} of {fleet.pods} now, {fleet.places} when other pods end"
            yield warned(text, "kubectl get pods --all-namespaces -o wide shows the pods on them; the run waits")
        else:
            yield passed(f"room for {free} pods now, {fleet.pods} asked for")


def gpu_machines(context: PreflightContext) -> Iterator[Diagnosis]:
    """The cluster has GPU machines; they are listed to help choose a target."""
    kinds: dict[str, list[Object]] = {}
    for node in context.nodes:
        if any(name.endswith("/gpu") and amount for name, amount in offers(node).items()):
            label = node["metadata"].get("labels", {}).get("node.kubernetes.io/instance-type", "of unknown type")
            kinds.setdefault(label, []).append(node)
    for name, nodes in sorted(kinds.items()):
        good = [node for node in nodes if not why_unusable(node)]
        gpus = sum(amount for node in good for key, amount in offers(node).items() if key.endswith("/gpu"))
        text = f"{len(good)} of {len(nodes)} machines {name} usable, {int(gpus)} GPUs"
        yield passed(text) if len(good) == len(nodes) else warned(text, "kubectl get nodes")
    if not kinds:
        yield warned("no machine offers GPUs", "add a node pool with GPUs and their device plugin")


def _fleets(context: PreflightContext) -> list[Fleet]:
    return context.once("fleets", lambda: [_fleet(context, pods) for pods in context.pods])


def _fleet(context: PreflightContext, pods: Pods) -> Fleet:
    selected = [node for node in context.nodes if is_selected(node, pods.spec)]
    usable = [node for node in selected if not why_unusable(node)]
    tolerated = [node for node in usable if not _untolerated(context, pods, node)]
    rooms = {node["metadata"]["name"]: room(offers(node), pods.requests) for node in selected}
    needed = -(-pods.count // max([1, *rooms.values()]))  # `machine_capacity` reports too small machines
    return Fleet(pods, selected, usable, tolerated, needed, sum(rooms[node["metadata"]["name"]] for node in tolerated))


def _untolerated(context: PreflightContext, pods: Pods, node: Object) -> list[str]:
    """Return the taints that repel pods; Kueue adds the tolerations of a queue's flavors on admission."""
    own = pods.spec.get("tolerations", [])
    found = untolerated(node, own)
    if found and context.queue:
        added = [toleration for flavor in flavors_of(context) for toleration in flavor["spec"].get("tolerations", ())]
        return untolerated(node, [*own, *added])
    return found


def _lacking(context: PreflightContext, fleet: Fleet) -> str:
    """Report which resources machines lack; empty when enough machines have them."""
    if len(fleet.usable) >= fleet.needed:
        return ""
    if reasons := [f"{node['metadata']['name']} {why}" for node in fleet.selected if (why := why_unusable(node))]:
        shown = [*reasons[:3], *([f"{len(reasons) - 3} more"] if reasons[3:] else [])]
        return f"{len(fleet.usable)} of {fleet.needed} machines for {fleet.pods} are usable: {', '.join(shown)}"
    labels = wanted_labels(fleet.pods.spec)
    have = f"{len(fleet.selected)} of {fleet.needed} machines for {fleet.pods} " + ("have " if labels else "are there")
    alone = [shown for shown, rule in labels.items() if not any(has_label(node, rule) for node in context.nodes)]
    none = f": none has {' nor '.join(alone)}" if alone and len(labels) > 1 else ""
    return f"{have}{','.join(labels)}{none}"


def _labels_hint(fleet: Fleet) -> str:
    cordoned = [node["metadata"]["name"] for node in fleet.selected if why_unusable(node) == "is cordoned"]
    if cordoned:
        return f"kubectl uncordon {' '.join(cordoned)}"
    if len(fleet.selected) > len(fleet.usable):
        return "kubectl describe node, which shows why it is not Ready"
    missing = fleet.needed - len(fleet.selected)
    return f"add {missing} machines, lower nodes or run.spares, or correct nodeSelector or machineType"


def _shortage(node: Object, pods: Pods) -> str:
    offered = offers(node)
    short = {name: amount for name, amount in pods.requests.items() if offered.get(name, 0) < amount}
    return " and ".join(
        f"offers {amount_text(offered.get(name, Fraction(0)), name)} {name}, a pod asks for {amount_text(amount, name)}"
        for name, amount in short.items()
    )


def _free(node: Object, used: dict[str, Quantities]) -> Quantities:
    taken = used[node["metadata"]["name"]]
    return {name: amount - taken.get(name, Fraction(0)) for name, amount in offers(node).items()}


def _taken(pod: Object) -> tuple[str, Quantities]:
    return str(pod["spec"]["nodeName"]), Pods("", "", 1, pod["metadata"], pod["spec"]).requests


def _is_own(context: PreflightContext, pod: Object) -> bool:
    metadata = pod["metadata"]
    own = metadata.get("labels", {}).get(INSTANCE_LABEL) == context.release
    return bool(own and metadata["namespace"] == context.namespace)


def _grows(context: PreflightContext) -> bool:
    """Report whether an autoscaler adds machines for pending pods."""
    if any(_ON_DEMAND in item["metadata"].get("annotations", {}) for item in context.objects):
        return True
    status = read_if_allowed(lambda: context.cluster.get(CONFIG_MAP, _AUTOSCALER, "kube-system"))
    return status is not None or context.cluster.serves(_KARPENTER)
