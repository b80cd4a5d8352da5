"""What a run is: one row for each kind of job, with its pods, its end, its controller and the field that holds it back.

A new workload kind is one row here, beside its folder of templates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from chartgen.kube.controllers import JOB_CONTROLLER, JOBSET_CONTROLLER, TRAINING_OPERATOR, VOLCANO, Controller
from chartgen.kube.kinds import JOB, JOBSET, PYTORCHJOB, QUEUE_LABEL, VOLCANO_JOB, Kind, Object


@dataclass(frozen=True)
class Role:
    """A sort of pods in a run.

    Args:
        name: What the object calls them, such as a replicated job or a task; empty when it has one sort only.
        template: Their pod template.
        count: How many there are at a time.
        works: Whether they run the program on the machines.
    """

    name: str
    template: dict[str, Any]
    count: int
    works: bool = True


class Conditions:
    """How a run ends that has conditions: a Job, a JobSet, a PyTorchJob."""

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
        """Return the times at which a run has ended."""
        return (each["lastTransitionTime"] for each in _true(run) if each["type"] in self._ENDED)

    def restarts(self, run: Object) -> int:
        """Count how often the controller has started the whole run again."""
        return int(run.get("status", {}).get("restarts", 0))

    def most_restarts(self, run: Object) -> int:
        """Return how often the controller may start the whole run again."""
        return int(run["spec"].get("failurePolicy", {}).get("maxRestarts", 0))


class Phases:
    """How a Volcano Job ends, which has a phase."""

    _FAILED = frozenset(("Failed", "Aborted", "Terminated"))  # the final ones beside Completed

    def failure(self, run: Object) -> str | None:
        """Return why a run has failed; None when it has not."""
        status = run.get("status", {})
        phase = status.get("state", {}).get("phase")
        return f"{phase}, attempt {max(status.get('retryCount', 0), 1)}" if phase in self._FAILED else None

    def has_finished(self, run: Object) -> bool:
        """Report whether a run has come to a good end."""
        return bool(run.get("status", {}).get("state", {}).get("phase") == "Completed")

    def ends(self, run: Object) -> Iterator[str]:
        """Return the times at which a run has ended, for one that has."""
        yield run["status"]["state"]["lastTransitionTime"]

    def restarts(self, run: Object) -> int:
        """Count how often the controller has started the whole run again.

        Volcano counts the failure that ends the run too (pkg/controllers/job/state/restarting.go).
        """
        return max(0, int(run.get("status", {}).get("retryCount", 0)) - (self.failure(run) is not None))

    def most_restarts(self, run: Object) -> int:
        """Return how often the controller may start the whole run again."""
        return int(run["spec"]["maxRetry"]) - 1


@dataclass(frozen=True)
class RunKind:
    """A kind of run.

    Args:
        kind: Of the API.
        name: What people call it.
        roles: Takes the spec of an object, returns its sorts of pods.
        controller: Whose it is.
        status: How it ends.
        suspend: Path to the map with the field `suspend`, by which Kueue holds a run back at creation (Kueue,
            pkg/controller/jobs).
        owns_pods: Whether its pods name it as their owner; those of a JobSet name its Jobs.
    """

    kind: Kind
    name: str
    roles: Callable[[Mapping[str, Any]], list[Role]]
    controller: Controller
    status: Conditions | Phases
    suspend: tuple[str, ...] = ()
    owns_pods: bool = True


def run_kind(item: Object) -> RunKind | None:
    """Return the kind of a run; None for an object that is none. Two kinds are called Job, so the API group decides."""
    return _BY_GROUP.get((str(item["apiVersion"]).rpartition("/")[0], item["kind"]))


def kind_of(run: Object) -> RunKind:
    """Return the kind of an object that is a run."""
    found = run_kind(run)
    assert found, f"{run['apiVersion']} {run['kind']} is no run"  # noqa: S101 callers have asked for runs
    return found


def queue_of(run: Object) -> str:
    """Return the queue that a run asks for; empty when it asks for none."""
    if kind_of(run).controller is VOLCANO:
        return str(run["spec"].get("queue", ""))
    return str(run["metadata"].get("labels", {}).get(QUEUE_LABEL, ""))


def _true(run: Object) -> Iterator[dict[str, Any]]:
    conditions = run.get("status", {}).get("conditions", ())
    return (each for each in conditions if each.get("status") == "True")


def _parallelism(job: Mapping[str, Any]) -> int:
    parallelism = int(job.get("parallelism", 1))
    return min(parallelism, int(job.get("completions", parallelism)))


def _job(spec: Mapping[str, Any]) -> list[Role]:
    return [Role("", spec["template"], _parallelism(spec))]


def _jobset(spec: Mapping[str, Any]) -> list[Role]:
    jobs = [(job, job["template"]["spec"]) for job in spec["replicatedJobs"]]
    return [
        Role(job["name"] * (len(jobs) > 1), of["template"], int(job.get("replicas", 1)) * _parallelism(of), not at)
        for at, (job, of) in enumerate(jobs)
    ]


def _pytorch_job(spec: Mapping[str, Any]) -> list[Role]:
    """Return its replicas; a master works alone where there are no workers."""
    replicas = spec["pytorchReplicaSpecs"]
    working = "Worker" if "Worker" in replicas else next(iter(replicas))
    return [
        Role(name.lower() * (len(replicas) > 1), each["template"], int(each.get("replicas", 1)), name == working)
        for name, each in replicas.items()
    ]


def _volcano_job(spec: Mapping[str, Any]) -> list[Role]:
    """Return its tasks; a master, which only starts the others, is the first."""
    tasks = spec["tasks"]
    return [Role(task["name"], task["template"], int(task.get("replicas", 1)), task is tasks[-1]) for task in tasks]


RUN_KINDS = (
    RunKind(JOBSET, "JobSet", _jobset, JOBSET_CONTROLLER, Conditions(), owns_pods=False),
    RunKind(PYTORCHJOB, "PyTorchJob", _pytorch_job, TRAINING_OPERATOR, Conditions(), suspend=("runPolicy",)),
    RunKind(VOLCANO_JOB, "Volcano Job", _volcano_job, VOLCANO, Phases()),
    RunKind(JOB, "Job", _job, JOB_CONTROLLER, Conditions()),
)
_BY_GROUP = {(each.kind.api_version.rpartition("/")[0], each.kind.name): each for each in RUN_KINDS}
API_KINDS = tuple(each.kind for each in RUN_KINDS)
# The names of their objects; two kinds share one.
RUN_NAMES = frozenset(each.kind.name for each in RUN_KINDS)
