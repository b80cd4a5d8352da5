"""The runs of a release, whatever their kind: how many pods they ask for, and how they failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chartgen.kube import INSTANCE_LABEL, POD, Cluster, Object
from chartgen.kube.controllers import VOLCANO
from chartgen.kube.run_kinds import API_KINDS, RUN_KINDS, kind_of

# Kinds that own the pods of a run: a JobSet's belong to its Jobs.
_POD_OWNERS = frozenset(each.kind.name for each in RUN_KINDS if each.owns_pods)


def find_runs(cluster: Cluster, release: str, namespace: str, *, deleting: bool = False) -> list[Object]:
    """Return the release's own runs, without the Jobs of a JobSet, and without those that are `deleting`."""
    labels = {INSTANCE_LABEL: release}
    # The API leaves out kind and version of built-in objects in lists.
    found = [
        {"kind": kind.name, "apiVersion": kind.api_version, **item}
        for kind in API_KINDS
        if cluster.serves(kind)
        for item in cluster.list(kind, namespace=namespace, labels=labels)
    ]
    return [item for item in found if not owners(item) and (deleting or "deletionTimestamp" not in item["metadata"])]


def find_pods(cluster: Cluster, release: str, namespace: str) -> list[Object]:
    """Return the release's pods that a run made and that are not being deleted."""
    return [*each_pod(cluster, release, namespace)]


def each_pod(
    cluster: Cluster, release: str, namespace: str, labels: Mapping[str, str] | None = None
) -> Iterator[Object]:
    """Return the same pods one by one, or those with some more labels; no more than a page of them is held."""
    for pod in cluster.each(POD, namespace=namespace, labels={INSTANCE_LABEL: release, **(labels or {})}):
        if _POD_OWNERS & set(owners(pod)) and "deletionTimestamp" not in pod["metadata"]:
            yield pod


def is_volcano(run: Object) -> bool:
    """Distinguish Volcano's Jobs from those of Kubernetes, which have the same kind."""
    return kind_of(run).controller is VOLCANO


def expected_pods(run: Object) -> int:
    """Count the pods that a run asks for."""
    return sum(role.count for role in kind_of(run).roles(run["spec"]))


def why_failed(run: Object) -> str:
    """Report that a run has failed, and why; empty when it has not."""
    why = kind_of(run).status.failure(run)
    return f"{run['kind']} {run['metadata']['name']} has failed: {why}" if why is not None else ""


def outcome(run: Object) -> str:
    """Report how a run ended: "finished" or "failed"; empty while it waits or runs."""
    if why_failed(run):
        return "failed"
    return "finished" if kind_of(run).status.has_finished(run) else ""


def owners(item: Object) -> list[str]:
    """Return the kinds of an object's owners."""
    return [owner["kind"] for owner in item["metadata"].get("ownerReferences", ())]
