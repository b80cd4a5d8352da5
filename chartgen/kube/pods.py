"""The pods of rendered objects: the number of each sort, and the resources that one pod requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from chartgen.kube import Object
from chartgen.kube.quantities import Quantities, add, amount_text, read_quantities
from chartgen.kube.run_kinds import run_kind, with_runtimes


@dataclass(frozen=True)
class Pods:
    """Pods of one template."""

    owner: str  # kind and name of the object that requests them
    role: str  # their name in that object, such as a replicated job or a task; empty when it has only one sort
    count: int
    metadata: dict[str, Any]
    spec: dict[str, Any]

    @cached_property
    def requests(self) -> Quantities:
        """Return the requests of one pod: sidecars run beside the containers, other init containers before them."""
        beside: list[Quantities] = []
        most: Quantities = {}
        for container in self.spec.get("initContainers", ()):
            if container.get("restartPolicy") == "Always":
                beside.append(_requests(container))
            most = _larger(most, add([*beside, *([] if container.get("restartPolicy") else [_requests(container)])]))
        running = add([*beside, *map(_requests, self.spec["containers"])])
        return {name: amount for name, amount in _larger(most, running).items() if amount}

    @property
    def total(self) -> Quantities:
        """Return the requests of all pods together."""
        return {name: amount * self.count for name, amount in self.requests.items()}

    @property
    def devices(self) -> Quantities:
        """Return the devices of one pod, such as GPUs and network adapters: resources with a domain in their name."""
        return {name: amount for name, amount in self.requests.items() if "/" in name}

    @property
    def containers(self) -> list[dict[str, Any]]:
        """Return all containers, including init containers."""
        return [*self.spec.get("initContainers", ()), *self.spec["containers"]]

    @property
    def annotations(self) -> dict[str, str]:
        """Return their annotations."""
        return self.metadata.get("annotations") or {}

    def __str__(self) -> str:
        devices = " and ".join(f"{amount_text(amount, name)} {name}" for name, amount in self.devices.items())
        role = f" {self.role}" if self.role else ""
        return f"{self.count}{role} pod{'s' * (self.count != 1)}" + (f" with {devices}" if devices else "")


def pods_of(objects: Iterable[Object]) -> list[Pods]:
    """Return the pods of all objects."""
    return [pods for item in with_runtimes(objects) for pods in _pods(item)]


def _pods(item: Object) -> Iterator[Pods]:
    owner, spec = f"{item['kind']} {item['metadata']['name']}", item.get("spec") or {}
    if kind := run_kind(item):
        yield from (_of_template(owner, role.name, role.template, role.count) for role in kind.roles(spec))
    elif item["kind"] == "Deployment":
        yield _of_template(owner, "", spec["template"], int(spec.get("replicas", 1)))


def _of_template(owner: str, role: str, template: dict[str, Any], count: int) -> Pods:
    return Pods(owner, role, count, template.get("metadata") or {}, template["spec"])


def _requests(container: dict[str, Any]) -> Quantities:
    """Return a container's requests; a limit without a request is one (Kubernetes, Resource Management for Pods)."""
    resources = container.get("resources") or {}
    return read_quantities({**resources.get("limits", {}), **resources.get("requests", {})})


def _larger(one: Quantities, other: Quantities) -> Quantities:
    zero = Fraction(0)
    return {name: max(one.get(name, zero), other.get(name, zero)) for name in {**one, **other}}
