"""The kinds of runs: the pods of each kind of job, its end, its controller, and the field that suspends it.

Each kind is data of its own folder of the library: `run` of its workload.yaml.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import Any

from chartgen.errors import ChartgenError, Problem
from chartgen.helm.yaml import load_file, require_map
from chartgen.kube.controllers import INSTALLED, JOB_CONTROLLER, VOLCANO, Controller, group_of
from chartgen.kube.kinds import QUEUE_LABEL, TRAINING_RUNTIME, TRAINJOB, Kind, Object

_CONTROLLERS = {each.name: each for each in (JOB_CONTROLLER, *INSTALLED)}
_BUILTIN = Path(__file__).parent.parent / "library"
# k8s.io/apimachinery v0.36, pkg/util/validation: names become parts of paths of the API.
_PLURAL, _KIND, _API = r"[a-z][a-z0-9]*", r"[A-Za-z][A-Za-z0-9]*", r"([a-z0-9.-]+/)?v[a-z0-9]+"
_OWN: dict[Path, None] = {}  # folders of the user's, in the order in which they were named


@dataclass(frozen=True)
class Role:
    """A sort of pods in a run."""

    name: str  # their name in the object, such as a replicated job or a task; empty when it has only one sort
    template: dict[str, Any]
    count: int
    works: bool = True  # whether they run the program on the machines


@dataclass(frozen=True)
class RunEnd:
    """How the runs of a kind end and start again; paths are in the object's status."""

    finished: tuple[str, ...] = ()  # conditions, or patterns of phases, of a good end
    failed: tuple[str, ...] = ()  # those of a failure, where none of `finished` is true
    phase: tuple[str, ...] = ()  # paths to the parts of its phase, which a / joins; empty = it has conditions
    reason: tuple[str, ...] = ()  # paths to the parts of the reason of a failure; the phase, if the first is missing
    ended: str = ""  # path to the time of its end; empty = that of the condition
    restarts: str = ""  # path to the number of restarts
    most: str = ""  # path in its spec to the most restarts
    starts: str = ""  # the same for a kind that counts starts: one more, in its status the failure that ends it too
    failures: bool = False  # whether the number of restarts includes the failure that ends it

    def failure(self, run: Object) -> str | None:
        """Return why a run has failed, which may be empty; None when it has not."""
        status = run.get("status", {})
        if not self.phase:
            failed = (each for each in _true(run) if each["type"] in self.failed)
            return next((str(each.get("message")) for each in failed), None)
        if self._phase_in(status, self.finished) or not self._phase_in(status, self.failed):
            return None
        first, *rest = [find(status, path) for path in self.reason] or [None]
        phases = [find(status, path) for path in reversed(self.phase)]
        attempt = f", attempt {max(_number(find(status, self.restarts)), 1)}" if self.starts else ""
        return ": ".join(str(each) for each in (first or next(filter(None, phases)), *rest) if each) + attempt

    def has_finished(self, run: Object) -> bool:
        """Report whether a run has come to a good end."""
        if self.phase:
            return self._phase_in(run.get("status", {}), self.finished)
        return any(each["type"] in self.finished for each in _true(run))

    def ends(self, run: Object) -> Iterator[str]:
        """Yield the times at which a run ended; none for one that its controller never started."""
        if not self.phase:
            ended = (*self.finished, *self.failed)
            yield from (each["lastTransitionTime"] for each in _true(run) if each["type"] in ended)
        elif end := find(run.get("status", {}), self.ended):
            yield end

    def count_restarts(self, run: Object) -> int:
        """Count how often the controller has started the whole run again."""
        found = _number(find(run.get("status", {}), self.restarts))
        return max(0, found - int(self.failures and self.failure(run) is not None))

    def most_restarts(self, run: Object) -> int:
        """Return how often the controller may start the whole run again."""
        return _number(find(run["spec"], self.most or self.starts)) - bool(self.starts)

    def _phase_in(self, status: Mapping[str, Any], patterns: Iterable[str]) -> bool:
        text = "/".join(str(find(status, path) or "") for path in self.phase)
        return any(fnmatchcase(text, pattern) for pattern in patterns)


@dataclass(frozen=True)
class RunKind:
    """A kind of run."""

    kind: Kind
    name: str
    pods: tuple[Mapping[str, Any], ...]  # its sorts of pods: rows of `run.pods` in its workload.yaml
    controller: Controller
    status: RunEnd
    # Path to the field with which Kueue suspends a run at creation (Kueue, pkg/controller/jobs)
    suspend: str = "suspend"
    # The kind that its pods name as their owner, where that is another: those of a JobSet, also of a TrainJob's, name
    # its Jobs, those of a RayJob its RayCluster and the Job of its submitter
    pod_owner: str = ""
    # What starts the processes of chartgen's charts from a pod of its own, mpirun or Ray; empty = each pod starts its
    # own
    started_by: str = ""

    def roles(self, spec: Mapping[str, Any]) -> list[Role]:
        """Return the sorts of pods of an object's spec; none of a TrainJob whose runtime is unknown."""
        found = [role for row in self.pods for role in _roles(row, spec)]
        if found and not any(role.works for role in found):
            found[0] = replace(found[0], works=True)
        return found if len(found) > 1 else [replace(role, name="") for role in found]


def find(item: Any, path: str) -> Any:
    """Return the field of an object at a path such as runPolicy.suspend; None when it is missing."""
    for key in path.split("."):
        item = item.get(key) if isinstance(item, Mapping) else None
    return item


def _number(value: Any) -> int:
    """Return a number of an object; 0 for anything else, since the kind may be a stranger's."""
    return value if isinstance(value, int) else 0


