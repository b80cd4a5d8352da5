"""Taints and tolerations: pods drawn at random run where chartgen expects them to."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import manifests
import pytest

from chartgen.kube import NODE, POD, Cluster, ClusterError, wait_for
from chartgen.kube.scheduling import is_selected, untolerated
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines

SPACE = "taints"
MACHINES = 8
PODS = 64


@pytest.fixture
def machines(plane: ControlPlane) -> Iterator[list[str]]:
    """Machines with drawn taints, in a namespace of their own."""
    draw = random.Random(22)  # noqa: S311 - the same taints in every run
    plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}])
    names = create_machines(plane.cluster, [manifests.pool(SPACE, MACHINES)])
    for name in names:
        taints = [_taint(draw) for _ in range(draw.randint(0, 2))]
        unique = {(each["key"], each["effect"]): each for each in taints}
        labels = {"slots": draw.choice(["4", "8", "16", "many"])}
        plane.cluster.patch(NODE, name, {"metadata": {"labels": labels}, "spec": {"taints": [*unique.values()]}})
    yield names
    for pod in plane.cluster.list(POD, namespace=SPACE):
        plane.cluster.delete(POD, pod["metadata"]["name"], SPACE)
    delete_machines(plane.cluster, names)


@pytest.mark.engines
def test_drawn_pods_are_placed_where_chartgen_says(plane: ControlPlane, machines: list[str]) -> None:
    """Each drawn pod is one machine's, so that the scheduler's word is about one pair of taints and tolerations."""
    draw, cluster = random.Random(23), plane.cluster  # noqa: S311 - the same pods in every run
    expected: dict[str, bool] = {}
    refused = 0
    for number in range(PODS):
        machine = draw.choice(machines)
        spec = {
            "containers": [{"name": "c", "image": "x"}],
            "tolerations": [_toleration(draw) for _ in range(draw.randint(0, 2))],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _affinity(draw, machine)}},
        }
        name = f"drawn-{number}"
        try:
            cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(name), "spec": spec})
        except ClusterError as error:
            assert error.status == 422, error  # noqa: PT017 - what no pod may say needs no answer
            refused += 1
            continue
        node = cluster.get(NODE, machine)
        assert node
        # the server adds tolerations of its own, which are part of what is judged
        kept = (cluster.get(POD, name, SPACE) or {})["spec"]
        expected[name] = is_selected(node, kept) and not untolerated(node, kept["tolerations"])
    decided = {name: _decided(cluster, name) for name in expected}
    assert {name: placed == "True" for name, placed in decided.items()} == expected
    print(  # noqa: T201 - how much was really compared
        f"{len(expected)} pods compared, {sum(expected.values())} of them placed; {refused} refused by the API server"
    )
    assert 10 < sum(expected.values()) < len(expected) - 10


def _decided(cluster: Cluster, name: str) -> str:
    return wait_for(lambda: _decision(cluster, name), what=f"a word on pod {name}", timeout=180)


def _decision(cluster: Cluster, name: str) -> str:
    pod = cluster.get(POD, name, SPACE) or {}
    conditions = pod.get("status", {}).get("conditions", ())
    return next((each["status"] for each in conditions if each["type"] == "PodScheduled"), "")


def _metadata(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": SPACE}


def _affinity(draw: random.Random, machine: str) -> dict[str, Any]:
    here = [{"key": "metadata.name", "operator": "In", "values": [machine]}]
    rules = [
        {"key": "slots", "operator": operator, "values": [value]}
        for operator, value in product(("Gt", "Lt"), ("3", "8", "20"))
    ]
    rules += [{"key": "slots", "operator": "NotIn", "values": ["8"]}, {"key": "slots", "operator": "Exists"}]
    term: dict[str, Any] = {"matchFields": here}
    if draw.random() < 0.4:
        term["matchExpressions"] = [draw.choice(rules)]
    return {"nodeSelectorTerms": [term]}


def _taint(draw: random.Random) -> dict[str, str]:
    taint = {"key": draw.choice("ab"), "effect": draw.choice(["NoSchedule", "NoExecute", "PreferNoSchedule"])}
    return {**taint, **({"value": value} if (value := draw.choice(["", "1", "x"])) else {})}


def _toleration(draw: random.Random) -> dict[str, str]:
    drawn = {
        "key": draw.choice(["", "a", "a", "b", "b"]),
        "operator": draw.choice(["", "Equal", "Exists", "Exists"]),
        "value": draw.choice(["", "1", "x"]),
        "effect": draw.choice(["", "", "NoSchedule", "NoExecute"]),
    }
    return {key: value for key, value in drawn.items() if value or draw.random() < 0.5}
