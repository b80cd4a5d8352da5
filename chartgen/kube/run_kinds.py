"""The kinds of runs: one row per kind of job, with its pods, its end, its controller and the field that suspends it.

A new workload kind needs one row here, besides its folder of templates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chartgen.kube.controllers import (
    JOB_CONTROLLER,
    JOBSET_CONTROLLER,
    KUBERAY,
    MPI_OPERATOR,
    TRAINER,
    TRAINING_OPERATOR,
    VOLCANO,
    Controller,
    group_of,
)
from chartgen.kube.kinds import (
    JOB,
    JOBSET,
    MPIJOB,
    PYTORCHJOB,
    QUEUE_LABEL,
    RAYJOB,
    TRAINING_RUNTIME,
    TRAINJOB,
    VOLCANO_JOB,
    Kind,
    Object,
)


@dataclass(frozen=True)
class Role:
    """A sort of pods in a run.

    Args:
        name: Their name in the object, such as a replicated job or a task; empty when it has only one sort.
        template: Their pod template.
        count: Number of pods at a time.
        works: Whether they run the program on the machines.
    """

    name: str
    template: dict[str, Any]
    count: int
    works: bool = True


class Conditions:
    """The end of a run with conditions: a Job, a JobSet, a PyTorchJob, an MPIJob, a TrainJob."""

    _FINISHED = frozenset(("Complete", "Completed", "Succeeded"))
    _ENDED = _FINISHED | {"Failed"}

    def failure(self, run: Object) -> str | None:
        """Return why a run has failed, which may be empty; None when it has not."""
        failed = (each for each in _true(run) if each["type"] == "Failed")
        return next((str(each.get("message")) for each in failed), None)

    def has_finished(self, run: Object) -> bool:
        """Report whether a run has come to a good end."""
        return any(each["type"] in self._FINISHED for each in _true(run))

    def ends(self, run: Object) -> Iterator[str]:
        """Yield the times at which a run ended."""
        return (each["lastTransitionTime"] for each in _true(run) if each["type"] in self._ENDED)

    def restarts(self, run: Object) -> int:
        """Count how often the controller has started the whole run again."""
        return int(run.get("status", {}).get("restarts", 0))

    def most_restarts(self, run: Object) -> int:
        """Return how often the controller may start the whole run again."""
        return int(run["spec"].get("failurePolicy", {}).get("maxRestarts", 0))


class Phases:
    """The end of a Volcano Job, which has a phase."""

    _FAILED = frozenset(("Failed", "Aborted", "Terminated"))  # the final phases besides Completed

    def failure(self, run: Object) -> str | None:
        """Return why a run has failed; None when it has not."""
        status = run.get("status", {})
        phase = status.get("state", {}).get("phase")
        return f"{phase}, attempt {max(status.get('retryCount', 0), 1)}" if phase in self._FAILED else None

    def has_finished(self, run: Object) -> bool:
        """Report whether a run has come to a good end."""
        return bool(run.get("status", {}).get("state", {}).get("phase") == "Completed")

    def ends(self, run: Object) -> Iterator[str]:
        """Yield the times at which a finished run ended."""
        yield run["status"]["state"]["lastTransitionTime"]

    def restarts(self, run: Object) -> int:
        """Count how often the controller has started the whole run again.

        Volcano counts the failure that ends the run too (pkg/controllers/job/state/restarting.go).
        """
        return max(0, int(run.get("status", {}).get("retryCount", 0)) - (self.failure(run) is not None))

    def most_restarts(self, run: Object) -> int:
        """Return how often the controller may start the whole run again."""
        return int(run["spec"]["maxRetry"]) - 1


class RayStates:
    """The end of a RayJob, which has a state of its deployment and one of the job that Ray runs.

    For KubeRay a job that was stopped is complete (ray-operator v1.6.2, controllers/ray/rayjob_controller.go).
    """

    _FAILED = frozenset(("Failed", "ValidationFailed"))

    def failure(self, run: Object) -> str | None:
        """Return why a run has failed; None when it has not."""
        status = run.get("status", {})
        state, job = status.get("jobDeploymentStatus"), status.get("jobStatus", "")
        if state not in self._FAILED and (state != "Complete" or job == "SUCCEEDED"):
            return None
        return ": ".join(filter(None, (status.get("reason") or job or state, status.get("message"))))

    def has_finished(self, run: Object) -> bool:
        """Report whether a run has come to a good end."""
        status = run.get("status", {})
        return (status.get("jobDeploymentStatus"), status.get("jobStatus")) == ("Complete", "SUCCEEDED")

    def ends(self, run: Object) -> Iterator[str]:
        """Yield the time at which a run ended; none for one that KubeRay never started."""
        if end := run.get("status", {}).get("endTime"):
            yield end

    def restarts(self, run: Object) -> int:
        """Count how often KubeRay has started the whole run again; it counts failures."""
        status = run.get("status", {})
        has_failed = status.get("jobDeploymentStatus") == "Failed"
        return max(0, int(status.get("failed") or 0) - int(has_failed))

    def most_restarts(self, run: Object) -> int:
        """Return how often KubeRay may start the whole run again."""
        return int(run["spec"].get("backoffLimit") or 0)


@dataclass(frozen=True)
class RunKind:
    """A kind of run.

    Args:
        kind: Its kind in the API.
        name: Its usual name.
        roles: Takes the spec of an object, returns its sorts of pods.
        controller: Its controller.
        status: Its end.
        suspend: Path to the map with the field `suspend`, with which Kueue suspends a run at creation (Kueue,
            pkg/controller/jobs).
        pod_owner: The kind that its pods name as their owner, where that is another: those of a JobSet, also of a
            TrainJob's, name its Jobs, those of a RayJob its RayCluster and the Job of its submitter.
        started_by: What starts the processes of chartgen's charts from a pod of its own, mpirun or Ray; empty = each
            pod starts its own.
    """

    kind: Kind
    name: str
    roles: Callable[[Mapping[str, Any]], list[Role]]
    controller: Controller
    status: Conditions | Phases | RayStates
    suspend: tuple[str, ...] = ()
    pod_owner: str = ""
    started_by: str = ""


def run_kind(item: Object) -> RunKind | None:
    """Return the kind of a run; None for other objects. Two kinds are called Job, so the API group decides."""
    return _BY_GROUP.get((group_of(str(item["apiVersion"])), item["kind"]))


def kind_of(run: Object) -> RunKind:
    """Return the kind of an object that is a run."""
    found = run_kind(run)
    assert found, f"{run['apiVersion']} {run['kind']} is not a run"  # noqa: S101 callers pass only runs
    return found


def queue_of(run: Object) -> str:
    """Return the queue that a run requests; empty without one."""
    if kind_of(run).controller is VOLCANO:
        return str(run["spec"].get("queue", ""))
    return str(run["metadata"].get("labels", {}).get(QUEUE_LABEL, ""))


def with_runtimes(items: Iterable[Object]) -> list[Object]:
    """Return objects in which each TrainJob has the spec of the JobSet that a TrainingRuntime among them describes."""
    items = list(items)
    specs = {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]
        for item in items
        if (item["apiVersion"], item["kind"]) == (TRAINING_RUNTIME.api_version, TRAINING_RUNTIME.name)
    }
    return [_with_runtime(item, specs) if specs and item["kind"] == TRAINJOB.name else item for item in items]


def _with_runtime(run: Object, specs: Mapping[str, dict[str, Any]]) -> Object:
    return {**run, "spec": {**specs.get(run["spec"]["runtimeRef"]["name"], {}), **run["spec"]}}


def lacks_runtime(answer: str) -> bool:
    """Report whether a TrainJob was refused only because its TrainingRuntime does not exist yet.

    Trainer, pkg/runtime/core/trainingruntime.go; Kueue, pkg/controller/jobs/trainjob.
    """
    return bool(re.search(r"must be created before the TrainJob|runtime '[^']+' not found", answer))


def _true(run: Object) -> Iterator[dict[str, Any]]:
    conditions = run.get("status", {}).get("conditions", ())
    return (condition for condition in conditions if condition.get("status") == "True")


def _parallelism(job: Mapping[str, Any]) -> int:
    parallelism = int(job.get("parallelism", 1))
    return min(parallelism, int(job.get("completions", parallelism)))


def _job(spec: Mapping[str, Any]) -> list[Role]:
    return [Role("", spec["template"], _parallelism(spec))]


def _jobset(spec: Mapping[str, Any]) -> list[Role]:
    """Return its replicated jobs; none of a TrainJob whose runtime is unknown."""
    jobs = [(job, job["template"]["spec"]) for job in spec.get("replicatedJobs", ())]
    return [
        Role(
            job["name"] * (len(jobs) > 1), child["template"], int(job.get("replicas", 1)) * _parallelism(child), not at
        )
        for at, (job, child) in enumerate(jobs)
    ]


def _pytorch_job(spec: Mapping[str, Any]) -> list[Role]:
    return _replicas(spec["pytorchReplicaSpecs"])


def _mpi_job(spec: Mapping[str, Any]) -> list[Role]:
    return _replicas(spec["mpiReplicaSpecs"])


def _replicas(replicas: Mapping[str, Any]) -> list[Role]:
    """Return the replicas of a Kubeflow job; a master without workers does the work."""
    working = "Worker" if "Worker" in replicas else next(iter(replicas), "")
    return [
        Role(name.lower() * (len(replicas) > 1), replica["template"], int(replica.get("replicas", 1)), name == working)
        for name, replica in replicas.items()
    ]


def _volcano_job(spec: Mapping[str, Any]) -> list[Role]:
    """Return its tasks; the first may be a master, which only starts the others."""
    tasks = spec["tasks"]
    return [Role(task["name"], task["template"], int(task.get("replicas", 1)), task is tasks[-1]) for task in tasks]


def _ray_job(spec: Mapping[str, Any]) -> list[Role]:
    """Return the head, the groups of workers and the submitter; nothing of a RayJob on another one's cluster."""
    cluster, submitter = spec.get("rayClusterSpec") or {}, spec.get("submitterPodTemplate")
    if not cluster:
        return []
    groups = cluster.get("workerGroupSpecs") or ()
    return [
        Role("head", cluster["headGroupSpec"]["template"], 1, works=not groups),
        *(Role(group["groupName"], group["template"], int(group.get("replicas", 1))) for group in groups),
        *([Role("submitter", submitter, 1, works=False)] if submitter else []),
    ]