def know_kinds(folders: Iterable[Path]) -> None:
    """Add the workload kinds of a user's folders to those that are known from now on."""
    _OWN.update(dict.fromkeys(folders))


def run_kinds() -> tuple[RunKind, ...]:
    """Return the kinds of runs: chartgen's own, those of CHARTGEN_PATH, and of folders that a command has named."""
    named = [Path(part) for part in os.environ.get("CHARTGEN_PATH", "").split(os.pathsep) if part]
    return _read_kinds((_BUILTIN, *named), tuple(folder for folder in _OWN if folder not in named))


def api_kinds() -> list[Kind]:
    """Return the kinds of runs in the API."""
    return [each.kind for each in run_kinds()]


def run_names() -> frozenset[str]:
    """Return the names of the kinds of runs; two share the name Job."""
    return frozenset(each.kind.name for each in run_kinds())


def owner_names() -> frozenset[str]:
    """Return the kinds that the pods of runs name as their owners."""
    return frozenset(each.pod_owner or each.kind.name for each in run_kinds())


def run_kind(item: Object) -> RunKind | None:
    """Return the kind of a run; None for other objects. Two kinds are called Job, so the API group decides."""
    group, name = group_of(str(item["apiVersion"])), item["kind"]
    return next(
        (each for each in run_kinds() if (group_of(each.kind.api_version), each.kind.name) == (group, name)), None
    )


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


@lru_cache
def _read_kinds(folders: tuple[Path, ...], others: tuple[Path, ...]) -> tuple[RunKind, ...]:
    """Read the kinds of folders; the last of an API kind wins, as names of own folders do.

    A mistake in one of the others is left out: a command that uses the kind reports all of them with their places.
    """
    read = [*map(_read_kind, _files(folders))]
    for file in _files(others):
        with suppress(ChartgenError):
            read.append(_read_kind(file))
    return tuple({(group_of(each.kind.api_version), each.kind.name): each for each in read if each}.values())


def _files(folders: Iterable[Path]) -> list[Path]:
    return [file for folder in folders for file in sorted(folder.glob("workloads/*/workload.yaml"))]


def _read_kind(file: Path) -> RunKind | None:
    """Read a kind; None without `run`, for a folder of an earlier version."""
    data: Any = require_map(load_file(file), file.name)
    run = data.get("run")
    if not run:
        return None
    try:
        return RunKind(
            kind=Kind(_text(data["api"], _API), _text(data["kind"], _KIND), _text(run["plural"], _PLURAL)),
            name=_text(run.get("title", data["kind"])),
            pods=tuple(map(_pods, run["pods"])),
            controller=_controller(run.get("controller", {}), data),
            status=RunEnd(**{name: _like(getattr(RunEnd, name), value) for name, value in run.get("ends", {}).items()}),
            suspend=_text(run.get("suspend", "suspend")),
            pod_owner=_text(run.get("podOwner", "")),
            started_by=_text(run.get("startedBy", "")),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ChartgenError(Problem(f"run is not complete: {error}", file, hint="see `chartgen show jobset`")) from None


def _text(value: Any, pattern: str = ".*") -> str:
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise TypeError(f"{value!r} is not its text")
    return value


def _like(default: Any, value: Any) -> Any:
    """Return a value of the type of another: a switch, a text, or texts."""
    if isinstance(default, bool):
        return value is True
    return tuple(map(_text, value)) if isinstance(default, tuple) else _text(value)


def _pods(row: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in ("each", "object", "name", "called", "template"):
        _text(row.get(key, ""))
    _like((), row.get("count", ()))
    return row


def _controller(given: Mapping[str, Any], data: Mapping[str, Any]) -> Controller:
    """Return a controller that chartgen knows by its name, or that a kind describes."""
    name = given.get("name", f"the controller of {data['kind']}s")
    if name in _CONTROLLERS:
        return _CONTROLLERS[name]
    place = given.get("namespace", "default"), tuple(given.get("images", ())), given.get("install", "")
    return Controller(name, name, (group_of(data["api"]),), *place)


def _roles(row: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[Role]:
    """Yield the sorts of pods of a row: one, or one for each item of a list or map."""
    items: Any = find(spec, row["each"]) if "each" in row else {row.get("called", ""): spec}
    if items is None and row.get("optional"):
        return
    if isinstance(items, Mapping):
        named = [(name.lower(), item) for name, item in items.items()]
    else:
        named = [(str(find(item, row["name"]) or "") if "name" in row else "", item) for item in items]
    for at, (name, item) in enumerate(named):
        if inner := find(item, row["object"]) if "object" in row else None:
            kind = run_kind(inner)
            yield from kind.roles(inner["spec"]) if kind else ()
        elif template := find(item, row.get("template", "template")):
            count = prod(_least(item, factor) for factor in row.get("count", ()))
            works = row.get("works", True)
            yield Role(
                name, template, count, works in (True, name, {0: "first"}.get(at), {len(named) - 1: "last"}.get(at))
            )
        elif not row.get("optional"):
            raise KeyError(row.get("template", "template"))


def _least(item: Mapping[str, Any], paths: str) -> int:
    """Return the number at a path, 1 when it is missing; of two paths, the second is a limit of the first."""
    first, *limits = [find(item, path) for path in paths.split(" ")]
    return min(int(1 if first is None else first), *(int(limit) for limit in limits if limit is not None), 10**9)


def _true(run: Object) -> Iterator[dict[str, Any]]:
    conditions = run.get("status", {}).get("conditions", ())
    return (condition for condition in conditions if condition.get("status") == "True")
