"""Machines of a target's row, as rehearsals simulate them and lint compares pods with them."""

from __future__ import annotations

from chartgen.composer.target import Machine
from chartgen.kube.node_pool import NodePool

# The kubelet's default limit, which clouds keep or lower.
PODS_OF_A_NODE = "110"


def node_pool(machine: Machine, count: int) -> NodePool:
    """Return the description of machines of a type."""
    labels = {"node.kubernetes.io/instance-type": machine.name, **machine.labels}
    return NodePool(machine.name, count, {**machine.capacity, "pods": PODS_OF_A_NODE}, labels, machine.taints)
