"""Structural rules that every rendered object must keep: one small function each, named like its finding's id.

A rule takes a rendered object and yields what is wrong with it. Helm and the API server miss all of these, or report
them only when machines are already held.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Object: TypeAlias = dict[str, Any]
Complaints: TypeAlias = "Iterator[Complaint]"

GPU = "nvidia.com/gpu"
# The longest name that a pod, a Job or a label value may have (Kubernetes: RFC 1123 label).
NAME_LIMIT = 63
# The namespace that lint renders into; an object that names another one holds it literally.
LINT_NAMESPACE = "chartgen-lint"
# https://helm.sh/docs/chart_best_practices/labels/: those marked REC.
STANDARD_LABELS = (
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
)
# Volumes that a webhook's sidecar mounts; no container of the manifest can.
# https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-sidecar
_SIDECAR_VOLUMES = ("gke-gcsfuse-",)


@dataclass(frozen=True)
class Complaint:
    """What one rule says of one object.

    Args:
        message: What is wrong, without the object's name.
        hint: What to do instead.
    """

    message: str
    hint: str = ""


def mounts_have_volumes(thing: Object) -> Complaints:
    """Every volumeMount names a volume of its pod; a dangling one is accepted by JobSet and never starts."""
    for pod in pods(thing):
        volumes = {volume["name"] for volume in _list(pod, "volumes")}
        for container in containers(pod):
            for mount in (*_list(container, "volumeMounts"), *_list(container, "volumeDevices")):
                if mount.get("name") not in volumes:
                    message = (
                        f"container {container['name']} mounts {mount.get('name')!r}, which is no volume of the pod"
                    )
                    yield Complaint(message, "add the volume or remove the mount")


def volumes_are_used(thing: Object) -> Complaints:
    """Every volume is mounted by a container, or by a sidecar that a webhook adds."""
    for pod in pods(thing):
        used = {mount.get("name") for container in containers(pod) for mount in _list(container, "volumeMounts")}
        used |= {device.get("name") for container in containers(pod) for device in _list(container, "volumeDevices")}
        for volume in _list(pod, "volumes"):
            if volume["name"] not in used and not volume["name"].startswith(_SIDECAR_VOLUMES):
                yield Complaint(f"no container mounts volume {volume['name']!r}", "mount it or remove it")


def unique_environment(thing: Object) -> Complaints:
    """No container sets a variable twice; server-side apply refuses it (helm issue 31529)."""
    for container in _all_containers(thing):
        for name in _repeated(entry["name"] for entry in _list(container, "env")):
            yield Complaint(f"container {container['name']} sets {name} twice", "keep one of the two")


def unique_volumes(thing: Object) -> Complaints:
    """No two volumes of a pod have one name."""
    for pod in pods(thing):
        for name in _repeated(volume["name"] for volume in _list(pod, "volumes")):
            yield Complaint(f"two volumes are named {name!r}", "rename one of the two")


def unique_mount_paths(thing: Object) -> Complaints:
    """No container mounts two things at one path."""
    for container in _all_containers(thing):
        for path in _repeated(mount.get("mountPath", "") for mount in _list(container, "volumeMounts")):
            yield Complaint(f"container {container['name']} mounts two volumes at {path}", "move one of the two")


def unique_containers(thing: Object) -> Complaints:
    """No two containers of a pod, init containers included, have one name."""
    for pod in pods(thing):
        for name in _repeated(container["name"] for container in containers(pod)):
            yield Complaint(f"two containers are named {name!r}", "rename one of the two")


def annotations_are_json(thing: Object) -> Complaints:
    """An annotation that looks like JSON is JSON: network and device plugins drop a broken one without a word."""
    for name, text in _entries(thing, "annotations"):
        if isinstance(text, str) and text.lstrip()[:1] in ("{", "[") and not _is_json(text):
            yield Complaint(f"annotation {name} looks like JSON but is not", "build it with toJson")


def names_fit(thing: Object) -> Complaints:
    """The object's name, with the longest suffix that its controller adds, fits into 63 characters."""
    name = thing.get("metadata", {}).get("name", "")
    for made in (name, *_names_made_of(thing, name)):
        if len(made) > NAME_LIMIT:
            yield Complaint(f"name {made} has {len(made)} characters, at most {NAME_LIMIT} fit", "truncate it earlier")


def no_literal_namespace(thing: Object) -> Complaints:
    """No object names a namespace of its own: `helm --namespace` decides."""
    namespace = thing.get("metadata", {}).get("namespace", LINT_NAMESPACE)
    if namespace != LINT_NAMESPACE:
        yield Complaint(f"names the namespace {namespace!r}", "remove it, or use .Release.Namespace")


def images_are_pinned(thing: Object) -> Complaints:
    """Every image has a tag other than latest, or a digest."""
    for container in _all_containers(thing):
        image = str(container.get("image", ""))
        tag = image.rpartition("/")[2].partition(":")[2]
        if "@sha256:" not in image and tag in ("", "latest"):
            yield Complaint(f"container {container['name']} runs {image!r} without a fixed tag", "add a tag or digest")


