"""Rendered objects for rules: pods and containers of any kind, each with its key path."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

Object: TypeAlias = dict[str, Any]
Keys: TypeAlias = tuple[str | int, ...]

# The release and the namespace in lint's renders; any other namespace in an object is literal.
LINT_RELEASE = "lint"
LINT_NAMESPACE = "chartgen-lint"


class Pod(NamedTuple):
    """A pod's spec, and its place in its object."""

    at: Keys
    spec: Object


class Container(NamedTuple):
    """A container, and its place in its object."""

    at: Keys
    spec: Object

    @property
    def name(self) -> str:
        """Return its name, which a broken template may omit."""
        return str(self.spec.get("name", "without a name"))


def title(thing: Object) -> str:
    """Return an object's kind and name, for messages."""
    return f"{thing.get('kind', 'object')} {metadata(thing).get('name', 'without a name')}"


def metadata(thing: Object) -> Object:
    """Return the metadata of an object, an empty map when a broken template renders it empty or as another type."""
    found = thing.get("metadata")
    return found if isinstance(found, dict) else {}


def maps(node: object, at: Keys = ()) -> Iterator[tuple[Keys, Object]]:
    """Yield all maps of an object, outer ones first."""
    left: list[tuple[Keys, object]] = [(at, node)]
    while left:
        at, node = left.pop()
        if isinstance(node, dict):
            yield at, node
            left += [((*at, key), child) for key, child in reversed(node.items()) if isinstance(child, (dict, list))]
        elif isinstance(node, list):
            left += [((*at, index), node[index]) for index in reversed(range(len(node)))]


def texts(node: object, at: Keys = ()) -> Iterator[tuple[Keys, str]]:
    """Yield all texts of an object, keys of maps included, each with its place."""
    if isinstance(node, str):
        yield at, node
    elif isinstance(node, dict):
        for key, child in node.items():
            yield (*at, key), str(key)
            yield from texts(child, (*at, key))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from texts(child, (*at, index))


def pods(thing: Object) -> Iterator[Pod]:
    """Yield all pod specs in an object of any kind: maps with a list of containers."""
    if thing.get("kind") == "CustomResourceDefinition":
        return
    for at, node in maps(thing):
        if isinstance(node.get("containers"), list):
            yield Pod(at, node)


def is_template(thing: Object, pod: Pod) -> bool:
    """Report whether a pod's spec is complete, not an addition of a custom resource to its operator's pods."""
    return thing.get("kind") == "Pod" or any("emplate" in str(key) for key in pod.at[-2:-1])


def claimed_volumes(thing: Object, pod: Pod) -> set[Any]:
    """Return the names of volumes that a StatefulSet creates for its pods with `volumeClaimTemplates`."""
    owner: Any = thing
    for key in pod.at[:-2]:
        owner = owner[key]
    found = items(owner, "volumeClaimTemplates") if isinstance(owner, dict) else ()
    return {metadata(claim).get("name") for _, claim in found}


def containers(pod: Pod) -> Iterator[Container]:
    """Yield the containers of a pod, init containers first."""
    for key in ("initContainers", "containers"):
        for index, spec in items(pod.spec, key):
            yield Container((*pod.at, key, index), spec)


def all_containers(thing: Object) -> Iterator[Container]:
    """Yield the containers of all pods of an object."""
    for pod in pods(thing):
        yield from containers(pod)


def items(node: Object, key: str) -> Iterator[tuple[int, Object]]:
    """Yield the maps of a list with their indexes; nothing for other types."""
    found = node.get(key)
    for index, item in enumerate(found if isinstance(found, list) else ()):
        if isinstance(item, dict):
            yield index, item


def entries(thing: Object, key: str) -> Iterator[tuple[Keys, str, Any]]:
    """Yield the entries of all maps with one name, at any place: key path, key and value of each."""
    for at, node in maps(thing):
        inner = node.get(key)
        for name, value in inner.items() if isinstance(inner, dict) else ():
            yield (*at, key, name), name, value


def repeated(named: Iterable[tuple[Keys, Any]]) -> Iterator[tuple[Keys, Any]]:
    """Yield each repeated name, with the place of its second occurrence."""
    seen: Counter[Any] = Counter()
    for at, name in named:
        seen[name] += 1
        if seen[name] == 2:
            yield at, name
