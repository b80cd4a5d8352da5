"""Check of the caller's permissions to install, upgrade, follow and remove the release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

from chartgen.kube import LEASE, POD_GROUP, WORKLOAD, WORKLOAD_V1BETA1, Cluster, Kind
from chartgen.kube.controllers import group_of
from chartgen.kube.permissions import Permission
from chartgen.kube.run_kinds import api_kinds
from chartgen.kube.workloads import is_volcano
from chartgen.releases.history import storage_kind
from chartgen.releases.preflight.context import Diagnosis, PreflightContext, failed, passed, warned

_RULES = Kind("authorization.k8s.io/v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False)
_ACCESS = Kind("authorization.k8s.io/v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False)
# Verbs of Helm for the objects of a chart (pkg/kube), and for its own records (pkg/storage/driver).
_LEASE_VERBS = ("get", "create", "patch", "delete")
# With that of the clean-up, which looks for what earlier revisions left.
_MANAGED = ("get", "list", "create", "patch", "delete")
_RECORDS = ("get", "list", "create", "update", "delete")
# Permissions of status, logs and wait.
_FOLLOWED = (("pods", ("get", "list", "watch")), ("pods/log", ("get",)), ("events", ("list",)))


@dataclass(frozen=True)
class Caller:
    """The permissions of the caller in one namespace."""

    cluster: Cluster
    namespace: str

    @cached_property
    def rules(self) -> Any:
        """Return the caller's permissions known to the server; may be incomplete, as with a cloud's own accounts."""
        review = {"apiVersion": _RULES.api_version, "kind": _RULES.name, "metadata": {}}
        return self.cluster.create(_RULES, {**review, "spec": {"namespace": self.namespace}})["status"]

    def lacks(self, need: Permission) -> list[str]:
        """Return the verbs of a permission that the caller lacks."""
        unproven = [verb for verb in need.verbs if not (need.namespace and self._proven(need, verb))]
        if need.namespace and not self.rules.get("incomplete"):
            return unproven
        if unproven and self._may(need, "*"):
            return []
        return [verb for verb in unproven if not self._may(need, verb)]

    def _proven(self, need: Permission, verb: str) -> bool:
        rules = [rule for rule in self.rules["resourceRules"] if not rule.get("resourceNames")]
        return any(
            {verb, "*"} & set(rule["verbs"])
            and {need.group, "*"} & set(rule["apiGroups"])
            and {need.resource, "*"} & set(rule["resources"])
            for rule in rules
        )

    def _may(self, need: Permission, verb: str) -> bool:
        resource, _, subresource = need.resource.partition("/")
        attributes = {"group": need.group, "resource": resource, "subresource": subresource, "verb": verb}
        attributes |= {"namespace": need.namespace} if need.namespace else {}
        review = {"apiVersion": _ACCESS.api_version, "kind": _ACCESS.name, "metadata": {}}
        answer = self.cluster.create(_ACCESS, {**review, "spec": {"resourceAttributes": attributes}})
        return bool(answer["status"]["allowed"])


def permissions(context: PreflightContext) -> Iterator[Diagnosis]:
    """The caller has all permissions that the release needs."""
    caller, well = Caller(context.cluster, context.namespace), True
    needs = [(failed, need) for need in _essential(context)] + [(warned, need) for need in _read_by_status(context)]
    for result, need in needs:
        if verbs := caller.lacks(need):
            lacked, well = replace(need, verbs=tuple(verbs)), False
            yield result(lacked.missing.message, lacked.fix)
    if well:
        yield passed(f"you may do all that a release in namespace {context.namespace} needs")


def _essential(context: PreflightContext) -> Iterator[Permission]:
    """Yield the permissions without which install, upgrade or removal of the release fails."""
    yield _permission(context, storage_kind(), *_RECORDS)
    yield _permission(context, LEASE, *_LEASE_VERBS)
    kinds = {(item["apiVersion"], item["kind"]) for item in context.objects}
    for api_version, name in sorted(kinds):
        if context.cluster.serves(Kind(api_version, name, plural="")):
            yield _permission(context, context.cluster.kind(api_version, name), *_MANAGED)
    for kind in api_kinds():  # a release may have left a run of another kind, so each command looks for all
        if (kind.api_version, kind.name) not in kinds and context.cluster.serves(kind):
            yield _permission(context, kind, "list")


def _read_by_status(context: PreflightContext) -> Iterator[Permission]:
    """Yield the permissions of status, logs and wait: for pods, and for the queue of the run or of any run."""
    run = context.run
    if run is None or context.queue:
        served = filter(context.cluster.serves, (WORKLOAD, WORKLOAD_V1BETA1))
        yield from (_permission(context, kind, "list") for kind in islice(served, 1))
    if (run is None or is_volcano(run)) and context.cluster.serves(POD_GROUP):
        yield _permission(context, POD_GROUP, "get")
    for resource, verbs in _FOLLOWED:
        yield Permission(verbs, "", resource, context.namespace)


def _permission(context: PreflightContext, kind: Kind, *verbs: str) -> Permission:
    return Permission(verbs, group_of(kind.api_version), kind.plural, context.namespace if kind.namespaced else "")
