"""Install, upgrade and rollback as one procedure: survey, plan, try, make room, Helm, sweep.

Helm creates new objects before it deletes old ones: two runs would write into one checkpoint directory, and a queue
could evict an unrelated run for the second one. Therefore the old run is deleted first, with all its pods, but only
after the API server has accepted the new one. Helm's own rollback is never used: it restarts an old run as a side
effect of a failure, and Helm 3 cannot roll back immutable objects. A killed command leaves a state from which the same
command continues: every step checks the current state and does only the missing part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from chartgen.checks import effective_values
from chartgen.errors import ChartgenError, Problem
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values
from chartgen.helm.yaml import Plain
from chartgen.kube import Cluster, Object
from chartgen.kube.workloads import find_workers
from chartgen.programs import Progress
from chartgen.releases import helm_release
from chartgen.releases.cleanup import remove_runs, sweep_objects
from chartgen.releases.diff import Change, compare_renders
from chartgen.releases.dry_run import dry_run_refusals
from chartgen.releases.helm_release import Place, Release
from chartgen.releases.history import RevisionRecord, restore_chart, storage_kind
from chartgen.releases.lock import Lock
from chartgen.releases.preview import Preview, preview
from chartgen.releases.stage import CommandStage, reported
from chartgen.releases.state import FINISHED, REPLACING, State, run_of, survey_release

_KEPT = 20  # names of finished runs, and of machines, in the notes


@dataclass(frozen=True)
class Rollout:
    """A prepared install, upgrade or rollback.

    Args:
        action: install, upgrade or rollback.
        values: Merged values.
        objects: The chart rendered with them.
        changes: Differences from the previous revision.
        preview: Effect on the run.
        findings: Unfinished work of an earlier command, and how it is handled.
        description: Note for the release's history; empty for Helm's own.
    """

    action: str
    chart: Chart
    values: dict[str, Plain] = field(repr=False)
    objects: list[Object] = field(repr=False)
    state: State
    changes: list[Change]
    preview: Preview
    findings: list[str]
    description: str = ""

    @property
    def effect(self) -> str:
        """Return the effect on the run; empty for a chart without a run."""
        return self.preview.effect

    @property
    def run(self) -> str:
        """Return the name of the new run; empty for a chart without a run."""
        workers = find_workers(self.objects)
        return workers.name if workers else ""

    @property
    def obsolete(self) -> list[Object]:
        """Return the live runs that are deleted first."""
        return [run for run in self.state.runs if _name(run) != self.run or "deletionTimestamp" in run["metadata"]]


def prepare(  # noqa: PLR0913 - independent options, passed by name
    cluster: Cluster,
    place: Place,
    chart: Chart,
    release: str,
    values: dict[str, Plain],
    *,
    action: str,
    rendered: Iterable[Object] | None = None,
    state: State | None = None,
) -> Rollout:
    """Prepare an install or upgrade; nothing is changed.

    Args:
        action: install, upgrade or rollback.
        rendered: The chart's objects with these values; rendered when None.
        state: The state of the release; read when None. A change since then ends `execute`.

    Raises:
        ChartgenError: The release exists or does not, has finished the same run, or the API server rejects an object;
            all problems at once.
    """
    helm_release.check_name(release)
    state = state or survey_release(cluster, release, place.namespace)
    check_existence(state, action)
    if rendered is None:
        rendered = objects(render(chart, release, place.namespace, values, cluster.version))
    new, old = list(rendered), state.objects
    rollout = Rollout(
        action=action,
        chart=chart,
        values=values,
        objects=new,
        state=state,
        changes=compare_renders(old, new),
        preview=preview(cluster, state, state.base, new, effective_values(chart, Values(values))),
        findings=list(state.findings()),
    )
    _check_not_over(rollout)
    if problems := dry_run_refusals(cluster, new, state, makes_room=bool(rollout.obsolete)):
        raise ChartgenError(problems)
    return rollout


def prepare_rollback(
    cluster: Cluster, place: Place, release: str, revision: int | None = None, *, again: str = ""
) -> Rollout:
    """Prepare a return to an earlier revision: its chart and values, as a new revision.

    Args:
        revision: The revision to return to; default the one before the current.
        again: A word that makes a new run when the revision's run has finished.

    Raises:
        ChartgenError: The revision does not exist, or its run has finished and `again` is empty; or as `prepare`.
    """
    state = survey_release(cluster, release, place.namespace)
    record = _earlier(state, revision)
    values: dict[str, Any] = dict(record.values)
    if again:
        values["run"] = {**values.get("run", {}), "again": again}
    found = prepare(cluster, place, restore_chart(record), release, values, action="rollback", state=state)
    return replace(found, description=f"Rollback to {record.revision}")


def execute(rollout: Rollout, cluster: Cluster, place: Place, *, description: str = "", progress: Progress) -> Release:
    """Execute a prepared rollout.

    Args:
        rollout: The result of `prepare`.
        cluster: The cluster it was prepared on.
        description: A note for the release's history instead of the rollout's own.

    Raises:
        ChartgenError: Another command changes the release, or it has changed since the plan, or Helm fails.
        MissingToolError: The cluster no longer answers; repeat the command to continue.
    """
    state, release = rollout.state, rollout.state.release
    begun = CommandStage(rollout.action, release, state.namespace)
    with (
        reported(begun, cluster, progress) as stage,
        Lock(cluster, release, state.namespace, rollout.action, progress) as lock,
    ):
        if survey_release(cluster, release, state.namespace).signature() != state.signature():
            hint = "run the command again to see the new plan"
            raise ChartgenError(Problem(f"release {release} has changed since the plan was made", hint=hint))
        _clear(rollout, cluster, place, stage, progress)
        _make_room(rollout, cluster, lock, stage, progress)
        lock.check(within=0)
        made = _run_helm(rollout, place, description or rollout.description, stage)
        lock.check()  # a command that has taken over may have a run that this plan does not contain
        for name in sweep_objects(cluster, rollout.objects, state):
            progress(f"removed {name}, which is in no revision any more")
        lock.note(**{REPLACING: []})
    return made


def check_existence(state: State, action: str) -> None:
    """Raise ChartgenError if an install finds the release, or a change does not."""
    if action == "install" and state.base is not None:
        hint = f"use `chartgen upgrade`, or `chartgen uninstall {state.release}` first"
        raise ChartgenError(Problem(f"release {state.release} already exists", hint=hint))
    if action != "install" and state.last is None:
        raise state.absent("use `chartgen install`")


def _check_not_over(rollout: Rollout) -> None:
    """Reject a restart of a run that ended and whose object was deleted: by an upgrade, its time to live or by hand."""
    state, run = rollout.state, rollout.run
    if not run or any(_name(item) == run and "deletionTimestamp" not in item["metadata"] for item in state.runs):
        return
    installed = state.base is not None and run == run_of(state.base) and state.base is state.last
    if state.outcome(run) == "finished":
        problem = f"run {run} has finished already, and these values would start it again"
    elif installed and run not in state.notes.get(REPLACING, ()):
        problem = f"run {run} has ended and was removed, and these values change nothing in it"
    else:
        return
    option = "--again WORD" if rollout.action == "rollback" else "--set run.again=<word>"
    raise ChartgenError(Problem(problem, hint=f"to run it once more, add {option}"))


def _earlier(state: State, revision: int | None) -> RevisionRecord:
    if not state.records:
        raise state.absent()
    if revision is None:
        earlier = [record for record in state.complete if record is not state.base]
        if not earlier:
            raise ChartgenError(f"release {state.release} has no earlier revision to return to")
        return earlier[-1]
    for record in state.complete:
        if record.revision == revision:
            return record
    known = ", ".join(str(record.revision) for record in state.complete)
    hint = f"installed revisions that Helm still keeps: {known}"
    raise ChartgenError(Problem(f"release {state.release} has no installed revision {revision}", hint=hint))


def _clear(rollout: Rollout, cluster: Cluster, place: Place, stage: CommandStage, progress: Progress) -> None:
    """Remove obstacles for Helm: an unfinished uninstall, and revisions that never ended."""
    state = rollout.state
    if state.uninstalling:
        progress("finishing the uninstall that never ended")
        stage.done = "the uninstall that never ended was being finished"
        helm_release.uninstall(state.release, place)
        return
    if state.stuck:
        stage.done = "the records of revisions that never ended were being removed"
    for record in state.stuck:
        progress(f"dropping revision {record.revision} ({record.status}); its objects are taken over")
        cluster.delete(storage_kind(), record.stored, state.namespace)


def _make_room(rollout: Rollout, cluster: Cluster, lock: Lock, stage: CommandStage, progress: Progress) -> None:
    """Delete the obsolete runs with all pods; note them first for the successor of a killed command."""
    runs = rollout.obsolete
    if runs:
        from chartgen.releases.status.failure import BROKEN, broken_machine

        over = [_name(run) for run in runs if rollout.state.outcome(_name(run)) == "finished"]
        finished = list(dict.fromkeys([*lock.notes.get(FINISHED, ()), *over]))[-_KEPT:]
        replaced = list(dict.fromkeys([*lock.notes.get(REPLACING, ()), *map(_name, runs)]))
        broken = [*lock.notes.get(BROKEN, ()), *broken_machine(cluster, rollout.state)][-_KEPT:]
        lock.note(**{REPLACING: replaced, FINISHED: finished, BROKEN: broken})
        stage.done = f"run {', '.join(map(_name, runs))} was being stopped to make room"
    remove_runs(cluster, rollout.state, runs, rollout.run, check=lock.check, progress=progress)


def _run_helm(rollout: Rollout, place: Place, description: str, stage: CommandStage) -> Release:
    state = rollout.state
    act = helm_release.upgrade if state.base is not None else helm_release.install
    gone = ", ".join(map(_name, rollout.obsolete))
    if gone:
        stage.done = f"run {gone} was stopped to make room, and no new run has started"
    try:
        made = act(rollout.chart, state.release, rollout.values, place, description=description)
    except KeyboardInterrupt:
        stage.done = f"{f'run {gone} was stopped to make room, and ' if gone else ''}Helm was stopped on its way"
        raise
    stage.done = f"revision {made.revision} is {made.status}, and what older ones have left was being removed"
    return made


def _name(run: Object) -> str:
    return str(run["metadata"]["name"])
