"""Checks of the namespace: privileges and resource limits of its pods."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from chartgen.kube import NAMESPACE, POD, ClusterError, Kind, Object
from chartgen.kube.pods import Pods
from chartgen.kube.quantities import Quantities, add, amount_text, read_quantities
from chartgen.releases.preflight.context import Diagnosis, PreflightContext, failed, passed, read_if_allowed, warned
from chartgen.releases.preflight.controllers import reason_of

_QUOTA = Kind("v1", "ResourceQuota", "resourcequotas")
_LEVEL = "pod-security.kubernetes.io/enforce"
# Capabilities that a container may add at level baseline (Kubernetes, Pod Security Standards).
_BASELINE = {
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
}
# Refusals by the admission plugins ResourceQuota and LimitRanger (Kubernetes 1.36, plugin/pkg/admission).
_LIMITED = re.compile(r"quota|usage per |ratio per ")
# Refusals by the plugins Priority and RuntimeClass, whose objects have checks of their own.
_CHECKED = re.compile(r'no PriorityClass with name|RuntimeClass ".*" not found')


def namespace(context: PreflightContext) -> Iterator[Diagnosis]:
    """The release's namespace exists; Helm does not create it."""
    if context.get(NAMESPACE, context.namespace) is None:
        text = f"namespace {context.namespace} does not exist"
        yield failed(text, f"kubectl create namespace {context.namespace}, or name another with -n")
    else:
        yield passed(f"namespace {context.namespace} exists")


def pod_security(context: PreflightContext) -> Iterator[Diagnosis]:
    """The Pod Security level of the namespace allows the privileges of the pods."""
    level = _level(context.get(NAMESPACE, context.namespace))
    privileges = _privileged_parts(context)
    if privileges and level != "privileged":
        text = f"namespace {context.namespace} enforces level {level}, the pods need privileged: "
        fix = f"kubectl label namespace {context.namespace} {_LEVEL}=privileged --overwrite"
        yield failed(text + ", ".join(privileges), fix)
    elif context.pods:
        text = f"namespace {context.namespace} enforces level {level}"
        yield passed(text + (", which the pods need" if privileges else ""))


def pod_admission(context: PreflightContext) -> Iterator[Diagnosis]:
    """The API server accepts a pod of each kind in a dry run: limits of the namespace, accounts and webhooks."""
    for pods in context.pods:
        answer = context.trial(POD, _pod(pods))
        if not isinstance(answer, ClusterError):
            yield passed(f"one of {pods} is taken (tried without effect)")
        elif answer.status != 404 and not _is_reported(context, answer):
            yield failed(f"one of {pods} is refused: {reason_of(answer)}", _step(context, answer))


def namespace_quota(context: PreflightContext) -> Iterator[Diagnosis]:
    """The ResourceQuotas of the namespace leave room for all pods; `pod_admission` covers quotas with scopes."""
    requested = _counted(context.pods)
    for quota in context.find(_QUOTA, namespace=context.namespace):
        if not quota["spec"].get("scopes") and not quota["spec"].get("scopeSelector"):
            yield _judge(context, quota, requested)


def _judge(context: PreflightContext, quota: Object, requested: Quantities) -> Diagnosis:
    name, most = quota["metadata"]["name"], read_quantities(quota["spec"].get("hard", {}))
    used = read_quantities(quota.get("status", {}).get("used", {}))
    over = [key for key in sorted(most) if requested.get(key, 0) > most[key]]
    busy = [key for key in sorted(most) if requested.get(key, 0) > most[key] - used.get(key, 0)]
    if over:
        shown = _shares(requested, most, over)
        text = f"the pods ask for {shown} that ResourceQuota {name} allows namespace {context.namespace}"
        return failed(text, f"kubectl --namespace {context.namespace} edit resourcequota {name}, or use fewer nodes")
    if busy and not context.is_running:
        shown = _shares(used, most, busy)
        text = f"{shown} of ResourceQuota {name} are in use: the pods do not fit beside them"
        return warned(text, f"kubectl --namespace {context.namespace} get pods shows whose they are")
    return passed(f"ResourceQuota {name} has room for the pods")


def _counted(found: list[Pods]) -> Quantities:
    """Count as a ResourceQuota does: pods, requests and limits, with `cpu` as an alias of `requests.cpu`."""
    requests = add(pods.total for pods in found)
    limits = add(_limits(pods) for pods in found)
    named = {f"requests.{name}": amount for name, amount in requests.items()}
    plain = {name: amount for name, amount in requests.items() if "/" not in name}
    count = {"pods": Fraction(sum(pods.count for pods in found))}
    return {**named, **plain, **{f"limits.{name}": amount for name, amount in limits.items()}, **count}


def _limits(pods: Pods) -> Quantities:
    tables = [read_quantities((each.get("resources") or {}).get("limits", {})) for each in pods.spec["containers"]]
    return {name: amount * pods.count for name, amount in add(tables).items()}


def _shares(part: Quantities, whole: Quantities, names: list[str]) -> str:
    return " and ".join(f"{amount_text(part[name], name)} of {amount_text(whole[name], name)} {name}" for name in names)


def _step(context: PreflightContext, answer: ClusterError) -> str:
    """Return what to do about a pod that the API server refuses."""
    if answer.status == 422:  # Unprocessable Entity: the pod is not valid in any namespace
        return "correct the value that sets this field, or the fragment that writes it"
    if _LIMITED.search(str(answer)):
        return f"kubectl --namespace {context.namespace} describe limitrange,resourcequota"
    return "change the values to what the message allows, or ask the platform team"


def _is_reported(context: PreflightContext, answer: ClusterError) -> bool:
    """Report whether another check has already reported this, such as `pod_security` from the namespace's label."""
    if _CHECKED.search(str(answer)):
        return True
    namespace = read_if_allowed(lambda: context.get(NAMESPACE, context.namespace))
    refused = "violates PodSecurity" in str(answer) and _level(namespace) != "privileged"
    return refused and bool(_privileged_parts(context))


def _level(namespace: Object | None) -> str:
    labels = (namespace or {"metadata": {}})["metadata"].get("labels", {})
    return str(labels.get(_LEVEL, "privileged"))


def _privileged_parts(context: PreflightContext) -> list[str]:
    return sorted({privilege for pods in context.pods for privilege in _privileges(pods)})


def _privileges(pods: Pods) -> Iterator[str]:
    """Yield the settings that only the level privileged allows."""
    yield from (name for name in ("hostNetwork", "hostPID", "hostIPC") if pods.spec.get(name))
    if any("hostPath" in volume for volume in pods.spec.get("volumes", ())):
        yield "hostPath volumes"
    for container in pods.containers:
        security = container.get("securityContext") or {}
        if security.get("privileged"):
            yield "privileged containers"
        if extra := sorted(set((security.get("capabilities") or {}).get("add", ())) - _BASELINE):
            yield f"capabilities {' '.join(extra)}"
        if any(port.get("hostPort") for port in container.get("ports", ())):
            yield "host ports"


def _pod(pods: Pods) -> Object:
    name = "-".join(filter(None, (pods.owner.rpartition(" ")[2], pods.role, "trial")))
    # a pod with a queue would be suspended, and a pod with a run's labels would be counted as its pod
    labels = {key: value for key, value in pods.metadata.get("labels", {}).items() if "kueue" not in key}
    metadata = {"name": name, "labels": labels, "annotations": pods.annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"restartPolicy": "Never", **pods.spec}}
