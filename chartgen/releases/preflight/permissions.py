"""Check of the caller's permissions to install, upgrade, follow and remove the release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from chartgen.kube import LEASE, POD_GROUP, WORKLOAD, WORKLOAD_V1BETA1, Cluster, Kind
from chartgen.kube.controllers import group_of
from chartgen.kube.permissions import Permission
from chartgen.kube.run_kinds import api_kinds
from chartgen.kube.workloads import is_volcano
from chartgen.releases.history import storage_kind
from chartgen.releases.preflight.context import PreflightContext
from chartgen.releases.preflight.result import Diagnosis, failed, passed, warned

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
class Need:
    """Required permissions for one resource.

    Args:
        group: Its API group; empty for the core group.
        resource: Its plural, and a subresource after a slash.
        verbs: The required verbs.
        namespaced: Whether it is namespaced.
        essential: Whether install, upgrade and removal of the release need it.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    namespaced: bool = True
    essential: bool = True


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

    def lacks(self, need: Need) -> list[str]:
        """Return the verbs of a need that the caller lacks."""
        unproven = [verb for verb in need.verbs if not (need.namespaced and self._proven(need, verb))]
        if need.namespaced and not self.rules.get("incomplete"):
            return unproven
        if unproven and self._may(need, "*"):
            return []
        return [verb for verb in unproven if not self._may(need, verb)]

    def _proven(self, need: Need, verb: str) -> bool:
        rules = [rule for rule in self.rules["resourceRules"] if not rule.get("resourceNames")]
        return any(
            {verb, "*"} & set(rule["verbs"])
            and {need.group, "*"} & set(rule["apiGroups"])
            and {need.resource, "*"} & set(rule["resources"])
            for rule in rules
        )

    def _may(self, need: Need, verb: str) -> bool:
        resource, _, subresource = need.resource.partition("/")
        attributes = {"group": need.group, "resource": resource, "subresource": subresource, "verb": verb}
        place = {"namespace": self.namespace} if need.namespaced else {}
        review = {"apiVersion": _ACCESS.api_version, "kind": _ACCESS.name, "metadata": {}}
        answer = self.cluster.create(_ACCESS, {**review, "spec": {"resourceAttributes": {**attributes, **place}}})
        return bool(answer["status"]["allowed"])


def permissions(context: PreflightContext) -> Iterator[Diagnosis]:
    """The caller has all permissions that the release needs."""
    caller, well = Caller(context.cluster, context.namespace), True
    for need in _needs(context):
        if verbs := caller.lacks(need):
            well = False
            yield _missing(context, need, verbs)
    if well:
        yield passed(f"you may do all that a release in namespace {context.namespace} needs")


def _needs(context: PreflightContext) -> Iterator[Need]:
    store = storage_kind()
    yield Need("", store.plural, _RECORDS)
    yield Need(LEASE.api_version.partition("/")[0], LEASE.plural, _LEASE_VERBS)
    kinds = {(item["apiVersion"], item["kind"]) for item in context.objects}
    for api_version, name in sorted(kinds):
        if context.cluster.serves(Kind(api_version, name, plural="")):
            kind = context.cluster.kind(api_version, name)
            yield Need(api_version.rpartition("/")[0], kind.plural, _MANAGED, kind.namespaced)
    for kind in api_kinds():  # a release may have left a run of another kind, so each command looks for all
        if (kind.api_version, kind.name) not in kinds and context.cluster.serves(kind):
            yield _need(kind, "list")
    yield from _queues(context)
    for resource, verbs in _FOLLOWED:
        yield Need("", resource, verbs, essential=False)


def _queues(context: PreflightContext) -> Iterator[Need]:
    """Yield what status reads of the queue of a run, or of any queue of the cluster."""
    run = context.run
    if run is None or context.queue:
        served = filter(context.cluster.serves, (WORKLOAD, WORKLOAD_V1BETA1))
        yield from (_need(kind, "list", essential=False) for kind in islice(served, 1))
    if (run is None or is_volcano(run)) and context.cluster.serves(POD_GROUP):
        yield _need(POD_GROUP, "get", essential=False)


def _need(kind: Kind, verb: str, *, essential: bool = True) -> Need:
    return Need(group_of(kind.api_version), kind.plural, (verb,), kind.namespaced, essential)


def _missing(context: PreflightContext, need: Need, verbs: list[str]) -> Diagnosis:
    place = context.namespace if need.namespaced else ""
    lacked = Permission(tuple(verbs), need.group, need.resource, place)
    return (failed if need.essential else warned)(lacked.missing.message, lacked.fix)
