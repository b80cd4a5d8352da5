"""Structural rules for every rendered object: one small function each, with the name of its finding's id.

A rule takes a rendered object and yields its faults. Helm and the API server miss all of these, or report them only
when machines are already occupied.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from chartgen.findings import PartProblem, Rule
from chartgen.kube import quantities
from chartgen.kube.manifest_walk import (
    LINT_NAMESPACE,
    Container,
    Keys,
    Object,
    Pod,
    all_containers,
    claimed_volumes,
    containers,
    entries,
    is_template,
    items,
    maps,
    metadata,
    pods,
    repeated,
)

GPU = "nvidia.com/gpu"
_HUGE_PAGES = "hugepages-"
# The longest name that a pod, a Job or a label value may have (Kubernetes: RFC 1123 label).
NAME_LIMIT = 63
# https://helm.sh/docs/chart_best_practices/labels/: those marked REC.
STANDARD_LABELS = (
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
)
# Volumes that a webhook's sidecar mounts, not a container of the manifest.
# https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-sidecar
_SIDECAR_VOLUMES = ("gke-gcsfuse-",)
# Namespaces of Kubernetes itself: an object that names one means exactly that one, such as the Role
# extension-apiserver-authentication-reader of every extension API server.
_SYSTEM_NAMESPACES = ("kube-system", "kube-public", "kube-node-lease")


def mounts_have_volumes(thing: Object) -> Iterator[PartProblem]:
    """Every volumeMount names a volume of its pod; JobSet accepts a dangling one, but the pod never starts."""
    for pod in (pod for pod in pods(thing) if is_template(thing, pod)):
        volumes = {volume.get("name") for _, volume in items(pod.spec, "volumes")} | claimed_volumes(thing, pod)
        for container in containers(pod):
            for at, name in _mounts(container):
                if name not in volumes:
                    message = f"container {container.name} mounts volume {name!r}, which the pod does not have"
                    yield PartProblem(message, at=at)


def volumes_are_used(thing: Object) -> Iterator[PartProblem]:
    """Every volume is mounted by a container, or by a sidecar that a webhook adds."""
    for pod in pods(thing):
        used = {name for container in containers(pod) for _, name in _mounts(container)}
        for index, volume in items(pod.spec, "volumes"):
            name = str(volume.get("name"))
            if name not in used and not name.startswith(_SIDECAR_VOLUMES):
                yield PartProblem(f"no container mounts volume {name!r}", at=(*pod.at, "volumes", index))


def _mounts(container: Container) -> Iterator[tuple[Keys, Any]]:
    for key in ("volumeMounts", "volumeDevices"):
        for index, mount in items(container.spec, key):
            yield (*container.at, key, index), mount.get("name")


def unique_environment(thing: Object) -> Iterator[PartProblem]:
    """No container sets a variable twice; server-side apply rejects it (helm issue 31529)."""
    for container in all_containers(thing):
        for at, name in _repeated(container, "env", "name"):
            yield PartProblem(f"container {container.name} sets {name} twice", at=at)


def unique_volumes(thing: Object) -> Iterator[PartProblem]:
    """No two volumes of a pod have the same name."""
    for pod in pods(thing):
        for at, name in _repeated(pod, "volumes", "name"):
            yield PartProblem(f"two volumes are named {name!r}", at=at)


def unique_mount_paths(thing: Object) -> Iterator[PartProblem]:
    """No container mounts two volumes at the same path."""
    for container in all_containers(thing):
        for at, path in _repeated(container, "volumeMounts", "mountPath"):
            yield PartProblem(f"container {container.name} mounts two volumes at {path}", at=at)


def _repeated(part: Pod | Container, key: str, field: str) -> Iterator[tuple[Keys, Any]]:
    return repeated(((*part.at, key, index), item.get(field)) for index, item in items(part.spec, key))


def unique_containers(thing: Object) -> Iterator[PartProblem]:
    """No two containers of a pod, init containers included, have the same name."""
    for pod in pods(thing):
        for at, name in repeated((container.at, container.spec.get("name")) for container in containers(pod)):
            yield PartProblem(f"two containers are named {name!r}", at=at)


def unique_ports(thing: Object) -> Iterator[PartProblem]:
    """No two containers that run together have the same port. A container's port names are unique."""
    for pod in pods(thing):
        numbers = []
        for container in containers(pod):
            ports = [((*container.at, "ports", index), port) for index, port in items(container.spec, "ports")]
            if container.at[-2] == "containers" or container.spec.get("restartPolicy") == "Always":
                numbers += [(at, (port.get("containerPort"), port.get("protocol", "TCP"))) for at, port in ports]
            for at, name in repeated((at, port["name"]) for at, port in ports if "name" in port):
                yield PartProblem(f"two ports of container {container.name} are named {name!r}", "rename one", at)
        for at, (number, _) in repeated(numbers):
            yield PartProblem(f"two containers of the pod have port {number}", "give one of them another port", at)