def standard_labels(thing: Object) -> Complaints:
    """Every object has Helm's recommended labels, so that a release can be found and swept by label."""
    labels = thing.get("metadata", {}).get("labels") or {}
    missing = [label for label in STANDARD_LABELS if label not in labels]
    if missing:
        yield Complaint(f"lacks the label {', '.join(missing)}", "include the chart's labels helper")


def quantities_are_text(thing: Object) -> Complaints:
    """Quantities are quoted: a bare number changes the object at an unchanged upgrade."""
    quantities = [(name, value) for key in ("limits", "requests") for name, value in _entries(thing, key)]
    quantities += [(key, value) for key in ("sizeLimit", "nominalQuota") for value in _found(thing, key)]
    for name, value in quantities:
        if not isinstance(value, str):
            yield Complaint(f"quantity {name}: {value} is not quoted", "pipe it through quote")


def gpu_requests_equal_limits(thing: Object) -> Complaints:
    """Extended resources (GPUs, fabric devices) cannot be overcommitted: a request equals its limit."""
    for container in _all_containers(thing):
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name, request in requests.items():
            if "/" in name and limits.get(name) != request:
                message = f"container {container['name']} requests {name}: {request}, its limit is {limits.get(name)}"
                yield Complaint(message, "make the two equal")


def gpu_pods_tolerate(thing: Object) -> Complaints:
    """A pod that asks for GPUs tolerates the taint of GPU machines."""
    for pod in pods(thing):
        asks = any(GPU in _limits(container) for container in containers(pod))
        keys = [toleration.get("key") for toleration in _list(pod, "tolerations")]
        if asks and GPU not in keys and None not in keys:
            yield Complaint(f"asks for GPUs but does not tolerate {GPU}", "add the toleration")


def security_context_is_explicit(thing: Object) -> Complaints:
    """Every container states its securityContext, so that each privilege is a decision."""
    for container in _all_containers(thing):
        if not container.get("securityContext"):
            yield Complaint(f"container {container['name']} has no securityContext", "state it, even when restricted")


RULES: tuple[Callable[[Object], Complaints], ...] = (
    mounts_have_volumes,
    volumes_are_used,
    unique_environment,
    unique_volumes,
    unique_mount_paths,
    unique_containers,
    annotations_are_json,
    names_fit,
    no_literal_namespace,
    images_are_pinned,
    standard_labels,
    quantities_are_text,
    gpu_requests_equal_limits,
    gpu_pods_tolerate,
    security_context_is_explicit,
)


def rule_id(rule: Callable[[Object], Complaints]) -> str:
    """Give the stable id of a rule: its name with dashes."""
    return rule.__name__.replace("_", "-")


def title(thing: Object) -> str:
    """Name an object in messages: its kind and name."""
    return f"{thing.get('kind', 'object')} {thing.get('metadata', {}).get('name', 'without a name')}"


def pods(thing: Object) -> Iterator[Object]:
    """Find all pod specs in an object, whatever its kind: maps with a list of containers."""
    for node in _maps(thing):
        if isinstance(node.get("containers"), list):
            yield node


def containers(pod: Object) -> list[Object]:
    """Give the containers of a pod spec, init containers first."""
    return [*_list(pod, "initContainers"), *_list(pod, "containers")]


def _names_made_of(thing: Object, name: str) -> Iterator[str]:
    """Give the longest names that the JobSet and Job controllers make: hostnames, which are the longest that matter."""
    spec = thing.get("spec") or {}
    if thing.get("kind") == "Job" and spec.get("completionMode") == "Indexed":
        yield f"{name}-{(spec.get('completions') or 1) - 1}"
    for job in _list(spec, "replicatedJobs") if thing.get("kind") == "JobSet" else ():
        pod_count = job.get("template", {}).get("spec", {}).get("completions") or 1
        yield f"{name}-{job.get('name')}-{(job.get('replicas') or 1) - 1}-{pod_count - 1}"


def _all_containers(thing: Object) -> Iterator[Object]:
    for pod in pods(thing):
        yield from containers(pod)


def _maps(node: object) -> Iterator[Object]:
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    for child in node if isinstance(node, list) else ():
        yield from _maps(child)


def _found(thing: Object, key: str) -> Iterator[Any]:
    return (node[key] for node in _maps(thing) if node.get(key) is not None)


def _entries(thing: Object, key: str) -> Iterator[tuple[str, Any]]:
    for node in _found(thing, key):
        yield from node.items() if isinstance(node, dict) else ()


def _limits(container: Object) -> Object:
    limits: Object = (container.get("resources") or {}).get("limits") or {}
    return limits


def _list(node: Object, key: str) -> list[Object]:
    return [item for item in node.get(key) or () if isinstance(item, dict)]


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