RUN_KINDS = (
    RunKind(JOBSET, "JobSet", _jobset, JOBSET_CONTROLLER, Conditions(), pod_owner=JOB.name),
    RunKind(PYTORCHJOB, "PyTorchJob", _pytorch_job, TRAINING_OPERATOR, Conditions(), suspend=("runPolicy",)),
    RunKind(VOLCANO_JOB, "Volcano Job", _volcano_job, VOLCANO, Phases(), started_by="mpirun"),
    RunKind(MPIJOB, "MPIJob", _mpi_job, MPI_OPERATOR, Conditions(), suspend=("runPolicy",), started_by="mpirun"),
    RunKind(TRAINJOB, "TrainJob", _jobset, TRAINER, Conditions(), pod_owner=JOB.name),
    RunKind(RAYJOB, "RayJob", _ray_job, KUBERAY, RayStates(), pod_owner="RayCluster", started_by="Ray"),
    RunKind(JOB, "Job", _job, JOB_CONTROLLER, Conditions()),
)
_BY_GROUP = {(group_of(each.kind.api_version), each.kind.name): each for each in RUN_KINDS}
API_KINDS = tuple(each.kind for each in RUN_KINDS)
STARTERS = {kind.name: kind.started_by for kind in RUN_KINDS if kind.started_by}
# The kinds of their objects; two share the name Job.
RUN_NAMES = frozenset(each.kind.name for each in RUN_KINDS)
# With those that their pods name as owners.
OWNER_NAMES = RUN_NAMES | {kind.pod_owner for kind in RUN_KINDS if kind.pod_owner}
