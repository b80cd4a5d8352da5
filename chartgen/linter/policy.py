"""Policy rules: what pods may do and hold. A privilege is allowed where a fragment states a reason (`reasons`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from chartgen.checks.secrets import looks_secret
from chartgen.composer.privileges import is_forbidden
from chartgen.findings import Complaint, Severity
from chartgen.kube.manifest_walk import Object, Pod, all_containers, containers, items, maps, metadata, pods
from chartgen.linter.reasons import held

_REASON = "remove it, or state why it is needed: in the fragment's privileges, or in a comment that ignores the rule"
# Charts of others have no fragments.
STRANGERS_REASON = "remove it, or state why it is needed in a comment that ignores the rule"
_NEVER = "remove it; mount the one folder below it that is needed, or ask the device plugin of the cluster for it"
_HOST_NAMESPACES = ("hostNetwork", "hostPID", "hostIPC")
_BY_REFERENCE = "take it from a Secret with secretKeyRef"
# What a container calls the API server with; a pod that has its own account is meant to.
_DEFAULT_ACCOUNT = (None, "", "default")


def no_privileged_containers(thing: Object) -> Iterator[Complaint]:
    """A privileged container owns its machine; it needs a stated reason."""
    for container in all_containers(thing):
        if (container.spec.get("securityContext") or {}).get("privileged") is True:
            at = (*container.at, "securityContext", "privileged")
            yield Complaint(
                f"container {container.name} is privileged", _REASON, at, held("privileged", container.name)
            )


def no_host_access(thing: Object) -> Iterator[Complaint]:
    """The machine's network, processes or files in a pod end its isolation; each needs a stated reason."""
    for pod in pods(thing):
        for key in _HOST_NAMESPACES:
            if pod.spec.get(key) is True:
                yield Complaint(f"the pod uses {key}", _REASON, (*pod.at, key), key)
        for index, volume in items(pod.spec, "volumes"):
            path = _host_path(volume)
            if path and not is_forbidden(path):
                message = f"volume {volume.get('name')} is the folder {path} of the machine"
                for name in _mounting(pod, volume.get("name")) or [""]:
                    yield Complaint(message, _REASON, (*pod.at, "volumes", index), held("hostPath", path, name))


def no_system_folders(thing: Object) -> Iterator[Complaint]:
    """Whoever writes to a folder of the machine's own system, such as / or /var/run, owns it; no reason excuses it."""
    for at, node in maps(thing) if thing.get("kind") != "CustomResourceDefinition" else ():
        path = _host_path(node)
        if path and is_forbidden(path):
            yield Complaint(f"{path} is a folder of the machine's own system", _NEVER, (*at, "hostPath"))


def no_added_capabilities(thing: Object) -> Iterator[Complaint]:
    """A capability that a container adds needs a stated reason."""
    for container in all_containers(thing):
        capabilities = (container.spec.get("securityContext") or {}).get("capabilities") or {}
        for index, name in enumerate(capabilities.get("add") or ()):
            at = (*container.at, "securityContext", "capabilities", "add", index)
            yield Complaint(
                f"container {container.name} adds the capability {name}", _REASON, at, held(str(name), container.name)
            )


def images_are_pinned(thing: Object) -> Iterator[Complaint]:
    """Every image has a tag other than latest, or a digest."""
    for container in all_containers(thing):
        image = str(container.spec.get("image", ""))
        tag = image.rpartition("/")[2].partition(":")[2]
        if "@sha256:" not in image and tag in ("", "latest"):
            message = f"container {container.name} runs {image!r} without a fixed tag"
            yield Complaint(message, "add a tag or digest", (*container.at, "image"))


def limits_are_set(thing: Object) -> Iterator[Complaint]:
    """Every container of a pod without GPUs has a limit of memory: such pods share their machine with others."""
    for pod in pods(thing):
        limits = [((each.spec.get("resources") or {}).get("limits") or {}, each) for each in containers(pod)]
        if any("/" in name for names, _ in limits for name in names):
            continue
        for names, container in limits:
            if "memory" not in names:
                message = f"container {container.name} has no limit of memory"
                yield Complaint(message, "set resources.limits.memory", container.at)


