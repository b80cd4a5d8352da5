"""The runs of a release, of any kind, live or rendered: their pods, their program, and their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from chartgen.errors import ChartgenError, Problem
from chartgen.kube import INSTANCE_LABEL, POD, TRAINING_RUNTIME, TRAINJOB, Cluster, Kind, Object
from chartgen.kube.controllers import VOLCANO
from chartgen.kube.manifest_walk import maps
from chartgen.kube.run_kinds import api_kinds, find, kind_of, owner_names, queue_of, run_kind, with_runtimes

# Names the container that runs the program (kubernetes.io, Well-Known Labels, Annotations and Taints). Every pod of
# chartgen's charts has it; admission webhooks may insert containers before that one.
_PROGRAM = "kubectl.kubernetes.io/default-container"
_COMPONENT = "app.kubernetes.io/component"


def find_runs(
    cluster: Cluster,
    release: str,
    namespace: str,
    *,
    deleting: bool = False,
    needed: Callable[[Kind], bool] = lambda _: True,
) -> list[Object]:
    """Return the release's own runs, without the Jobs of a JobSet.

    Args:
        deleting: Include runs in deletion.
        needed: Whether the caller needs a kind that the user may not list. Runs of the other kinds are missing then,
            and `cluster.unread` contains the permission.

    Raises:
        ClusterError: The user may not list a needed kind.
    """
    found: list[Object] = []
    for kind in filter(cluster.serves, api_kinds()):
        with nullcontext() if needed(kind) else cluster.optional():
            found += _of_release(cluster, kind, release, namespace)
    runs = [item for item in found if not owners(item) and (deleting or "deletionTimestamp" not in item["metadata"])]
    return [run for run, _ in cluster.judged(_whole(cluster, runs, found, release, namespace), _facts)]


def _whole(cluster: Cluster, runs: list[Object], found: list[Object], release: str, namespace: str) -> Iterable[Object]:
    """Return runs with what other objects contain of them."""
    if not any(run["kind"] == TRAINJOB.name for run in runs):
        return runs
    restarts = {item["metadata"]["name"]: item.get("status", {}).get("restarts") for item in found if owners(item)}
    known = _of_release(cluster, TRAINING_RUNTIME, release, namespace)
    runtimes = [each for each, _ in cluster.judged(known, lambda each: with_runtimes([each]))]
    whole = cluster.judged(runs, lambda run: with_runtimes([run, *runtimes])[0])
    return [_with_restarts(run, restarts.get(run["metadata"]["name"])) for _, run in whole]


def why_no_run(chart: str, items: Iterable[Object]) -> Problem:
    """Return why the objects of a chart contain no run: it installs none, or one of a kind that is not known."""
    strange = [each for each in items if run_kind(each) is None and any(_PROGRAM in node for _, node in maps(each))]
    if not strange:
        return Problem(f"{chart} contains no job", hint="a setup chart has none: name the chart of a target")
    names = " and ".join(sorted({f"{each['kind']} ({each['apiVersion']})" for each in strange}))
    hint = "--path, CHARTGEN_PATH or chartgen.yaml names the folder of its workload.yaml, which states `run`"
    return Problem(f"{chart} is unchecked: nothing here knows the kind {names}", hint=hint)


def _of_release(cluster: Cluster, kind: Kind, release: str, namespace: str) -> list[Object]:
    return cluster.list(kind, namespace=namespace, labels={INSTANCE_LABEL: release})


def _facts(run: Object) -> tuple[Any, ...]:
    """Return everything that readers ask of a run: one that lacks the form of its kind is left out here."""
    status = kind_of(run).status
    ends = [*status.ends(run)] if outcome(run) else []
    workers, metadata = find_workers([run]), run["metadata"]
    return (
        {metadata["uid"], metadata["creationTimestamp"]},
        {each.get("type") for each in run.get("status", {}).get("conditions", ())},  # Volcano's have none
        workers and (workers.trains, workers.spares),
        expected_pods(run),
        is_suspended(run),
        queue_of(run),
        status.count_restarts(run),
        status.most_restarts(run),
        ends,
    )


def _with_restarts(run: Object, count: int | None) -> Object:
    """Return a TrainJob with the restarts that the JobSet of its name counts; other runs count their own."""
    return {**run, "status": {**run.get("status", {}), "restarts": count}} if count else run


def find_pods(cluster: Cluster, release: str, namespace: str) -> list[Object]:
    """Return the release's pods that belong to a run and are not being deleted."""
    return [*each_pod(cluster, release, namespace)]


