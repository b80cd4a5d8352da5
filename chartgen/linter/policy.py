"""Policy rules for the privileges of pods; a reason in a fragment or a workload kind allows a privilege.

The chart's own pages do not count: whoever adds a privilege could add its reason there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from chartgen.checks.secrets import looks_secret
from chartgen.composer.origin import Composed, origin_of
from chartgen.composer.privileges import (
    KERNEL,
    PROGRAM,
    SYSTEM_FOLDER,
    VALUE,
    Privilege,
    is_forbidden,
    is_system,
    read_privilege,
    volume_fault,
)
from chartgen.composer.workload import load_workload
from chartgen.findings import PartProblem, Rule
from chartgen.helm.chart import Chart
from chartgen.kube.manifest_walk import Keys, Object, Pod, all_containers, containers, items, maps, metadata, pods
from chartgen.linter.documents import values_of

_REASON = "remove it, or state why it is needed: in the fragment's privileges, or in a comment that ignores the rule"
# Third-party charts have no fragments.
STRANGERS_REASON = "remove it, or state why it is needed in a comment that ignores the rule"
# Of charts of a target with a changed template.
CHANGED_REASON = (
    "the chart differs from its build, so no fragment's reason counts: run chartgen build {target}, or remove it"
)
# Of rules that nothing in a repository excuses.
CALLERS_REASON = "{hint}; if the chart needs it, whoever runs lint may pass --ignore {rule}:CHART"
# Fields by which a container leaves its confinement (kubernetes.io, Pod Security Standards, v1.36).
_UNCONFINED: dict[str, object] = {
    "seccompProfile": {"type": "Unconfined"},
    "appArmorProfile": {"type": "Unconfined"},
    "procMount": "Unmasked",
    "allowPrivilegeEscalation": True,
}
_BY_REFERENCE = "take it from a Secret with secretKeyRef"
# kubernetes/kubernetes v1.37, plugin/pkg/auth/authorizer/rbac/bootstrappolicy: some change roles, or write tokens.
_CONTROL = ("cluster-admin", "system:controller:", "system:kube-controller-manager")
# A kubelet's roles: Secrets and pods everywhere, or programs in any pod. Longer names, as of its proxy, have little.
_KUBELET = ("system:node", "system:kubelet-api-admin")
# The container's credential for the API server; a pod with its own account is meant to have one.
_DEFAULT_ACCOUNT = (None, "", "default")


def no_privileged_containers(thing: Object) -> Iterator[PartProblem]:
    """A privileged container, or a host process container of Windows, controls its machine."""
    named = {(*container.at, "securityContext"): container.name for container in all_containers(thing)}
    for at, node in _custom_too(thing):
        # such as containerSecurityContext in resources of operators
        if at and str(at[-1]).lower().endswith("securitycontext") and node.get("privileged") is True:
            name = named.get(at, "without a name")
            key = reason_key("privileged", name)
            yield PartProblem(f"container {name} is privileged", _REASON, (*at, "privileged"), key)
        if at[-1:] == ("windowsOptions",) and node.get("hostProcess") is True:
            yield PartProblem("uses hostProcess, which is privileged in Windows", at=(*at, "hostProcess"))


def no_unconfined_containers(thing: Object) -> Iterator[PartProblem]:
    """A container keeps its seccomp and AppArmor profile, the masks of /proc, and the ban on gaining privileges."""
    for at, context in maps(thing) if any(pods(thing)) else ():
        judged = at[-1:] == ("securityContext",) and context.get("privileged") is not True
        for key, value in _UNCONFINED.items() if judged else ():
            if context.get(key) == value:
                yield PartProblem(f"sets {key}: {json.dumps(value)}", at=(*at, key))


def no_host_processes(thing: Object) -> Iterator[PartProblem]:
    """A pod among the machine's processes (hostPID, hostIPC) reads their memory and secrets, or replaces them."""
    for at, node in _custom_too(thing):
        for key in ("hostPID", "hostIPC"):
            if node.get(key) is True:
                yield PartProblem(f"the pod uses {key}", _REASON, (*at, key), key)


def no_cluster_admin(thing: Object) -> Iterator[PartProblem]:
    """A binding of the role cluster-admin, of a controller or of the kubelet gives control of the whole cluster."""
    role = thing.get("roleRef")
    name = str(role.get("name")) if isinstance(role, dict) else ""
    # in kube-system a pod may have the account of any controller
    whole = thing.get("kind") == "ClusterRoleBinding" or metadata(thing).get("namespace") == "kube-system"
    if whole and (name.startswith(_CONTROL) or name in _KUBELET):
        yield PartProblem(f"binds the role {name}", "bind a role with few permissions", ("roleRef", "name"))


