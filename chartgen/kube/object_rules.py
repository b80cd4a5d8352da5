"""The API server's rules for relations between fields of objects other than pods.

Sources: kubernetes v1.36.3, pkg/apis/{core,apps,batch,rbac,networking,policy,autoscaling}/validation/validation.go.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

from chartgen.findings import PartProblem
from chartgen.helm.yaml import Keys
from chartgen.kube.manifest_walk import repeated
from chartgen.kube.pod_rules import RELATIONS
from chartgen.kube.validation import Relation, Validator, validator

# Keys that a Secret of a type must have: core/validation ValidateSecret.
_SECRET_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
}


def object_faults(
    thing: dict[str, Any], schema: dict[str, Any], kubernetes: str, at: Keys = ()
) -> Iterator[PartProblem]:
    """Yield the faults for which an API server of one of `kubernetes_versions` rejects an object, or a part of one."""
    return _validator(kubernetes).faults(thing, schema, at)


@lru_cache(maxsize=8)
def _validator(kubernetes: str) -> Validator:
    return validator(kubernetes, (*RELATIONS.items(), *_OWN))


def _restarts(kinds: tuple[str, ...], data: dict[str, Any]) -> Iterator[PartProblem]:
    if (policy := _policy(data)) not in kinds:
        yield PartProblem(f"is {policy}", f"use {' or '.join(kinds)}", ("template", "spec", "restartPolicy"))


def _policy(data: dict[str, Any]) -> str:
    return ((data.get("template") or {}).get("spec") or {}).get("restartPolicy") or "Always"


def _job(data: dict[str, Any]) -> Iterator[PartProblem]:
    indexed = data.get("completionMode") == "Indexed"
    if indexed and data.get("completions") is None and data.get("parallelism") is not None:
        yield PartProblem("lacks the field completions, which completionMode Indexed needs", "add it")
    if not indexed and data.get("backoffLimitPerIndex") is not None:
        yield PartProblem("needs completionMode Indexed", "set that, or remove it", ("backoffLimitPerIndex",))
    if data.get("podFailurePolicy") and _policy(data) != "Never":
        yield PartProblem("needs restartPolicy Never", "set that in the template", ("podFailurePolicy",))


def _deployment(data: dict[str, Any]) -> Iterator[PartProblem]:
    if (data.get("progressDeadlineSeconds") or 600) <= (data.get("minReadySeconds") or 0):
        yield PartProblem("must be above minReadySeconds", "raise it", ("progressDeadlineSeconds",))


def _strategy(data: dict[str, Any]) -> Iterator[PartProblem]:
    if data.get("type") in ("Recreate", "OnDelete") and data.get("rollingUpdate") is not None:
        yield PartProblem(f"does not go with type {data['type']}", "remove it", ("rollingUpdate",))


def _rolling(data: dict[str, Any], *, of_machines: bool = False) -> Iterator[PartProblem]:
    """Check what may be added and missing at a time: a machine has one pod more, or one less, of a DaemonSet."""
    surge, missing = data.get("maxSurge"), data.get("maxUnavailable")
    adds, lacks = surge not in (0, "0%", None if of_machines else 0), missing not in (0, "0%")  # None is the default
    if not adds and not lacks:
        yield PartProblem("has maxSurge and maxUnavailable 0", "give one of them")
    if adds and lacks and of_machines:
        yield PartProblem("has maxSurge and maxUnavailable above 0", "set one of them to 0")


def _policy_port(data: dict[str, Any]) -> Iterator[PartProblem]:
    first, last = data.get("port"), data.get("endPort")
    if last is not None and not (isinstance(first, int) and first <= last):
        yield PartProblem("must be at least port, a number", "correct one of the two", ("endPort",))


def _service(data: dict[str, Any]) -> Iterator[PartProblem]:
    kind, ports, headless = data.get("type") or "ClusterIP", data.get("ports") or [], data.get("clusterIP") == "None"
    if kind != "ExternalName" and not ports and not headless:
        yield PartProblem("has no ports", "give one, or use clusterIP: None")
    if kind in ("NodePort", "LoadBalancer") and headless:
        yield PartProblem(f"must not be None for a Service of type {kind}", "remove it", ("clusterIP",))
    if kind not in ("NodePort", "LoadBalancer") and data.get("externalTrafficPolicy") and not data.get("externalIPs"):
        yield PartProblem(f"does not go with type {kind}", "remove it", ("externalTrafficPolicy",))
    for index, port in enumerate(ports):
        if ports[1:] and not port.get("name"):
            yield PartProblem("has no name, and the Service has several ports", "give it one", ("ports", index))
        if kind == "ClusterIP" and port.get("nodePort"):
            yield PartProblem("does not go with type ClusterIP", "remove it", ("ports", index, "nodePort"))
    numbers = ((("ports", index), (port["port"], port.get("protocol") or "TCP")) for index, port in enumerate(ports))
    names = ((("ports", index), port["name"]) for index, port in enumerate(ports) if port.get("name"))
    for at, name in (*repeated(numbers), *repeated(names)):
        yield PartProblem(f"repeats {name if isinstance(name, str) else name[0]}", "change one of the two", at)


def _cron_job(data: dict[str, Any]) -> Iterator[PartProblem]:
    if len(data["metadata"].get("name") or "") > 52:
        message = "has more than 52 characters, which leaves no room for the time in the names of its Jobs"
        yield PartProblem(message, "shorten it, such as with trunc 52", ("metadata", "name"))


def _secret(data: dict[str, Any]) -> Iterator[PartProblem]:
    for key, text in (data.get("data") or {}).items():
        try:
            base64.b64decode((text or "").replace("\n", "").replace("\r", ""), validate=True)
        except ValueError:
            yield PartProblem("is not base64", "pipe it through b64enc, or use stringData", ("data", key))
    keys = {**(data.get("data") or {}), **(data.get("stringData") or {})}
    for key in _SECRET_KEYS.get(str(data.get("type")), ()):
        if key not in keys:
            yield PartProblem(f"lacks the key {key}, which type {data['type']} needs", "add it, or remove the type")


def _config_map(data: dict[str, Any]) -> Iterator[PartProblem]:
    for key in (data.get("data") or {}).keys() & (data.get("binaryData") or {}).keys():
        yield PartProblem("is in data and in binaryData", "keep one of the two", ("binaryData", key))


def _scaler(data: dict[str, Any]) -> Iterator[PartProblem]:
    if (data.get("minReplicas") or 1) > data["maxReplicas"]:
        yield PartProblem(f"is below minReplicas {data['minReplicas']}", "raise it", ("maxReplicas",))


def _subject(data: dict[str, Any]) -> Iterator[PartProblem]:
    wanted = "" if data["kind"] == "ServiceAccount" else "rbac.authorization.k8s.io"
    if (data.get("apiGroup") or wanted) != wanted:
        yield PartProblem(f"is {data['apiGroup']!r}", f"use {wanted}" if wanted else "remove it", ("apiGroup",))


def _cluster_binding(data: dict[str, Any]) -> Iterator[PartProblem]:
    if data["roleRef"]["kind"] != "ClusterRole":
        yield PartProblem("must be ClusterRole", "use a ClusterRole, or a RoleBinding", ("roleRef", "kind"))
    for index, subject in enumerate(data.get("subjects") or ()):
        if subject["kind"] == "ServiceAccount" and not subject.get("namespace"):
            message = "lacks the field namespace, which a ServiceAccount needs here"
            yield PartProblem(message, "add namespace: {{ .Release.Namespace }}", ("subjects", index))


def _role_rule(data: dict[str, Any]) -> Iterator[PartProblem]:
    for field in ("apiGroups", "resources"):
        if not data.get("nonResourceURLs") and not data.get(field):
            yield PartProblem(f"lacks the field {field}", "add it")


def _role(data: dict[str, Any]) -> Iterator[PartProblem]:
    for index, rule in enumerate(data.get("rules") or ()):
        if rule.get("nonResourceURLs"):
            yield PartProblem("is for a ClusterRole", "use a ClusterRole", ("rules", index, "nonResourceURLs"))


def _ingress_path(data: dict[str, Any]) -> Iterator[PartProblem]:
    if data["pathType"] in ("Exact", "Prefix") and not str(data.get("path") or "").startswith("/"):
        yield PartProblem(f"must begin with / for pathType {data['pathType']}", "give it", ("path",))


_ALWAYS, _ENDING = partial(_restarts, ("Always",)), partial(_restarts, ("Never", "OnFailure"))
_OWN: tuple[tuple[str, Relation], ...] = (
    ("core.v1.Secret", _secret),
    ("core.v1.ConfigMap", _config_map),
    ("core.v1.ServiceSpec", _service),
    ("apps.v1.DeploymentSpec", _ALWAYS),
    ("apps.v1.DeploymentSpec", _deployment),
    ("apps.v1.DeploymentStrategy", _strategy),
    ("apps.v1.StatefulSetUpdateStrategy", _strategy),
    ("apps.v1.RollingUpdateDeployment", _rolling),
    ("apps.v1.RollingUpdateDaemonSet", partial(_rolling, of_machines=True)),
    ("apps.v1.StatefulSetSpec", _ALWAYS),
    ("apps.v1.DaemonSetSpec", _ALWAYS),
    ("apps.v1.ReplicaSetSpec", _ALWAYS),
    ("batch.v1.CronJob", _cron_job),
    ("batch.v1.JobSpec", _ENDING),
    ("batch.v1.JobSpec", _job),
    ("autoscaling.v2.HorizontalPodAutoscalerSpec", _scaler),
    ("rbac.v1.Subject", _subject),
    ("rbac.v1.ClusterRoleBinding", _cluster_binding),
    ("rbac.v1.PolicyRule", _role_rule),
    ("rbac.v1.Role", _role),
    ("networking.v1.HTTPIngressPath", _ingress_path),
    ("networking.v1.NetworkPolicyPort", _policy_port),
)
