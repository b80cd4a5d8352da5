"""Simulated machines: nodes that the API server takes, whatever a cloud calls its machine types."""

from __future__ import annotations

import pytest

from chartgen.composer.node_pools import node_pool
from chartgen.composer.target import Machine
from chartgen.kube import NODE
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines

CAPACITY = {"nvidia.com/gpu": "8", "cpu": "96", "memory": "1800Gi"}


@pytest.mark.engines
@pytest.mark.parametrize(
    "kind",
    # An Azure size, an OCI shape, and what no cloud has been seen to do.
    ["Standard_ND96isr_H100_v5", "BM.GPU.H100.8", "A_.b-.-C_", "m" * 63],
)
def test_a_machine_type_of_any_cloud_becomes_nodes(plane: ControlPlane, kind: str) -> None:
    label = kind.rstrip("_")  # what the API server takes as a label's value
    pool = node_pool(Machine(label, 8, "h100-80gb", CAPACITY, {}, [], {}), 11)
    names = create_machines(plane.cluster, [pool])
    try:
        nodes = [plane.cluster.get(NODE, name) for name in names]
        labels = [node["metadata"]["labels"] for node in nodes if node]
        assert {each["node.kubernetes.io/instance-type"] for each in labels} == {label}
        assert [each["kubernetes.io/hostname"] for each in labels] == names
        assert len(set(names)) == 11
    finally:
        delete_machines(plane.cluster, names)