def annotations_are_json(thing: Object) -> Iterator[PartProblem]:
    """An annotation that resembles JSON is valid JSON: network and device plugins silently drop an invalid one."""
    for at, name, text in entries(thing, "annotations"):
        # those of an alert are texts for people; paths of kubectl and templates of Go begin with {. and {{
        if "etadata" in str(at[-3:-2]) and isinstance(text, str) and re.match(r"\s*(\[|{(?![{.]))", text):
            try:
                json.loads(text)
            except ValueError:
                yield PartProblem(f"annotation {name} looks like JSON but is not", at=at)


def names_fit(thing: Object) -> Iterator[PartProblem]:
    """The object's name, with the longest suffix that its controller adds, has at most 63 characters."""
    name = str(metadata(thing).get("name", ""))
    for made in (name, *_names_made_of(thing, name)):
        if len(made) > NAME_LIMIT and thing.get("kind") not in _LONG_NAMES:
            yield PartProblem(
                f"name {made} has {len(made)} characters, at most {NAME_LIMIT} fit", at=("metadata", "name")
            )


def no_literal_namespace(thing: Object) -> Iterator[PartProblem]:
    """No object sets its own namespace: `helm --namespace` decides."""
    namespace = str(metadata(thing).get("namespace") or LINT_NAMESPACE)
    if namespace in (LINT_NAMESPACE, *_SYSTEM_NAMESPACES):
        return
    # a template that fills in the namespace takes it from the values, which is the user's choice
    literal = re.compile(rf"^\s*(?:-\s*)?namespace:\s*[\"']?{re.escape(namespace)}[\"']?\s*(?:#.*)?$", re.MULTILINE)
    yield PartProblem(
        f"names the namespace {namespace!r}",
        at=("metadata", "namespace"),
        is_satisfied=lambda text: bool(literal.search(text)),
    )


def standard_labels(thing: Object) -> Iterator[PartProblem]:
    """Every object has Helm's recommended labels, so that a release can be found and deleted by label."""
    labels = metadata(thing).get("labels") or {}
    if missing := [label for label in STANDARD_LABELS if label not in labels]:
        yield PartProblem(f"lacks the label {', '.join(missing)}", at=("metadata", "labels"))


def quantities_are_text(thing: Object) -> Iterator[PartProblem]:
    """Quantities are quoted: a bare number changes the object even in an upgrade without changes."""
    if thing.get("kind") == "CustomResourceDefinition":
        return  # here `limits` and `requests` are schemas of fields, not quantities
    found = [entry for key in ("limits", "requests") for entry in entries(thing, key)]
    single = [(at, node, key) for at, node in maps(thing) for key in ("sizeLimit", "nominalQuota")]
    found += [((*at, key), key, node.get(key)) for at, node, key in single]
    for at, name, value in found:
        if isinstance(value, int | float):
            yield PartProblem(f"quantity {name}: {value} is not quoted", at=at)


def gpu_requests_equal_limits(thing: Object) -> Iterator[PartProblem]:
    """Extended resources (GPUs, fabric devices) and huge pages cannot be overcommitted: a request equals its limit."""
    for container in all_containers(thing):
        resources = container.spec.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name, request in requests.items():
            extended = "/" in name or name.startswith(_HUGE_PAGES)
            if extended and _amount(limits.get(name)) != _amount(request):
                message = f"container {container.name} requests {name}: {request}, its limit is {limits.get(name)}"
                yield PartProblem(message, at=(*container.at, "resources", "requests", name))


