"""Names inside one release: one table of the fields that name another object of it, or a key of one.

Most names lead out of a release, to what a site, an operator or a hook makes. A name that the release lacks counts only
if the release evidently owns it: it begins with the release's name, or it is a slip of the name of one of its objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from chartgen.data.api_schemas import kubernetes_groups, kubernetes_versions
from chartgen.errors import did_you_mean
from chartgen.findings import PartProblem
from chartgen.kube.controllers import group_of
from chartgen.kube.manifest_walk import LINT_NAMESPACE, LINT_RELEASE, Keys, Object, is_template, metadata, pods, texts


class Wired(NamedTuple):
    """A rule's complaint about the object with an index."""

    number: int
    complaint: PartProblem


class ReferenceField(NamedTuple):
    """A field that names another object.

    Args:
        path: Its path; `[]` is each item of a list.
        kind: The kind of the object; empty where the field has a `kind` of its own.
        name: The field below `path` with the name; empty if it is the name itself.
        key: The path below `path` of a key of the object; empty without one.
    """

    path: str
    kind: str
    name: str = ""
    key: str = ""


_CONTAINERS = ("initContainers", "containers")
_VOLUMES = ("volumes[]", "volumes[].projected.sources[]")
# kubernetes v1.36.3: core/v1 PodSpec; then the specs of the kinds, and the webhooks of admissionregistration/v1.
_OF_PODS = (
    ReferenceField("serviceAccountName", "ServiceAccount"),
    ReferenceField("volumes[].persistentVolumeClaim", "PersistentVolumeClaim", "claimName"),
    *(ReferenceField(f"{volume}.configMap", "ConfigMap", "name", "items[].key") for volume in _VOLUMES),
    ReferenceField("volumes[].secret", "Secret", "secretName", "items[].key"),
    ReferenceField("volumes[].projected.sources[].secret", "Secret", "name", "items[].key"),
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
_OF_KINDS = {
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


class Reference(NamedTuple):
    """A name in an object, and what it names."""

    number: int
    at: Keys
    kind: str
    name: str
    keys: tuple[tuple[Keys, Any], ...]


def names_are_in_the_release(things: Sequence[Object]) -> Iterator[Wired]:
    """A name of an account, role, Service, ConfigMap, Secret, claim or workload of the release, and a key, exists.

    Counted are names that begin with the release's name, or are one slip from the name of an object of the release.
    Names that another text of the release has, such as the arguments of a job that makes a Secret, are trusted.
    """
    references = list(_references(things))
    by_name = {(str(each.get("kind")), str(metadata(each).get("name"))): each for each in things}
    release = _Texts(things, references)
    for reference in references:
        found = by_name.get((reference.kind, reference.name))
        if found is not None:
            yield from _lacking(reference, found)
        elif release.owns(reference, [name for kind, name in by_name if kind == reference.kind]):
            hint = did_you_mean(reference.name, [name for kind, name in by_name if kind == reference.kind])
            message = f"names {reference.kind} {reference.name}, which the release does not contain"
            yield Wired(reference.number, PartProblem(message, hint, reference.at))


class _Texts:
    """The texts of a release beside its references, which show what else makes an object."""

    def __init__(self, things: Sequence[Object], references: Sequence[Reference]) -> None:
        places = {(reference.number, reference.at) for reference in references}
        self.others = "\n".join(
            text
            for number, thing in enumerate(things)
            for at, text in texts(thing)
            if (number, at) not in places and at[:1] != ("metadata",) and "labels" not in at and "matchLabels" not in at
        )
        own = kubernetes_groups(kubernetes_versions()[-1])
        # an operator names what it makes after its object
        self.operated = tuple(
            str(metadata(thing).get("name")) for thing in things if group_of(str(thing.get("apiVersion"))) not in own
        )

    def owns(self, reference: Reference, names: Sequence[str]) -> bool:
        """Report whether the release should contain what a reference names."""
        name = reference.name
        spoken = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", self.others)
        if (spoken and name != LINT_RELEASE) or name.startswith(self.operated):
            return False
        ours = bool(names) and re.match(rf"{LINT_RELEASE}(-|\Z)", name)
        return bool(ours) or any(_is_slip(name, each) for each in names)


def _is_slip(name: str, other: str) -> bool:
    """Report whether a name is another one with one letter more, less or changed, or two swapped, no digit."""
    begin = _shared(name, other)
    left, right = name[begin:], other[begin:]
    end = _shared(left[::-1], right[::-1])
    left, right = left[: len(left) - end], right[: len(right) - end]
    differs_once = max(len(left), len(right)) == 1 or (len(left) == 2 and left == right[::-1])
    return len(name) >= 6 and differs_once and not re.search("[0-9]", left + right)


def _shared(name: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(name, other, strict=False)) if a != b), min(len(name), len(other)))


def _lacking(reference: Reference, found: Object) -> Iterator[Wired]:
    """Report a key that an object of the release lacks; an object without data is filled by something else."""
    known = _keys(found)
    for at, key in reference.keys if known else ():
        if key not in known:
            hint = did_you_mean(str(key), [each for each in known if isinstance(each, str)])
            message = f"names {key} of {reference.kind} {reference.name}, which has no such {at[-1]}"
            yield Wired(reference.number, PartProblem(message, hint, at))


def _keys(thing: Object) -> set[Any]:
    if thing.get("kind") == "Service":
        ports = (thing.get("spec") or {}).get("ports") or ()
        return {port.get(key) for port in ports for key in ("name", "port")} - {None}
    if thing.get("type") == "kubernetes.io/service-account-token":
        return set()
    return {key for part in ("data", "stringData", "binaryData") for key in thing.get(part) or ()}


def _references(things: Sequence[Object]) -> Iterator[Reference]:
    for number, thing in enumerate(things):
        roots: list[tuple[Keys, Object, ReferenceField]] = [
            ((), thing, field) for field in _OF_KINDS.get(str(thing.get("kind")), ())
        ]
        roots += [(pod.at, pod.spec, field) for pod in pods(thing) if is_template(thing, pod) for field in _OF_PODS]
        for at, root, field in roots:
            for place, node in _at(root, field.path.split("."), at):
                yield from _reference(number, place, node, field)


def _reference(number: int, at: Keys, node: Any, field: ReferenceField) -> Iterator[Reference]:
    given = node if isinstance(node, dict) else {}
    name = given.get(field.name) if field.name else node
    kind = field.kind or given.get("kind")
    elsewhere = given.get("namespace") not in (None, "", LINT_NAMESPACE) or given.get("optional")
    if isinstance(name, str) and name and isinstance(kind, str) and not elsewhere:
        keys = tuple(_at(given, field.key.split("."), at)) if field.key else ()
        if field.key == "port":
            keys = tuple(((*place, key), port[key]) for place, port in keys for key in port if port[key])
        yield Reference(number, (*at, field.name) if field.name else at, kind, name, keys)


def _at(node: Any, path: Sequence[str], at: Keys) -> Iterator[tuple[Keys, Any]]:
    """Yield the values at a path, each with its place."""
    if not path:
        yield at, node
        return
    key = path[0].removesuffix("[]")
    value = node.get(key) if isinstance(node, dict) else None
    if path[0].endswith("[]"):
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _at(item, path[1:], (*at, key, index))
    elif value is not None:
        yield from _at(value, path[1:], (*at, key))
