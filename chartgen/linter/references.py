"""Names inside one release: another object of it, or a key of one.

Most names lead out of a release, to what a site, an operator or a hook makes. A name that the release lacks counts only
if the release evidently owns it: it begins with the release's name, or it is a slip of the name of one of its objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from chartgen.data.api_schemas import kubernetes_groups, kubernetes_versions
from chartgen.errors import did_you_mean, is_slip
from chartgen.findings import PartProblem
from chartgen.kube.controllers import group_of
from chartgen.kube.manifest_walk import LINT_NAMESPACE, LINT_RELEASE, Object, is_template, items, metadata, pods, texts
from chartgen.kube.references import OF_KINDS, OF_PODS, Reference, references


class Wired(NamedTuple):
    """A rule's complaint about the object with an index."""

    number: int
    complaint: PartProblem


_SHORTEST = 6  # letters of the shorter name


def names_are_in_the_release(things: Sequence[Object]) -> Iterator[Wired]:
    """A name of an account, role, Service, ConfigMap, Secret, claim or workload of the release, and a key, exists.

    Counted are names that begin with the release's name, or are one slip from the name of an object of the release.
    Names that another text of the release has, such as the arguments of a job that makes a Secret, are trusted. If
    a role of the release may write the ConfigMap or Secret, its workloads may make it, or its key, as they run: only
    slips count.
    """
    found = list(_references(things))
    # hooks, such as those of a test, do not hide objects of the same name
    ordered = sorted(things, key=lambda each: "helm.sh/hook" not in (metadata(each).get("annotations") or {}))
    by_name = {(str(each.get("kind")), str(metadata(each).get("name"))): each for each in ordered}
    release = _Texts(things, found)
    for number, reference in found:
        named = by_name.get((reference.kind, reference.name))
        if named is not None:
            yield from (Wired(number, lacking) for lacking in _lacking(reference, named, release))
        elif release.owns(reference, [name for kind, name in by_name if kind == reference.kind]):
            hint = did_you_mean(reference.name, [name for kind, name in by_name if kind == reference.kind])
            message = f"names {reference.kind} {reference.name}, which the release does not contain"
            yield Wired(number, PartProblem(message, hint, reference.at))


def may_write(thing: Object, resources: frozenset[str], name: str = "") -> bool:
    """Report whether an object is a role that may create or change any of some resources, or the one of a name."""
    return thing.get("kind") in ("Role", "ClusterRole") and any(
        _WRITES.intersection(rule.get("verbs") or ())
        and resources.intersection(rule.get("resources") or ())
        and (not name or name in (rule.get("resourceNames") or (name,)))
        for _, rule in items(thing, "rules")
    )


_WRITES = frozenset(("create", "update", "patch", "*"))


class _Texts:
    """The texts of a release beside its references, which show what else makes an object."""

    def __init__(self, things: Sequence[Object], found: Sequence[tuple[int, Reference]]) -> None:
        self.things = things
        places = {(number, reference.at) for number, reference in found}
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
        if any(is_slip(name, each, _SHORTEST) for each in names):
            return True
        ours = bool(names) and re.match(rf"{LINT_RELEASE}(-|\Z)", name)
        return bool(ours) and not self.writes(reference)

    def writes(self, reference: Reference) -> bool:
        """Report whether a workload of the release may make the ConfigMap or Secret that a reference names."""
        resources = frozenset((f"{reference.kind.lower()}s", "*"))
        return reference.kind in ("ConfigMap", "Secret") and any(
            may_write(each, resources, reference.name) for each in self.things
        )


def _lacking(reference: Reference, found: Object, release: _Texts) -> Iterator[PartProblem]:
    """Report a key that an object of the release lacks; an object without data is filled by something else."""
    known = _keys(found)
    for at, key in reference.keys if known else ():
        slip = any(is_slip(str(key), str(each), _SHORTEST) for each in known)
        if key not in known and (slip or not release.writes(reference)):
            hint = did_you_mean(str(key), [each for each in known if isinstance(each, str)])
            message = f"names {key} of {reference.kind} {reference.name}, which has no such {at[-1]}"
            yield PartProblem(message, hint, at)


def _keys(thing: Object) -> set[Any]:
    if thing.get("kind") == "Service":
        ports = (thing.get("spec") or {}).get("ports") or ()
        return {port.get(key) for port in ports for key in ("name", "port")} - {None}
    if thing.get("type") == "kubernetes.io/service-account-token":
        return set()
    return {key for part in ("data", "stringData", "binaryData") for key in thing.get(part) or ()}


def _references(things: Sequence[Object]) -> Iterator[tuple[int, Reference]]:
    """Yield the references of a release to its own namespace, each with the number of its object."""
    for number, thing in enumerate(things):
        found = [*references(thing, OF_KINDS.get(str(thing.get("kind")), ()))]
        for pod in (pod for pod in pods(thing) if is_template(thing, pod)):
            found += references(pod.spec, OF_PODS, pod.at)
        for each in found:
            if each.namespace in ("", LINT_NAMESPACE) and not each.optional:
                yield number, each
