"""Remove live objects of a release: runs with all their pods, and leftovers. Data stays."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from chartgen.errors import ChartgenError, Problem
from chartgen.kube import CONFIG_MAP, INSTANCE_LABEL, Cluster, ClusterError, Kind, Object, side_by_side
from chartgen.kube.run_kinds import api_kinds
from chartgen.programs import Progress
from chartgen.releases.history import is_owned
from chartgen.releases.state import State, pods_before

_POLICY = "helm.sh/resource-policy"
_GRACE_BEYOND = 120.0  # seconds beyond the pods' own grace period, to unmount images and report the end
_MOST_GRACE = 86_400  # seconds; a pod that bears the labels of a run may state any number
_REPORT_EVERY = 10.0
_SHORTEST, _LONGEST = 0.1, 1.0  # seconds between two polls
_HEAD = re.compile(r"^(apiVersion|kind): *[\"']?([^\s\"'#]+)", re.MULTILINE)


def remove_runs(
    cluster: Cluster,
    state: State,
    runs: Iterable[Object],
    run: str = "",
    *,
    check: Callable[[], None],
    progress: Progress,
) -> None:
    """Delete runs and wait until all their pods are gone, so that the next run finds machines and directory free.

    Also wait for terminating pods of runs that another program, such as plain Helm, has deleted.

    Args:
        runs: The runs to delete.
        run: Name of the next run; empty for none.
        check: Called between polls; raises when the caller must stop.
        progress: Receives a line at the start and every ten seconds.

    Raises:
        ChartgenError: Pods do not end within their grace period plus two minutes.
    """
    runs = list(runs)
    pods = pods_before(cluster, state, runs, run)
    check()
    for item in runs:
        progress(f"removing {item['kind']} {item['metadata']['name']}")
        cluster.delete_object(item, namespace=state.namespace, foreground=True)
    told = [each for pod in pods if isinstance(each := pod["spec"].get("terminationGracePeriodSeconds"), int)]
    grace = min(max(told, default=30), _MOST_GRACE)
    deadline, reported, pause = time.monotonic() + grace + _GRACE_BEYOND, time.monotonic(), _SHORTEST
    while left := (runs or pods) and _left(cluster, state, runs, run):
        check()
        name = left[-1]["metadata"]["name"]
        if time.monotonic() > deadline:
            hint = f"find the cause with `kubectl describe pod {name}`, then run the same command again"
            raise ChartgenError(Problem(f"the old run does not end: {name} is still there", hint=hint))
        if time.monotonic() - reported > _REPORT_EVERY:
            reported = time.monotonic()
            progress(f"waiting for the old run to end ({name}), at most {deadline - reported:.0f} s more")
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST)


def sweep_objects(cluster: Cluster, rendered: Iterable[Object], state: State) -> Iterator[str]:
    """Delete objects that Helm made for a release and that no revision contains any longer; keep data.

    Args:
        rendered: The objects of the current revision; empty after an uninstall.

    Yields:
        Kind and name of each deleted object.
    """
    rendered = list(rendered)
    wanted = {(item["kind"], item["metadata"]["name"]) for item in rendered}
    kinds = _kinds(cluster, rendered, state)
    for kind, found in zip(
        kinds, side_by_side(partial(leftovers, cluster, kind, state) for kind in kinds), strict=True
    ):
        for item in found:
            name = item["metadata"]["name"]
            if (kind.name, name) in wanted or is_kept(item):
                continue
            if cluster.delete_object(item, foreground=True):
                yield f"{kind.name} {name}"


def leftovers(cluster: Cluster, kind: Kind, state: State) -> list[Object]:
    """Return the metadata of the objects of a kind that Helm made for a release and that are not being deleted."""
    namespace = state.namespace if kind.namespaced else ""
    found = cluster.list(kind, namespace=namespace, labels={INSTANCE_LABEL: state.release}, metadata_only=True)
    return [
        item
        for item in found
        if is_owned(item, state.release, state.namespace) and "deletionTimestamp" not in item["metadata"]
    ]


def is_kept(item: Object) -> bool:
    """Report whether Helm keeps an object on uninstall, such as a claim with data."""
    return (item["metadata"].get("annotations") or {}).get(_POLICY) == "keep"


def _kinds(cluster: Cluster, rendered: list[Object], state: State) -> list[Kind]:
    """Return the kinds of objects that a release may have: those of all its revisions, and of runs."""
    names = {(item["apiVersion"], item["kind"]) for item in rendered}
    for record in state.records:
        for document in re.split(r"^---", record.manifest, flags=re.MULTILINE):
            head = dict(_HEAD.findall(document))
            if len(head) == 2:
                names.add((head["apiVersion"], head["kind"]))
    found = {(kind.api_version, kind.name): kind for kind in (CONFIG_MAP, *filter(cluster.serves, api_kinds()))}
    for api_version, name in sorted(names - found.keys()):
        try:
            found[api_version, name] = cluster.kind(api_version, name)
        except ClusterError as error:
            if error.status != 404:  # its CRD and all its objects are deleted
                raise
    return list(found.values())


def _left(cluster: Cluster, state: State, runs: list[Object], run: str) -> list[Object]:
    """Return the objects that must still end: runs, which foreground deletion keeps until their pods end, then pods.

    Do not read thousands of pods while the run's own object still exists.
    """
    found = []
    for item in runs:
        metadata = item["metadata"]
        live = cluster.get(cluster.kind(item["apiVersion"], item["kind"]), metadata["name"], state.namespace)
        if live is not None and live["metadata"]["uid"] == metadata["uid"]:
            found.append(live)
    return found or pods_before(cluster, state, runs, run)
