"""Rules for all objects of a release together: unique names, and selectors and ports that match a pod."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from chartgen.errors import did_you_mean
from chartgen.findings import Complaint, Rule
from chartgen.kube.controllers import group_of
from chartgen.kube.manifest_walk import Keys, Object, Pod, containers, inputs, items, maps, metadata, pods, repeated


class Wired(NamedTuple):
    """A rule's complaint about the object with an index."""

    number: int
    complaint: Complaint


def unique_objects(things: Sequence[Object]) -> Iterator[Wired]:
    """No two objects of a release have the same kind and name: the second replaces the first, or the install fails."""
    names = [
        (
            group_of(str(thing.get("apiVersion"))),
            thing.get("kind"),
            metadata(thing).get("namespace"),
            metadata(thing).get("name"),
        )
        for thing in things
    ]
    for (index, *_), _name in repeated(((index,), name) for index, name in enumerate(names)):
        message = "is in the release twice"
        yield Wired(int(index), Complaint(message, at=("metadata", "name")))


def selectors_match_pods(things: Sequence[Object]) -> Iterator[Wired]:
    """A Service or workload selects pods of the release: a selector without pods fails without a message.

    What labels pods have that an operator makes for an object of the release is unknown: a selector with a label of the
    operator's domain is not judged, and in a release whose account may create or label pods, no Service with a label
    that its own pods lack.
    """
    templates = [template for thing in things for template in _templates(thing)]
    domains = {domain for thing in things for domain in _domains(group_of(str(thing.get("apiVersion"))))}
    names = {name for labels, _ in templates for name in labels}
    foreign = any(_may_make_pods(thing) for thing in things)
    for index, thing in enumerate(things):
        at, wanted = _selector(thing)
        own = list(_templates(thing)) if thing.get("kind") != "Service" else templates
        if _operated(wanted, domains) or (thing.get("kind") == "Service" and foreign and not wanted.keys() <= names):
            continue
        if wanted and own and not any(_meets(labels, wanted) for labels, _ in own):
            told = ", ".join(f"{name}={value}" for name, value in sorted(wanted.items()))
            yield Wired(index, Complaint(f"selects pods with {told}, which no pod of the release has", _LABELS, at))


def service_ports_are_served(things: Sequence[Object]) -> Iterator[Wired]:
    """A named target port of a Service is a port of the pods that it selects.

    A port number needs no declaration: a container that listens on it is reachable (Kubernetes API, core/v1
    Container.ports).
    """
    templates = [template for thing in things for template in _templates(thing)]
    for index, thing in enumerate(things):
        at, wanted = _selector(thing)
        if thing.get("kind") != "Service" or not wanted:
            continue
        served = [_ports(pod) for labels, pod in templates if _meets(labels, wanted)]
        for number, port in items(thing.get("spec") or {}, "ports"):
            target = port.get("targetPort", port.get("port"))
            if isinstance(target, str) and any(served) and not any(target in ports for ports in served):
                message = f"the pods that it selects have no port {target}"
                yield Wired(index, Complaint(message, at=(*at[:1], "ports", number)))


def inputs_of_the_run_exist(things: Sequence[Object]) -> Iterator[Wired]:
    """A ConfigMap or Secret with the run's name in its own is one of the release: its pods wait for it forever."""
    own = {(str(thing.get("kind")), str(metadata(thing).get("name"))) for thing in things}
    for index, thing in enumerate(things):
        for labels, pod in _templates(thing):
            run = str(labels.get("run", ""))
            for at, kind, name in inputs(pod.spec) if _DIGEST.search(run) else ():
                if name.startswith(f"{run}-") and (kind, name) not in own:
                    hint = did_you_mean(name, [each for known, each in own if known == kind])
                    message = f"reads {kind} {name}, which the release does not contain"
                    yield Wired(index, Complaint(message, hint, (*pod.at, *at)))


WIRING = (
    Rule.of(inputs_of_the_run_exist, step="wiring", remedy="add it to manifests/ of the fragment, or correct the name"),
    Rule.of(unique_objects, step="wiring", remedy="rename one of the two"),
    Rule.of(selectors_match_pods, step="wiring"),
    Rule.of(service_ports_are_served, step="wiring", remedy="name a port of a container"),
)

