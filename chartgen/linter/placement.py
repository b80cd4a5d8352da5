"""Whether the pods that a target renders run on the machines that its rows describe: taints, labels, resources.

A label or resource that the given values name is not compared: it is the site's, and rows describe the cloud's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from chartgen.composer.node_pools import node_pool
from chartgen.composer.origin import Composed, origin_of
from chartgen.composer.target import Machine
from chartgen.errors import Problem
from chartgen.findings import Finding, Rule
from chartgen.helm.chart import Chart
from chartgen.kube import Object
from chartgen.kube.pods import Pods, pods_of
from chartgen.kube.quantities import amount_text
from chartgen.kube.scheduling import has_label, is_selected, offers, untolerated, wanted_labels
from chartgen.linter.machines import machine_type, row
from chartgen.linter.render import Rendering

TAINTS = Rule(
    "pods-tolerate-their-machines",
    "Pods of a target do not tolerate a taint of one of its machine types, and stay Pending.",
    "tolerate it in pod.yaml of a fragment, or correct the row",
    "kubernetes.io, Taints and Tolerations",
)
LABELS = Rule(
    "pods-select-their-machines",
    "Pods of a target require a label that one of its machine types does not have, and stay Pending. Labels that "
    "the values name are not compared: they are those of a site.",
    "write the label into the row, or correct nodeSelector or affinity in pod.yaml of a fragment",
    "kubernetes.io, Assigning Pods to Nodes",
)
RESOURCES = Rule(
    "pods-fit-their-machines",
    "A pod of a target requests more of a resource, such as GPUs, adapters, huge pages or memory, than its machine "
    "type has.",
    "correct capacity of the row, or what fragments and containers request",
    "kubernetes.io, Resource Management for Pods and Containers",
)
LEVELS = Rule(
    "topology-levels-are-labels",
    "A level of a target's setup.topologyLevels is a label that none of its machine types has: Kueue places no run "
    "on machines without the labels of its topology.",
    "write the label into the rows, or correct the level",
    "kueue.sigs.k8s.io, Topology Aware Scheduling",
)
# Machines have these, whether or not a row lists them.
_COMMON = ("cpu", "memory", "ephemeral-storage")
# Values that lint itself sets.
_CHOSEN = ("machineType", "nodes")


class Placed(NamedTuple):
    """Pods with GPUs of one rendering, and a machine of their type."""

    pods: Pods
    machine: Machine  # the row of their machine type
    node: Object  # the machine, as a Node object
    given: frozenset[str]  # keys and values that the rendering's values contain, apart from those that lint sets


def placed_pods(chart: Chart, renderings: Sequence[Rendering]) -> list[Placed]:
    """Return the pods with GPUs of a target's run chart, each with a machine of its type; nothing for other charts."""
    origin = origin_of(chart)
    if not isinstance(origin, Composed) or origin.setup:
        return []
    found = []
    for rendering in {rendering.preset.name: rendering for rendering in renderings}.values():
        data = rendering.preset.data
        machine = origin.target.machines.get(machine_type(chart, data))
        if machine is None:  # a chart that only claims to be the target's
            continue
        (node,) = node_pool(machine, 1).nodes()
        given = frozenset(_words({key: value for key, value in data.items() if key not in _CHOSEN}))
        pods = pods_of(manifest.data for manifest in rendering.manifests)
        with_gpus = (pod for pod in pods if any(name.endswith("/gpu") for name in pod.devices))
        found += [Placed(pod, machine, node, given) for pod in with_gpus]
    return found


def misplaced(chart: Chart, placed: Sequence[Placed]) -> Iterator[Finding]:
    """Report why pods do not run on a machine of their type: its taints, its labels, what it has."""
    for each in placed:
        for rule, key, message in (*_taints(each), *_labels(each), *_requests(each)):
            yield Finding(rule.id, Problem(message, *row(chart, each.machine.name, key), rule.remedy))


def _taints(placed: Placed) -> Iterator[tuple[Rule, str, str]]:
    for taint in untolerated(placed.node, placed.pods.spec.get("tolerations") or ()):
        yield TAINTS, "taints", f"its pods do not tolerate the taint {taint} of {placed.machine.name}"


def _labels(placed: Placed) -> Iterator[tuple[Rule, str, str]]:
    spec = placed.pods.spec
    for text, rule in ({} if is_selected(placed.node, spec) else wanted_labels(spec)).items():
        if not has_label(placed.node, rule) and placed.given.isdisjoint({rule["key"], *rule.get("values", ())}):
            yield LABELS, "labels", f"its pods require the label {text}, which {placed.machine.name} does not have"


def _requests(placed: Placed) -> Iterator[tuple[Rule, str, str]]:
    """Yield more than the machine has, or a device that its row does not list."""
    offered = offers(placed.node)
    for name, requested in placed.pods.requests.items():
        is_free = name in _COMMON or _is_given(name, placed.pods, placed.given)
        has = offered.get(name, requested if is_free else Fraction(0))
        if requested > has:
            offer = f"has {amount_text(has, name)}" if name in offered else "has none"
            asked = f"a pod requests {amount_text(requested, name)} {name}"
            yield RESOURCES, "capacity", f"{asked}, of which {placed.machine.name} {offer}"


def labelled(chart: Chart) -> Iterator[Finding]:
    """Report the topology levels of a run chart's target that are a label of none of its machine types."""
    origin = origin_of(chart)
    if not isinstance(origin, Composed):
        return
    target, at = origin.target, ("values", "setup", "topologyLevels")
    pools = [node_pool(machine, 1) for machine in target.machines.values()]
    known = {label for pool in pools for node in pool.nodes() for label in node["metadata"]["labels"]}
    for index, level in enumerate((target.values.get("setup") or {}).get("topologyLevels") or ()):
        if level not in known:
            message = f"no machine type has the label {level}, a level of setup.topologyLevels"
            yield Finding(LEVELS.id, target.document.problem(message, (*at, index), LEVELS.remedy))


def _is_given(name: str, pods: Pods, given: frozenset[str]) -> bool:
    """Report whether values name a resource, or the amount of one without a domain, such as huge pages."""
    tables = [
        (each.get("resources") or {}).get(kind) or {} for each in pods.containers for kind in ("requests", "limits")
    ]
    amounts = {str(table[name]) for table in tables if name in table}
    return name in given or ("/" not in name and not given.isdisjoint(amounts))


def _words(data: object) -> Iterator[str]:
    """Yield every key and every text of values."""
    if isinstance(data, str):
        yield data
    for child in (*data, *data.values()) if isinstance(data, dict) else data if isinstance(data, list) else ():
        yield from _words(child)
