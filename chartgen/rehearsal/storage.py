"""Stand-ins for the storage classes that a cluster brings, so that claims on them find a volume in a rehearsal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from chartgen.kube import STORAGE_CLASS, Object

# Named by no claim: the class that the cluster marks as its default.
DEFAULT_CLASS = "default"
_DRIVER = "simulated.chartgen.invalid"  # RFC 2606: nobody's
# kubernetes.io, Well-Known Annotations
_IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"


def foreign_classes(objects: Iterable[Object]) -> dict[str, Object]:
    """Return a stand-in for each storage class that claims among objects ask for and that is not one of them.

    A claim without `storageClassName` asks for the cluster's default class; one with an empty name, or with the name
    of its volume, asks for none. Claims are also found inside of pods and of jobs.

    Args:
        objects: Rendered objects.

    Returns:
        Name of the class -> its manifest.
    """
    found = list(objects)
    own = {item["metadata"]["name"] for item in found if item["kind"] == STORAGE_CLASS.name}
    asked = {spec.get("storageClassName") for spec in _claims(found) if not spec.get("volumeName")}
    names = sorted(name for name in asked if name and name not in own)
    classes = {name: _stand_in(name, default=False) for name in names}
    if None in asked:
        free = DEFAULT_CLASS if DEFAULT_CLASS not in own else f"{DEFAULT_CLASS}-class"
        classes[free] = _stand_in(free, default=True)
    return classes


def _claims(data: Any) -> Iterator[dict[str, Any]]:
    """Find the specs of claims anywhere: only they have both of these fields."""
    if isinstance(data, dict):
        if "accessModes" in data and "resources" in data:
            yield data
        for value in data.values():
            yield from _claims(value)
    elif isinstance(data, list):
        for value in data:
            yield from _claims(value)


def _stand_in(name: str, *, default: bool) -> Object:
    return {
        "apiVersion": STORAGE_CLASS.api_version,
        "kind": STORAGE_CLASS.name,
        "metadata": {"name": name, "annotations": {_IS_DEFAULT: str(default).lower()}},
        "provisioner": _DRIVER,
        "volumeBindingMode": "Immediate",
    }