def _amount(text: Any) -> Any:
    """Return a quantity as a number, and any other text unchanged."""
    try:
        return quantities.read_quantity(text)
    except (TypeError, ValueError):
        return text


def huge_pages_come_with_memory(thing: Object) -> Iterator[PartProblem]:
    """A container that asks for huge pages also asks for cpu or memory; the API server rejects its pod otherwise."""
    for container in all_containers(thing):
        resources = container.spec.get("resources") or {}
        kinds = {name: kind for kind in ("limits", "requests") for name in resources.get(kind) or {}}
        for name, kind in kinds.items():
            if name.startswith(_HUGE_PAGES) and kinds.keys().isdisjoint(("cpu", "memory")):
                message = f"container {container.name} asks for {name}, and for neither cpu nor memory"
                yield PartProblem(message, at=(*container.at, "resources", kind, name))


def gpu_pods_tolerate(thing: Object) -> Iterator[PartProblem]:
    """A pod that asks for GPUs tolerates the taint of GPU machines."""
    for pod in pods(thing):
        asks = any(GPU in ((each.spec.get("resources") or {}).get("limits") or {}) for each in containers(pod))
        keys = [toleration.get("key") for _, toleration in items(pod.spec, "tolerations")]
        if asks and GPU not in keys and None not in keys:
            yield PartProblem(f"asks for GPUs but does not tolerate {GPU}", at=pod.at)


def security_context_is_explicit(thing: Object) -> Iterator[PartProblem]:
    """Every container sets its securityContext, so that each privilege is deliberate."""
    for container in all_containers(thing):
        if not container.spec.get("securityContext"):
            yield PartProblem(f"container {container.name} has no securityContext", at=container.at)


RULES = (
    Rule.of(mounts_have_volumes, step="structure", remedy="add the volume or remove the mount"),
    Rule.of(volumes_are_used, step="structure", remedy="mount it or remove it"),
    Rule.of(unique_environment, step="structure", remedy="keep one of the two"),
    Rule.of(unique_volumes, step="structure", remedy="rename one of the two"),
    Rule.of(unique_mount_paths, step="structure", remedy="move one of the two"),
    Rule.of(unique_containers, step="structure", remedy="rename one of the two"),
    Rule.of(unique_ports, step="structure", remedy="rename one; give one of them another port"),
    Rule.of(annotations_are_json, step="structure", remedy="build it with toJson"),
    Rule.of(names_fit, step="structure", remedy="truncate it earlier"),
    Rule.of(no_literal_namespace, step="structure", remedy="remove it, or use .Release.Namespace"),
    Rule.of(standard_labels, step="structure", remedy="include the chart's labels helper"),
    Rule.of(quantities_are_text, step="structure", remedy="pipe it through quote"),
    Rule.of(gpu_requests_equal_limits, step="structure", remedy="make the two equal"),
    Rule.of(
        huge_pages_come_with_memory,
        "kubernetes v1.36.3, pkg/apis/core/validation/validation.go",
        step="structure",
        remedy="request memory or cpu too",
    ),
    Rule.of(gpu_pods_tolerate, step="structure", remedy="add the toleration"),
    Rule.of(security_context_is_explicit, step="structure", remedy="state it, even when restricted"),
)

# Kinds with names of up to 253 characters that become neither labels nor host names (Kubernetes: DNS subdomain names).
_LONG_NAMES = frozenset(
    ("CustomResourceDefinition", "ConfigMap", "Secret", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
)


def _names_made_of(thing: Object, name: str) -> Iterator[str]:
    """Return the longest names that the JobSet and Job controllers create; host names are the longest that matter."""
    spec = thing.get("spec") or {}
    if thing.get("kind") == "Job" and spec.get("completionMode") == "Indexed":
        yield f"{name}-{(spec.get('completions') or 1) - 1}"
    for _, job in items(spec, "replicatedJobs") if thing.get("kind") == "JobSet" else ():
        made = (job.get("template") or {}).get("spec") or {}  # null is as absent
        pod_count = made.get("completions") or 1
        yield f"{name}-{job.get('name')}-{(job.get('replicas') or 1) - 1}-{pod_count - 1}"