def each_pod(
    cluster: Cluster, release: str, namespace: str, labels: Mapping[str, str] | None = None
) -> Iterator[Object]:
    """Yield the same pods one by one, or only those with more labels; keep at most one page in memory."""
    known = owner_names()
    for pod in cluster.each(POD, namespace=namespace, labels={INSTANCE_LABEL: release, **(labels or {})}):
        if known & set(owners(pod)) and "deletionTimestamp" not in pod["metadata"]:
            yield pod


def is_volcano(run: Object) -> bool:
    """Report whether a run is a Volcano Job, which has the same kind as a Kubernetes Job."""
    return kind_of(run).controller is VOLCANO


def is_suspended(run: Object) -> bool:
    """Report whether a run is suspended, by its queue or by a user."""
    return bool(find(run["spec"], kind_of(run).suspend))


def expected_pods(run: Object) -> int:
    """Return the number of pods that a run requests."""
    return sum(role.count for role in kind_of(run).roles(run["spec"]))


def why_failed(run: Object) -> str:
    """Return why a run has failed; empty when it has not."""
    why = kind_of(run).status.failure(run)
    return f"{run['kind']} {run['metadata']['name']} has failed: {why}" if why is not None else ""


def outcome(run: Object) -> str:
    """Return how a run ended: "finished" or "failed"; empty while it is pending or runs."""
    if why_failed(run):
        return "failed"
    return "finished" if kind_of(run).status.has_finished(run) else ""


def owners(item: Object) -> list[str]:
    """Return the kinds of an object's owners."""
    return [owner["kind"] for owner in item["metadata"].get("ownerReferences", ())]


def program_of(pod: Object) -> dict[str, Any]:
    """Return the container of a pod that runs the program: the one in its annotation, else the first with GPUs."""
    containers: list[dict[str, Any]] = pod["spec"]["containers"]
    named = ((pod.get("metadata") or {}).get("annotations") or {}).get(_PROGRAM)
    own = [container for container in containers if container["name"] == named]
    return (own or [each for each in containers if any(str(count) != "0" for count in _gpus(each))] or containers)[0]


def gpus(pod: Object) -> int:
    """Return the number of a pod's GPUs: the limits of all resources named <vendor>/gpu."""
    return sum(int(count) for container in pod["spec"]["containers"] for count in _gpus(container))


def _gpus(container: dict[str, Any]) -> list[Any]:
    limits = (container.get("resources") or {}).get("limits") or {}
    return [count for name, count in limits.items() if name.endswith("/gpu")]


@dataclass(frozen=True)
class Workers:
    """The pods of a run that do the work: the usual name of their kind, one pod, their number, and their queue."""

    name: str
    kind: str
    pod: dict[str, Any]
    count: int
    queue: str

    @property
    def env(self) -> dict[str, str]:
        """Return the plain variables of the program's container."""
        return {entry["name"]: entry.get("value", "") for entry in program_of(self.pod).get("env", ())}

    @property
    def spares(self) -> int:
        """Return how many there are beside those of which the program knows."""
        known = self.env.get("NNODES", "")
        return max(self.count - int(known), 0) if known.isdecimal() and gpus(self.pod) else 0

    def volume(self, path: str) -> dict[str, Any]:
        """Return the volume that contains a path of the program's container; empty when none does."""
        mounts = {mount["mountPath"]: mount["name"] for mount in program_of(self.pod).get("volumeMounts", ())}
        parents = [place for place in mounts if path == place or path.startswith(f"{place}/")]
        name = mounts[max(parents, key=len)] if parents else ""
        return next((volume for volume in self.pod["spec"].get("volumes", ()) if volume["name"] == name), {})

    @property
    def trains(self) -> bool:
        """Report whether they train, and do not prepare data or test machines."""
        return bool(self.pod.get("metadata", {}).get("labels", {}).get(_COMPONENT, "train") == "train")


def find_workers(rendered: Iterable[dict[str, Any]]) -> Workers | None:
    """Return the workers of the run among rendered objects; None without a run."""
    try:
        return next(filter(None, map(_workers, with_runtimes(rendered))), None)
    except (KeyError, TypeError, AttributeError):
        raise ChartgenError("an object of the release is of another form than its kind; restore its record") from None


def _workers(item: dict[str, Any]) -> Workers | None:
    """Return the workers of an object; None when it is not a run, or its pods are unknown."""
    kind = run_kind(item)
    role = next((role for role in kind.roles(item["spec"]) if role.works), None) if kind else None
    if kind is None or role is None:
        return None
    return Workers(item["metadata"]["name"], kind.name, role.template, role.count, queue_of(item))


def used_api_versions(found: Iterable[dict[str, Any]]) -> frozenset[str]:
    """Return the API versions of rendered objects, which determine the required controllers."""
    return frozenset(str(item["apiVersion"]) for item in found)
