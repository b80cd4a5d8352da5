"""Server-side dry run of every object of a release, before anything changes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from functools import partial

from chartgen.errors import Problem
from chartgen.kube import JOB, POD, QUEUE_LABEL, Cluster, ClusterError, Kind, Object, side_by_side
from chartgen.kube.run_kinds import lacks_runtime, with_runtimes
from chartgen.kube.workloads import find_workers
from chartgen.releases.history import OWNER_ANNOTATION, is_owned
from chartgen.releases.state import State

_HELM = "helm"  # the field manager of Helm 4 (pkg/kube/client.go)
_CONFLICT = re.compile(r'conflicts? with "(?P<manager>[^"]+)"[^:]*:(?P<fields>.*)', re.DOTALL)
_QUOTA = "exceeded quota"
_NO_ACCOUNT_YET = re.compile(r"service account \S+/default: ")  # a controller makes it for a new namespace
_ATTEMPTS, _PAUSE = 10, 0.5  # seconds


def dry_run_refusals(
    cluster: Cluster, rendered: Iterable[Object], state: State, *, makes_room: bool = False
) -> list[Problem]:
    """Dry-run all objects of a release on the API server, webhooks included, and return the rejections.

    The API server accepts a JobSet with invalid pods, which then never starts; so the Jobs and pods of the run are
    tried too.

    Args:
        makes_room: Whether another run of the release is removed first, so that a full quota does not matter.
    """
    rendered = list(rendered)
    trials: list[partial[list[Problem]]] = []
    for item, whole in zip(rendered, with_runtimes(rendered), strict=True):
        name = f"{item['kind']} {item['metadata']['name']}"
        trials.append(partial(_refusals, cluster, item, state))
        children = _children(whole, state.namespace)
        trials += [partial(_refusals_of_child, cluster, *child, name, makes_room=makes_room) for child in children]
    return list(dict.fromkeys(problem for problems in side_by_side(trials) for problem in problems))


def _refusals_of_child(cluster: Cluster, kind: Kind, child: Object, owner: str, *, makes_room: bool) -> list[Problem]:
    try:
        _try(cluster, kind, child)
    except ClusterError as error:
        if not (makes_room and _QUOTA in str(error)):
            refusal = _problem(f"{kind.name} of {owner}", error)
            return [Problem(refusal.message, hint="the run would be accepted and never start; correct the values")]
    return []


def _try(cluster: Cluster, kind: Kind, child: Object) -> None:
    for _ in range(_ATTEMPTS - 1):
        try:
            cluster.create(kind, child, dry_run=True)
        except ClusterError as error:
            if not _NO_ACCOUNT_YET.search(str(error)):
                raise
            time.sleep(_PAUSE)
        else:
            return
    cluster.create(kind, child, dry_run=True)


def _refusals(cluster: Cluster, item: Object, state: State) -> list[Problem]:
    name = f"{item['kind']} {item['metadata']['name']}"
    try:
        kind = cluster.kind(item["apiVersion"], item["kind"])
        live = cluster.get(kind, item["metadata"]["name"], item["metadata"].get("namespace") or state.namespace)
        if live is not None and not is_owned(live, state.release, state.namespace):
            owner = (live["metadata"].get("annotations") or {}).get(OWNER_ANNOTATION)
            whose = f"belongs to release {owner}" if owner else "was not made by Helm"
            return [Problem(f"{name} exists already and {whose}", hint="choose another release name, or remove it")]
        if live is not None and "deletionTimestamp" in live["metadata"]:
            return []  # removed before Helm acts
        # anybody can annotate an object as the release's, and Helm adds the chart's files to those that it has
        if item.get("immutable") and live and (more := _keys(live) - _keys(item)):
            message = f"{name} exists already with what the chart does not have: {', '.join(sorted(more))}"
            return [Problem(message, hint="remove it: chartgen did not make it")]
        # Helm applies a release as it did before; new releases server-side.
        server_side = live is None or state.base is None or state.base.server_side
        cluster.apply([item], namespace=state.namespace, dry_run=True, manager=_HELM if server_side else "")
    except ClusterError as error:
        # a runtime that is missing is one that this release creates
        return [] if lacks_runtime(str(error)) else [_problem(name, error)]
    if item.get("spec", {}).get("suspend") is not None and QUEUE_LABEL in item["metadata"].get("labels", {}):
        hint = "leave `suspend` out: Kueue owns it, and writing it evicts the run"
        return [Problem(f"{name} writes `suspend` and asks for a queue", hint=hint)]
    return []


def _keys(item: Object) -> set[str]:
    return {*(item.get("data") or {}), *(item.get("binaryData") or {})}


def _problem(name: str, error: ClusterError) -> Problem:
    """Return a rejection as a problem; for a conflict, name the field managers and their fields."""
    if error.status == 409 and (match := _CONFLICT.search(str(error))):
        fields = ", ".join(re.findall(r"\.[A-Za-z][^\s,]*", match["fields"]))
        message = f"{name}: {match['manager']} has changed {fields or 'fields'} in the cluster"
        return Problem(message, hint="undo that change, or start another run with --set run.again=<word>")
    return Problem(f"{name}: {'; '.join(problem.message for problem in error.problems)}")


def _children(item: Object, namespace: str) -> Iterator[tuple[Kind, Object]]:
    """Yield the Jobs of a JobSet or of a TrainJob with its runtime, and a pod of each workload."""
    workers = find_workers([item])
    if workers is None:
        return
    templates = [(JOB, job["template"]) for job in item["spec"].get("replicatedJobs", ())]
    if item["apiVersion"].partition("/")[0] != "batch.volcano.sh":  # needs its PodGroup first
        templates.append((POD, workers.pod))
    for kind, template in templates:
        metadata = {**template.get("metadata", {}), "name": item["metadata"]["name"], "namespace": namespace}
        yield kind, {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, "spec": template["spec"]}