def no_host_access(thing: Object) -> Iterator[PartProblem]:
    """Access to the machine's network or files ends a pod's isolation; each needs a stated reason."""
    for pod in pods(thing):
        if pod.spec.get("hostNetwork") is True:
            yield PartProblem("the pod uses hostNetwork", _REASON, (*pod.at, "hostNetwork"), "hostNetwork")
        for index, volume in items(pod.spec, "volumes"):
            path = _folder(volume, "hostPath")
            if path and not is_forbidden(path):
                message = f"volume {volume.get('name')} is {path} of the machine"
                for name in dict.fromkeys(name for name, _ in _mounts(pod, volume.get("name"))) or [""]:
                    yield PartProblem(message, _REASON, (*pod.at, "volumes", index), reason_key("hostPath", path, name))


def no_system_folders(thing: Object) -> Iterator[PartProblem]:
    """A system folder of the machine, such as / or /var/run, is control of it; pods may read named files below /opt."""
    # a custom resource may have containers beside those in a list, without a name that lint knows
    mounts = (mount for _, node in maps(thing) for _, mount in items(node, "volumeMounts"))
    written = [mount.get("name") for mount in mounts if mount.get("readOnly") is not True]
    users = {
        (*pod.at, "volumes", index): [
            name for name, mount in _mounts(pod, volume.get("name")) if mount.get("readOnly") is not True
        ]
        or [""] * (volume.get("name") in written)
        for pod in pods(thing)
        for index, volume in items(pod.spec, "volumes")
    }
    reading = {at for at, names in users.items() if not names}
    for at, node in _custom_too(thing):
        keys = ("hostPath", "local") if thing.get("kind") == "PersistentVolume" else ("hostPath",)
        for key in keys:
            path = _folder(node, key)
            if path and (fault := volume_fault(node[key], writable=at not in reading)):
                yield PartProblem(*fault, (*at, key))
            elif path in KERNEL and at not in reading:
                for name in users.get(at, [""]):
                    message = f"{path} {SYSTEM_FOLDER}, and pods may only read it"
                    yield PartProblem(message, at=(*at, key), privilege=reason_key("hostPath", path, name))


def no_added_capabilities(thing: Object) -> Iterator[PartProblem]:
    """A capability that a container adds needs a stated reason."""
    for container in all_containers(thing):
        capabilities = (container.spec.get("securityContext") or {}).get("capabilities") or {}
        for index, name in enumerate(capabilities.get("add") or ()):
            at = (*container.at, "securityContext", "capabilities", "add", index)
            message = f"container {container.name} adds the capability {name}"
            yield PartProblem(message, _REASON, at, reason_key(str(name), container.name))


def images_are_pinned(thing: Object) -> Iterator[PartProblem]:
    """Every image has a tag other than latest, or a digest."""
    for at, user, image in _images(thing):
        tag = image.rpartition("/")[2].partition(":")[2]
        if "@sha256:" not in image and tag in ("", "latest"):
            yield PartProblem(f"{user} {image!r} without a fixed tag", at=at)


def _images(thing: Object) -> Iterator[tuple[Keys, str, str]]:
    """Yield the images of containers and volumes: place, who uses it, and image."""
    for container in all_containers(thing):
        yield (*container.at, "image"), f"container {container.name} runs", str(container.spec.get("image", ""))
    for pod in pods(thing):
        for index, volume in items(pod.spec, "volumes"):
            if isinstance(source := volume.get("image"), dict):
                at = (*pod.at, "volumes", index, "image", "reference")
                yield at, f"volume {volume.get('name')} has", str(source.get("reference", ""))


def limits_are_set(thing: Object) -> Iterator[PartProblem]:
    """Every container of a pod without GPUs has a memory limit, because such pods share their machine with others."""
    for pod in pods(thing):
        limits = [((each.spec.get("resources") or {}).get("limits") or {}, each) for each in containers(pod)]
        if any("/" in name for names, _ in limits for name in names):
            continue
        for names, container in limits:
            if "memory" not in names:
                message = f"container {container.name} has no limit of memory"
                yield PartProblem(message, at=container.at)


def secrets_by_reference(thing: Object) -> Iterator[PartProblem]:
    """No variable, argument or ConfigMap contains a key or password, because many users can read manifests."""
    for container in all_containers(thing):
        for index, entry in items(container.spec, "env"):
            if looks_secret(str(entry.get("name")), str(entry.get("value", ""))):
                message = f"container {container.name} has a secret in {entry.get('name')}"
                yield PartProblem(message, _BY_REFERENCE, (*container.at, "env", index))
        for key in ("command", "args"):
            for index, word in enumerate(container.spec.get(key) or ()):
                name, _, value = str(word).removeprefix("--").partition("=")
                flag = name.upper().replace("-", "_") if str(word).startswith("--") else ""
                if looks_secret("", str(word)) or (flag and value and looks_secret(flag, value)):
                    message = f"container {container.name} has a secret in {key}"
                    yield PartProblem(message, _BY_REFERENCE, (*container.at, key, index))
    if thing.get("kind") == "ConfigMap":
        for name, text in (thing.get("data") or {}).items():
            lines = str(text).splitlines()
            if any(looks_secret("" if lines[1:] else name, line) for line in lines):
                yield PartProblem(f"{name} contains a secret", at=("data", name))


