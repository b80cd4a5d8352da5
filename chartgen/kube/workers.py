"""The workers of a run: which pods of its rendered objects do the work, and what runs in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from chartgen.kube.run_kinds import queue_of, run_kind

_COMPONENT = "app.kubernetes.io/component"
_CONTAINER = "kubectl.kubernetes.io/default-container"


@dataclass(frozen=True)
class Workers:
    """The pods of a run that do the work: what people call their kind, one pod, how many, and their queue."""

    name: str
    kind: str
    pod: dict[str, Any]
    count: int
    queue: str

    @property
    def env(self) -> dict[str, str]:
        """The plain variables of the program's container."""
        return {entry["name"]: entry.get("value", "") for entry in program(self.pod).get("env", ())}

    def volume(self, path: str) -> dict[str, Any]:
        """Return the volume that holds a path of the program's container; empty when none does."""
        mounts = {mount["mountPath"]: mount["name"] for mount in program(self.pod).get("volumeMounts", ())}
        held = [place for place in mounts if path == place or path.startswith(f"{place}/")]
        name = mounts[max(held, key=len)] if held else ""
        return next((volume for volume in self.pod["spec"].get("volumes", ()) if volume["name"] == name), {})

    @property
    def trains(self) -> bool:
        """Whether they train, and do not prepare data or test machines."""
        return bool(self.pod.get("metadata", {}).get("labels", {}).get(_COMPONENT, "train") == "train")


def find_workers(rendered: Iterable[dict[str, Any]]) -> Workers | None:
    """Return the workers of the run among rendered objects; None when they run nothing."""
    return next(filter(None, map(_workers, rendered)), None)


def _workers(item: dict[str, Any]) -> Workers | None:
    """Return the workers of an object; None when it is no run."""
    kind = run_kind(item)
    if kind is None:
        return None
    role = next(role for role in kind.roles(item["spec"]) if role.works)
    return Workers(item["metadata"]["name"], kind.name, role.template, role.count, queue_of(item))


def program(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the container of a pod in which the program runs; sidecars may stand before it."""
    name = pod.get("metadata", {}).get("annotations", {}).get(_CONTAINER)
    containers: list[dict[str, Any]] = pod["spec"]["containers"]
    return next((container for container in containers if container["name"] == name), containers[0])


def api_groups(found: Iterable[dict[str, Any]]) -> frozenset[str]:
    """Return the API groups of rendered objects, which tell the controllers that they need."""
    return frozenset(str(item["apiVersion"]).rpartition("/")[0] for item in found)