def secrets_by_reference(thing: Object) -> Iterator[Complaint]:
    """No variable, argument or ConfigMap holds a key or password: manifests are read by many."""
    for container in all_containers(thing):
        for index, entry in items(container.spec, "env"):
            if looks_secret(str(entry.get("name")), str(entry.get("value", ""))):
                message = f"container {container.name} has a secret in {entry.get('name')}"
                yield Complaint(message, _BY_REFERENCE, (*container.at, "env", index))
        for key in ("command", "args"):
            for index, word in enumerate(container.spec.get(key) or ()):
                if looks_secret("", str(word)) or _flag_with_secret(str(word)):
                    message = f"container {container.name} has a secret in {key}"
                    yield Complaint(message, _BY_REFERENCE, (*container.at, key, index))
    if thing.get("kind") == "ConfigMap":
        for name, text in (thing.get("data") or {}).items():
            lines = str(text).splitlines()
            if any(looks_secret("" if lines[1:] else name, line) for line in lines):
                yield Complaint(f"{name} holds a secret", "keep it in a Secret", ("data", name))


def tokens_are_not_mounted(thing: Object) -> Iterator[Complaint]:
    """A pod of the default service account gets no token for the API server: a program that trains needs none."""
    for pod in pods(thing):
        asked = pod.spec.get("automountServiceAccountToken")
        if asked is not False and pod.spec.get("serviceAccountName") in _DEFAULT_ACCOUNT:
            message = "the token of the default service account is mounted"
            yield Complaint(message, "set automountServiceAccountToken: false, or name an account of its own", pod.at)


def finished_jobs_expire(thing: Object) -> Iterator[Complaint]:
    """A Job has a time to live, so that its pods do not stay for ever once it is finished."""
    for at, node in maps(thing):
        job = at == () and thing.get("kind") == "Job" and str(thing.get("apiVersion")).startswith("batch/")
        if (job or at[:2] == ("spec", "replicatedJobs")) and isinstance(node.get("spec") or None, dict):
            hook = (metadata(node).get("annotations") or {}).get("helm.sh/hook-delete-policy")
            if "template" in node["spec"] and node["spec"].get("ttlSecondsAfterFinished") is None and not hook:
                yield Complaint("a finished job stays with its pods", "set ttlSecondsAfterFinished", (*at, "spec"))


@dataclass(frozen=True)
class Policy:
    """A rule of policy.

    Args:
        rule: Yields what is wrong with an object.
        severity: Whether it fails the chart.
    """

    rule: Callable[[Object], Iterator[Complaint]]
    severity: Severity = "error"


POLICY = (
    Policy(no_privileged_containers),
    Policy(no_host_access),
    Policy(no_system_folders),
    Policy(no_added_capabilities),
    Policy(images_are_pinned),
    Policy(limits_are_set, "warning"),
    Policy(secrets_by_reference),
    Policy(tokens_are_not_mounted, "warning"),
    Policy(finished_jobs_expire, "warning"),
)


def _host_path(volume: Object) -> str:
    """Return the folder of the machine that a volume, or a PersistentVolume's spec, stands for; empty for none."""
    source = volume.get("hostPath")
    return str(source.get("path") or "") if isinstance(source, dict) else ""


def _mounting(pod: Pod, volume: object) -> list[str]:
    """Return the containers that mount a volume."""
    return [
        container.name
        for container in containers(pod)
        if any(mount.get("name") == volume for _, mount in items(container.spec, "volumeMounts"))
    ]


def _flag_with_secret(word: str) -> bool:
    name, _, value = word.lstrip("-").partition("=")
    return word.startswith("--") and bool(value) and looks_secret(name.upper().replace("-", "_"), value)