def tokens_are_not_mounted(thing: Object) -> Iterator[PartProblem]:
    """A pod of the default service account gets no token for the API server: a training program does not use it."""
    for pod in pods(thing):
        mounts_token = pod.spec.get("automountServiceAccountToken")
        if mounts_token is not False and pod.spec.get("serviceAccountName") in _DEFAULT_ACCOUNT:
            message = "the token of the default service account is mounted"
            yield PartProblem(message, at=pod.at)


def finished_jobs_expire(thing: Object) -> Iterator[PartProblem]:
    """A Job has a time to live, so that its pods are deleted after it finishes."""
    for at, node in maps(thing):
        job = at == () and thing.get("kind") == "Job" and str(thing.get("apiVersion")).startswith("batch/")
        if (job or at[:2] == ("spec", "replicatedJobs")) and isinstance(node.get("spec") or None, dict):
            hook = (metadata(node).get("annotations") or {}).get("helm.sh/hook-delete-policy")
            if "template" in node["spec"] and node["spec"].get("ttlSecondsAfterFinished") is None and not hook:
                yield PartProblem("a finished job stays with its pods", at=(*at, "spec"))


POLICY = (
    Rule.of(no_privileged_containers, step="policy"),
    Rule.of(no_host_processes, step="policy"),
    Rule.of(no_cluster_admin, step="policy"),
    Rule.of(no_unconfined_containers, step="policy", remedy="remove it; the default is confined"),
    Rule.of(no_host_access, step="policy"),
    Rule.of(no_system_folders, step="policy"),
    Rule.of(no_added_capabilities, step="policy"),
    Rule.of(images_are_pinned, step="policy", remedy="add a tag or digest"),
    Rule.of(limits_are_set, severity="warning", step="policy", remedy="set resources.limits.memory"),
    Rule.of(secrets_by_reference, step="policy", remedy="keep it in a Secret"),
    Rule.of(
        tokens_are_not_mounted,
        severity="warning",
        step="policy",
        remedy="set automountServiceAccountToken: false, or name an account of its own",
    ),
    Rule.of(finished_jobs_expire, severity="warning", step="policy", remedy="set ttlSecondsAfterFinished"),
)


def _custom_too(thing: Object) -> Iterator[tuple[Keys, Object]]:
    """Yield all maps of an object: custom resources have pods of another form, such as with one container."""
    return maps(thing) if thing.get("kind") != "CustomResourceDefinition" else iter(())


def _folder(volume: Object, key: str) -> str:
    """Return the machine's folder of a volume, or of a PersistentVolume's spec; empty for other volumes."""
    source = volume.get(key)
    return str(source.get("path") or "") if isinstance(source, dict) else ""


def _mounts(pod: Pod, volume: object) -> Iterator[tuple[str, Object]]:
    """Yield the mounts of a volume, each with its container's name."""
    for container in containers(pod):
        for _, mount in items(container.spec, "volumeMounts"):
            if mount.get("name") == volume:
                yield container.name, mount


def reason_key(name: str, *details: str) -> str:
    """Return lint's name of a privilege: with its folder and container, if it has them."""
    return " ".join(filter(None, (name, *details)))


class Reasons:
    """Privileges with reasons in the fragments of a chart's target, and in its workload kind.

    They allow only what chartgen built: whoever changes a template could give a stranger's container an allowed name.

    Args:
        as_built: Whether all that Helm renders is as a new build of the chart's target makes it.
    """

    def __init__(self, chart: Chart, *, as_built: bool) -> None:
        origin = origin_of(chart)
        self.target = origin.target if isinstance(origin, Composed) else None
        self.as_built = as_built
        self._stated: list[Privilege] = []
        self._program = ""  # name of the program's container
        if isinstance(origin, Composed) and as_built:
            kind = load_workload(origin.target.library.find("workload", origin.workload or origin.target.workload))
            stated = (*(fragment.privileges for fragment in origin.target.fragments), kind.privileges)
            self._stated = [read_privilege(text) for privileges in stated for text in privileges]
            self._program = kind.container
        defaults = values_of(chart) if self.target else None
        self._defaults = defaults.data if defaults else None

    def allowed(self, values: Mapping[str, Any]) -> frozenset[str]:
        """Return the allowed privileges of a release with these values, by lint's names."""
        return frozenset(key for privilege in self._stated for key in self._reason_keys(privilege, values))

    def _reason_keys(self, privilege: Privilege, values: Mapping[str, Any]) -> Iterator[str]:
        path = privilege.path
        if path.startswith(VALUE):
            keys = path.removeprefix(VALUE).split(".")
            path = str(_get(values, keys) or _get(self._defaults, keys))
            if is_system(path):
                return
        if not privilege.containers:
            yield reason_key(privilege.name)
        for container in privilege.containers:
            yield reason_key(privilege.name, path, self._program if container == PROGRAM else container)


def _get(values: Any, keys: list[str]) -> Any:
    return reduce(lambda node, key: node.get(key) if isinstance(node, Mapping) else None, keys, values)