_DIGEST = re.compile(r"-[0-9a-f]{8}$")  # ends the name of a run of chartgen's charts
_LABELS = "make the selector equal to labels of the pod template"


def _templates(thing: Object) -> Iterator[tuple[Object, Pod]]:
    """Yield the labels and the spec of each pod that an object describes."""
    if thing.get("kind") == "Pod":
        yield from ((metadata(thing).get("labels") or {}, pod) for pod in pods(thing))
        return
    for at, node in maps(thing):
        spec = node.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield (node.get("metadata") or {}).get("labels") or {}, Pod((*at, "spec"), spec)


def _selector(thing: Object) -> tuple[Keys, Object]:
    """Return the labels that a Service, or a workload with matchLabels, selects; empty if they are uncertain."""
    selector = (thing.get("spec") or {}).get("selector")
    if not isinstance(selector, dict):
        return (), {}
    if thing.get("kind") == "Service":
        return ("spec", "selector"), selector
    labels = selector.get("matchLabels")
    return ("spec", "selector"), labels if isinstance(labels, dict) else {}


def _may_make_pods(thing: Object) -> bool:
    """Report whether an object is a role that may create pods, or workloads, or change the labels of pods."""
    return thing.get("kind") in ("Role", "ClusterRole") and any(
        _WRITES.intersection(rule.get("verbs") or ()) and _WORKLOADS.intersection(rule.get("resources") or ())
        for _, rule in items(thing, "rules")
    )


def _domains(group: str) -> Iterator[str]:
    """Yield the domains in which the operator of an API group labels pods; none for groups of Kubernetes itself."""
    if "." not in group or group.endswith(_KUBERNETES):
        return
    yield from (group, *_LABEL_DOMAINS.get(group, ()))


def _operated(wanted: Object, domains: Iterable[str]) -> bool:
    """Report whether a selector has a label of an operator's domain, or of one above or below its API group."""
    asked = {name.rpartition("/")[0] for name in wanted} - {"", "k8s.io", "kubernetes.io"}
    return any(
        label == domain or domain.endswith(f".{label}") or label.endswith(f".{domain}")
        for label in asked
        for domain in domains
    )


_WRITES = frozenset(("create", "update", "patch", "*"))
_WORKLOADS = frozenset(("pods", "replicasets", "deployments", "daemonsets", "statefulsets", "jobs", "*"))
# Groups of Kubernetes itself; CRDs of its projects are in x-k8s.io.
_KUBERNETES = (".kubernetes.io", ".k8s.io")
# API groups whose operators label pods in a domain of another name: kubernetes-sigs/jobset v0.12.0,
# api/jobset/v1alpha2/jobset_types.go; kubernetes-sigs/lws v0.10.0, README; a TrainJob makes a JobSet.
_LABEL_DOMAINS = {
    "jobset.x-k8s.io": ("jobset.sigs.k8s.io",),
    "leaderworkerset.x-k8s.io": ("leaderworkerset.sigs.k8s.io",),
    "trainer.kubeflow.org": ("jobset.sigs.k8s.io",),
}


def _meets(labels: Object, wanted: Object) -> bool:
    ours = {name: value for name, value in wanted.items() if not name.startswith(_CONTROLLERS)}
    return all(labels.get(name) == value for name, value in ours.items())


# Labels that controllers add to their pods: Kubernetes' own (kubernetes.io, Well-Known Labels; those of
# Jobs have an older spelling without a domain), and those of JobSet, LeaderWorkerSet, Volcano, Kubeflow and KubeRay.
_CONTROLLERS = (
    *("job-name", "controller-uid", "batch.kubernetes.io/", "statefulset.kubernetes.io/", "apps.kubernetes.io/"),
    *("pod-template-hash", "controller-revision-hash", "pod-template-generation"),
    *("jobset.sigs.k8s.io/", "leaderworkerset.sigs.k8s.io/", "volcano.sh/", "training.kubeflow.org/"),
    *("trainer.kubeflow.org/", "ray.io/"),
)


def _ports(pod: Pod) -> set[Any]:
    stated = [port for container in containers(pod) for _, port in items(container.spec, "ports")]
    return {port.get(key) for port in stated for key in ("name", "containerPort")} - {None}
