"""Machines as Node objects: what a target describes, for simulated machines and for checks without a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from chartgen.kube.kinds import NODE, Object

# The label of every simulated machine.
OWNER = {"app.kubernetes.io/managed-by": "chartgen"}
# What stands for numbers in the values of labels: the machine's own, and that of its group of N machines.
INDEX = r"\{index(?://([1-9][0-9]*))?\}"
_LONGEST_NAME = 63  # of a label's value, because kubernetes.io/hostname contains the node's name


@dataclass(frozen=True)
class NodePool:
    """Machines of one type."""

    name: str  # prefix of their names, <name>-0, <name>-1, ...; characters invalid in a node name become dashes
    count: int
    capacity: Mapping[str, str]  # quantities by resource, such as {"nvidia.com/gpu": "8", "cpu": "208", "pods": "110"}
    # Node labels beside hostname, os and arch; in a value, `{index}` is the machine's number, and `{index//N}` that
    # number divided by N and rounded down, equal for N machines
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()  # node taints, each {"key", "value", "effect"}
    counted: bool = True  # whether reports count them as machines of the run

    @property
    def names(self) -> list[str]:
        """Return the names of the machines."""
        # OCI shapes such as BM.GPU.H100.8 have capitals, Azure sizes such as Standard_ND96isr_H100_v5 underscores too.
        longest = _LONGEST_NAME - len(f"-{self.count}")
        # RFC 1123 subdomain: each part between dots begins and ends with a letter or digit
        parts = re.sub(r"[^a-z0-9.]+", "-", self.name.lower())[:longest].split(".")
        prefix = ".".join(filter(None, (part.strip("-") for part in parts))) or "machine"
        return [f"{prefix}-{number}" for number in range(self.count)]

    def nodes(self) -> Iterator[Object]:
        """Yield the Node objects of the machines."""
        return (self._node(number, name) for number, name in enumerate(self.names))

    def _node(self, number: int, name: str) -> Object:
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        # kube-controller-manager writes these beside the stable ones of every machine
        labels |= {"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "amd64"}
        own = {
            key: re.sub(INDEX, lambda match: str(number // int(match[1] or 1)), value)
            for key, value in self.labels.items()
        }
        return {
            "apiVersion": NODE.api_version,
            "kind": NODE.name,
            "metadata": {
                "name": name,
                "labels": {**labels, **own, **OWNER},
                "annotations": {"kwok.x-k8s.io/node": "fake"},  # mark for kwok in clusters with real nodes
            },
            "spec": {"taints": [dict(taint) for taint in self.taints]},
            "status": {"capacity": dict(self.capacity), "allocatable": dict(self.capacity)},
        }
