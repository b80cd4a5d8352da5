"""Rules for all objects of a release together: unique names, and selectors and ports that match a pod."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from chartgen.findings import PartProblem, Rule
from chartgen.kube.controllers import group_of
from chartgen.kube.manifest_walk import (
    LINT_RELEASE,
    Container,
    Keys,
    Object,
    Pod,
    containers,
    is_template,
    items,
    maps,
    metadata,
    pods,
    repeated,
)
from chartgen.linter.references import Wired, may_write, names_are_in_the_release


def unique_objects(things: Sequence[Object]) -> Iterator[Wired]:
    """No two objects of a release have the same kind and name: the second replaces the first, or the install fails."""
    names: list[tuple[Keys, Any]] = []
    for index, thing in enumerate(things):
        meta, group = metadata(thing), group_of(str(thing.get("apiVersion")))
        names.append(((index,), (group, thing.get("kind"), meta.get("namespace"), meta.get("name"))))
    for at, _ in repeated(names):
        yield Wired(int(at[0]), PartProblem("is in the release twice", at=("metadata", "name")))


def selectors_match_pods(things: Sequence[Object]) -> Iterator[Wired]:
    """A Service or workload selects pods of the release: a selector without pods fails without a message.

    What labels pods have that an operator makes for an object of the release is unknown: a selector with a label of the
    operator's domain is not judged, and in a release whose account may create or label pods, no NetworkPolicy and no
    Service with a label that its own pods lack. In kube-system are pods of Kubernetes itself.
    """
    templates = [template for thing in things for template in _templates(thing)]
    domains = {domain for thing in things for domain in _domains(group_of(str(thing.get("apiVersion"))))}
    names = {name for labels, _ in templates for name in labels}
    foreign = any(may_write(thing, _WORKLOADS) for thing in things)
    for index, thing in enumerate(things):
        at, wanted = _selector(thing)
        policy = thing.get("kind") == "NetworkPolicy"
        shared = policy or thing.get("kind") == "Service"
        own = templates if shared else list(_templates(thing))
        others = foreign and (policy or not wanted.keys() <= names)
        if _operated(wanted, domains) or (shared and (others or metadata(thing).get("namespace") == "kube-system")):
            continue
        if wanted and own and not any(_meets(labels, wanted) for labels, _ in own):
            labels = ", ".join(f"{name}={value}" for name, value in sorted(wanted.items()))
            yield Wired(index, PartProblem(f"selects pods with {labels}, which no pod of the release has", _LABELS, at))


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
                yield Wired(index, PartProblem(message, at=(*at[:1], "ports", number)))


def probes_reach_a_port(things: Sequence[Object]) -> Iterator[Wired]:
    """A probe asks a port of its container: a named one is declared there, a number is anywhere in the release.

    A number needs no declaration (see above), so one counts only if another probe of the container asks a declared
    port, no other text of the release has the number, and no expression of the template makes it, which may declare it
    with other values.
    """
    for index, thing in enumerate(things):
        for pod in (pod for pod in pods(thing) if is_template(thing, pod)):
            for container in containers(pod):
                yield from _closed(index, things, pod, container)


def _closed(index: int, things: Sequence[Object], pod: Pod, container: Container) -> Iterator[Wired]:
    own = {port.get("name") for _, port in items(container.spec, "ports")}
    probed = [
        ((probe, field, "port"), ((container.spec.get(probe) or {}).get(field) or {}).get("port"))
        for probe in ("livenessProbe", "readinessProbe", "startupProbe")
        for field in ("httpGet", "tcpSocket")
    ]
    declared = _ports(pod)
    for at, port in probed:
        named = isinstance(port, str) and not port.isdigit() and port not in own
        others = port not in declared and any(other in declared for _, other in probed)
        if named or (isinstance(port, int) and others and not _times(things, port)):
            message = f"container {container.name} has no port {port}, which its {at[0]} asks"
            yield Wired(index, PartProblem(message, at=(*container.at, *at), is_satisfied=None if named else bool))


def _times(node: object, number: int) -> int:
    """Count a number among the numbers and in the texts of objects, probes left out."""
    if isinstance(node, dict):
        return sum(_times(child, number) for key, child in node.items() if not str(key).endswith("Probe"))
    if isinstance(node, list | tuple):
        return sum(_times(child, number) for child in node)
    return int(node == number if isinstance(node, int) else str(number) in str(node))


def selectors_outlast_a_version(things: Sequence[Object]) -> Iterator[Wired]:
    """No field that an upgrade cannot change has the chart's version: labels of selectors, labels and images of a Job.

    The API server refuses to change them; a hook is created again, and a Job that expires is gone by then.
    """
    for index, thing in enumerate(things):
        spec = thing.get("spec") or {}
        if thing.get("kind") in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"):
            at, labels = _selector(thing)
            at = (*at, "matchLabels")
        elif thing.get("kind") == "Job" and "ttlSecondsAfterFinished" not in spec:
            if any(str(name).endswith("/hook") for name in metadata(thing).get("annotations") or {}):
                continue
            at = ("spec", "template", "metadata", "labels")
            labels = metadata(spec.get("template") or {}).get("labels") or {}
            if not re.search(r"[0-9]", str(metadata(thing).get("name"))):  # such as a version, a revision or a digest
                fault = PartProblem("runs an image of the chart's version", at=("metadata",), is_satisfied=_versioned)
                yield Wired(index, fault)
        else:
            continue
        for name in _VERSIONS & labels.keys():
            version = re.sub(r"[^0-9]+", "-", str(labels[name])).strip("-")
            if version not in re.sub(r"[^0-9]+", "-", str(metadata(thing).get("name"))):
                yield Wired(index, PartProblem(f"has the label {name}, which changes with the chart", at=(*at, name)))


def _versioned(template: str) -> bool:
    """Report whether the template of a Job takes the tag of an image from Chart.yaml."""
    return any(_JOB.search(part) and _IMAGE.search(part) for part in re.split(r"(?m)^---", template))


WIRING = (
    Rule.of(names_are_in_the_release, step="wiring", remedy="correct the name, or add what it names"),
    Rule.of(probes_reach_a_port, step="wiring", remedy="name a port of the container"),
    Rule.of(
        selectors_outlast_a_version, step="wiring", remedy="remove the label, or put the version into a Job's name"
    ),
    Rule.of(unique_objects, step="wiring", remedy="rename one of the two"),
    Rule.of(selectors_match_pods, step="wiring"),
    Rule.of(service_ports_are_served, step="wiring", remedy="name a port of a container"),
)

# helm.sh/docs/chart_best_practices/labels: those that change with the chart.
_VERSIONS = frozenset(("app.kubernetes.io/version", "helm.sh/chart"))
_JOB = re.compile(r"(?m)^kind: *Job\b")
_IMAGE = re.compile(r"(?m)^[ -]*image:.*\.Chart\.(?:App)?Version\b")
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
    policy = thing.get("kind") == "NetworkPolicy"
    key = "podSelector" if policy else "selector"
    labels = (thing.get("spec") or {}).get(key)
    if thing.get("kind") != "Service" and isinstance(labels, dict):
        labels = labels.get("matchLabels")
    if not isinstance(labels, dict):
        return (), {}
    # a policy without a label of the release may be for pods of others
    ours = not policy or any(str(label).startswith(LINT_RELEASE) for label in labels.values())
    return (("spec", key), labels) if ours else ((), {})


def _domains(group: str) -> Iterator[str]:
    """Yield the domains in which the operator of an API group labels pods; none for groups of Kubernetes itself."""
    if "." not in group or group.endswith(_KUBERNETES):
        return
    yield from (group, *_LABEL_DOMAINS.get(group, ()))


def _operated(wanted: Object, domains: Iterable[str]) -> bool:
    """Report whether a selector has a label of an operator's domain, or of one above or below its API group."""
    prefixes = {name.rpartition("/")[0] for name in wanted} - {"", "k8s.io", "kubernetes.io"}
    return any(
        label == domain or domain.endswith(f".{label}") or label.endswith(f".{domain}")
        for label in prefixes
        for domain in domains
    )


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
