"""Rendered objects as rules see them: pods and containers of any kind, each with its key path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

Object: TypeAlias = dict[str, Any]
Keys: TypeAlias = tuple[str | int, ...]

# The namespace that lint renders into; an object that names another one holds it literally.
LINT_NAMESPACE = "chartgen-lint"


class Pod(NamedTuple):
    """A pod's spec, and where it stands in its object."""

    at: Keys
    spec: Object


class Container(NamedTuple):
    """A container, and where it stands in its object."""

    at: Keys
    spec: Object

    @property
    def name(self) -> str:
        """Its name, which a broken template may have left out."""
        return str(self.spec.get("name", "without a name"))


def title(thing: Object) -> str:
    """Name an object in messages: its kind and name."""
    return f"{thing.get('kind', 'object')} {metadata(thing).get('name', 'without a name')}"


def metadata(thing: Object) -> Object:
    """Return the metadata of an object; a broken template may have left it empty, or made it something else."""
    found = thing.get("metadata")
    return found if isinstance(found, dict) else {}


def maps(node: object, at: Keys = ()) -> Iterator[tuple[Keys, Object]]:
    """Walk all maps of an object, outer ones first."""
    if isinstance(node, dict):
        yield at, node
        for key, child in node.items():
            yield from maps(child, (*at, key))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from maps(child, (*at, index))


def pods(thing: Object) -> Iterator[Pod]:
    """Find all pod specs in an object, whatever its kind: maps with a list of containers."""
    if thing.get("kind") == "CustomResourceDefinition":
        return
    for at, node in maps(thing):
        if isinstance(node.get("containers"), list):
            yield Pod(at, node)


def is_template(thing: Object, pod: Pod) -> bool:
    """Report whether a pod's spec is all of it, not what a custom resource adds to pods that its operator makes."""
    return thing.get("kind") == "Pod" or any("emplate" in str(key) for key in pod.at[-2:-1])


def claims(thing: Object, pod: Pod) -> set[Any]:
    """Return the volumes that a StatefulSet makes for its pods by `volumeClaimTemplates`."""
    owner: Any = thing
    for key in pod.at[:-2]:
        owner = owner[key]
    found = items(owner, "volumeClaimTemplates") if isinstance(owner, dict) else ()
    return {metadata(claim).get("name") for _, claim in found}


def containers(pod: Pod) -> Iterator[Container]:
    """Return the containers of a pod, init containers first."""
    for key in ("initContainers", "containers"):
        for index, spec in items(pod.spec, key):
            yield Container((*pod.at, key, index), spec)


def all_containers(thing: Object) -> Iterator[Container]:
    """Return the containers of all pods of an object."""
    for pod in pods(thing):
        yield from containers(pod)


def items(node: Object, key: str) -> Iterator[tuple[int, Object]]:
    """Return the maps of a list with their indexes; nothing for what is no list."""
    found = node.get(key)
    for index, item in enumerate(found if isinstance(found, list) else ()):
        if isinstance(item, dict):
            yield index, item


def entries(thing: Object, key: str) -> Iterator[tuple[Keys, str, Any]]:
    """Return what all maps of one name hold, wherever they stand: key path, key and value of each entry."""
    for at, node in maps(thing):
        inner = node.get(key)
        for name, value in inner.items() if isinstance(inner, dict) else ():
            yield (*at, key, name), name, value


def repeated(named: Iterable[tuple[Keys, Any]]) -> Iterator[tuple[Keys, Any]]:
    """Return each name that stands more than once, with the place of its second standing."""
    seen: Counter[Any] = Counter()
    for at, name in named:
        seen[name] += 1
        if seen[name] == 2:
            yield at, name
