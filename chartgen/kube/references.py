"""The fields that name another object of the API, or a key of one: one table for the parts of pods, one for kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from chartgen.kube.kinds import Object
from chartgen.kube.manifest_walk import Keys


class ReferenceField(NamedTuple):
    """A field that names another object."""

    path: str  # its path; `[]` is each item of a list
    kind: str  # the kind of the object; empty where the field has a `kind` of its own
    name: str = ""  # the field below `path` with the name; empty if it is the name itself
    key: str = ""  # the path below `path` of a key of the object; empty without one


class Reference(NamedTuple):
    """A name in an object, and what it names."""

    at: Keys
    kind: str
    name: str
    keys: tuple[tuple[Keys, Any], ...]  # the keys of the object, each with its place
    namespace: str  # the namespace, if the field has one
    optional: bool


_CONTAINERS = ("initContainers", "containers")
_VOLUMES = ("volumes[]", "volumes[].projected.sources[]")
# kubernetes v1.36.3: core/v1 PodSpec; then the specs of the kinds, and the webhooks of admissionregistration/v1.
OF_PODS = (
    ReferenceField("serviceAccountName", "ServiceAccount"),
    ReferenceField("volumes[].persistentVolumeClaim", "PersistentVolumeClaim", "claimName"),
    *(ReferenceField(f"{volume}.configMap", "ConfigMap", "name", "items[].key") for volume in _VOLUMES),
    ReferenceField("volumes[].secret", "Secret", "secretName", "items[].key"),
    ReferenceField("volumes[].projected.sources[].secret", "Secret", "name", "items[].key"),
    ReferenceField("volumes[].csi.nodePublishSecretRef", "Secret", "name"),
    *(
        ReferenceField(f"{container}[].{path}", kind, "name", key)
        for container in _CONTAINERS
        for path, kind, key in (
            ("env[].valueFrom.configMapKeyRef", "ConfigMap", "key"),
            ("env[].valueFrom.secretKeyRef", "Secret", "key"),
            ("envFrom[].configMapRef", "ConfigMap", ""),
            ("envFrom[].secretRef", "Secret", ""),
        )
    ),
)
_BINDING = (ReferenceField("roleRef", "", "name"), ReferenceField("subjects[]", "", "name"))
_HOOK = (ReferenceField("webhooks[].clientConfig.service", "Service", "name"),)
OF_KINDS = {
    "StatefulSet": (ReferenceField("spec.serviceName", "Service"),),
    "HorizontalPodAutoscaler": (ReferenceField("spec.scaleTargetRef", "", "name"),),
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "ValidatingWebhookConfiguration": _HOOK,
    "MutatingWebhookConfiguration": _HOOK,
    "Ingress": (
        ReferenceField("spec.defaultBackend.service", "Service", "name", "port"),
        ReferenceField("spec.rules[].http.paths[].backend.service", "Service", "name", "port"),
    ),
}


def references(root: Object, fields: Iterable[ReferenceField], at: Keys = ()) -> Iterator[Reference]:
    """Yield the references in fields of an object or a pod's spec.

    Args:
        root: The object, or the spec.
        fields: The fields, of `OF_PODS` or `OF_KINDS`.
        at: Key path of the spec in its object.
    """
    for field in fields:
        for place, node in _values(root, field.path.split("."), at):
            yield from _reference(place, node, field)


def _reference(at: Keys, node: Any, field: ReferenceField) -> Iterator[Reference]:
    given = node if isinstance(node, dict) else {}
    name = given.get(field.name) if field.name else node
    kind = field.kind or given.get("kind")
    if isinstance(name, str) and name and isinstance(kind, str):
        keys = tuple(_values(given, field.key.split("."), at)) if field.key else ()
        if field.key == "port":
            keys = tuple(((*place, key), port[key]) for place, port in keys for key in port if port[key])
        place = (*at, field.name) if field.name else at
        yield Reference(place, kind, name, keys, str(given.get("namespace") or ""), bool(given.get("optional")))


def _values(node: Any, path: Sequence[str], at: Keys) -> Iterator[tuple[Keys, Any]]:
    """Yield the values at a path, each with its place."""
    if not path:
        yield at, node
        return
    key = path[0].removesuffix("[]")
    value = node.get(key) if isinstance(node, dict) else None
    if path[0].endswith("[]"):
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _values(item, path[1:], (*at, key, index))
    elif value is not None:
        yield from _values(value, path[1:], (*at, key))
