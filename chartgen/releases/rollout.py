"""Install, upgrade and rollback as one procedure: survey, plan, try, make room, Helm, sweep.

Helm creates what is new before it deletes what is old, so that two runs would write into one checkpoint directory, and
a queue would evict a bystander for the second one; therefore the old run goes first, with all its pods. It is deleted
only after the API server has accepted the new one. Helm's own rollback is never used: it restarts an old run as a side
effect of a failure, and Helm 3 cannot roll back immutable objects. Whatever is killed on the way leaves a state from
which the same command goes on: every step looks at what stands, and does only what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from chartgen.checks import effective_values
from chartgen.errors import ChartgenError, Problem
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values
from chartgen.kube.workers import find_workers
from chartgen.releases import helm_release as releases
from chartgen.releases.cleanup import remove_runs, sweep
from chartgen.releases.diff import Change, compare
from chartgen.releases.dry_run import refusals
from chartgen.releases.history import Record, restore_chart, storage_kind
from chartgen.releases.lock import Lock
from chartgen.releases.preview import Preview, preview
from chartgen.releases.stage import Stage, reported
from chartgen.releases.state import FINISHED, REPLACING, State, run_of, survey

if TYPE_CHECKING:
    from chartgen.helm.chart import Chart
    from chartgen.helm.yaml import Plain
    from chartgen.kube import Cluster, Object
    from chartgen.programs import Progress
    from chartgen.releases.helm_release import Place, Release

_FINISHED_KEPT = 20  # names of finished runs that are remembered


@dataclass(frozen=True)
class Rollout:
    """An install, upgrade or rollback, worked out and not begun.

    Args:
        action: install, upgrade or rollback.
        chart: The chart.
        values: Merged values.
        objects: The chart rendered with them.
        state: What stands of the release.
        changes: What differs from the revision before.
        preview: What happens to the run.
        findings: What an earlier command left unfinished, and what is done about it.
        description: What the release's history says of it; empty for Helm's own words.
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
        """What happens to the run, in words; empty for a chart that runs nothing."""
        return self.preview.effect

    @property
    def run(self) -> str:
        """Name of the run that it leads to; empty for a chart that runs nothing."""
        workers = find_workers(self.objects)
        return workers.name if workers else ""

    @property
    def obsolete(self) -> list[Object]:
        """Live runs that make room for it."""
        return [run for run in self.state.runs if _name(run) != self.run or "deletionTimestamp" in run["metadata"]]


def prepare(
    cluster: Cluster,
    place: Place,
    chart: Chart,
    release: str,
    values: dict[str, Plain],
    *,
    action: str,
    rendered: Iterable[Object] | None = None,
) -> Rollout:
    """Work out an install or upgrade; nothing is changed.

    Args:
        cluster: Where the release lives or will live.
        place: The same, for Helm.
        chart: The chart.
        release: The release's name.
        values: Merged values, as `load_values(...).data`.
        action: install, upgrade or rollback.
        rendered: The chart's objects with these values, when they are known; rendered when None.

    Raises:
        ChartgenError: The release exists or does not, has finished this very run, or the API server refuses an object;
            all problems at once.
    """
    releases.check_name(release)
    state = survey(cluster, release, place.namespace)
    check_existence(state, action)
    if rendered is None:
        rendered = objects(render(chart, release, place.namespace, values, cluster.version))
    new, old = list(rendered), state.objects
    found = Rollout(
        action=action,
        chart=chart,
        values=values,
        objects=new,
        state=state,
        changes=compare(old, new),
        preview=preview(cluster, state, state.base, new, effective_values(chart, Values(values))),
        findings=list(state.findings()),
    )
    _check_not_over(found)
    if problems := refusals(cluster, new, state, makes_room=bool(found.obsolete)):
        raise ChartgenError(problems)
    return found


def prepare_rollback(
    cluster: Cluster, place: Place, release: str, revision: int | None = None, *, again: str = ""
) -> Rollout:
    """Work out a return to an earlier revision: its chart and values, as a new revision.

    Args:
        cluster: Where the release lives.
        place: The same, for Helm.
        release: The release's name.
        revision: The revision to return to; the one installed before the present one when None.
        again: A word that makes a new run, when the revision's run has finished.

    Raises:
        ChartgenError: There is no such revision, or its run has finished and `again` is empty.
    """
    state = survey(cluster, release, place.namespace)
    record = _earlier(state, revision)
    values: dict[str, Any] = dict(record.values)
    if again:
        values["run"] = {**values.get("run", {}), "again": again}
    found = prepare(cluster, place, restore_chart(record), release, values, action="rollback")
    if found.state.outcome(found.run) == "finished" and found.run != run_of(state.base):
        hint = "run it once more with --again WORD"
        message = f"the run of revision {record.revision}, {found.run}, has finished already"
        raise ChartgenError(Problem(message, hint=hint))
    return replace(found, description=f"Rollback to {record.revision}")


def execute(rollout: Rollout, cluster: Cluster, place: Place, *, description: str = "", progress: Progress) -> Release:
    """Do what was worked out.

    Args:
        rollout: What `prepare` gave.
        cluster: The cluster it was prepared on.
        place: The same, for Helm.
        description: A note for the release's history instead of the rollout's own.
        progress: Gets one line for each step.

    Raises:
        ChartgenError: Another command changes the release, or it has changed since the plan, or Helm refuses.
        MissingToolError: The cluster went away; the same command goes on later.
    """
    state, release = rollout.state, rollout.state.release
    begun = Stage(rollout.action, release, state.namespace)
    with (
        reported(begun, cluster, progress) as stage,
        Lock(cluster, release, state.namespace, rollout.action, progress) as lock,
    ):
        if survey(cluster, release, state.namespace).signature() != state.signature():
            hint = "run the command again to see the plan as it is now"
            raise ChartgenError(Problem(f"release {release} has changed since the plan was made", hint=hint))
        _clear(rollout, cluster, place, stage, progress)
        _make_room(rollout, cluster, lock, stage, progress)
        lock.check(within=0)
        made = _run_helm(rollout, place, description or rollout.description, stage)
        lock.check()  # whoever has taken over meanwhile has a run that is not in this plan
        for name in sweep(cluster, rollout.objects, state):
            progress(f"removed {name}, which no revision holds any more")
        lock.note(**{REPLACING: []})
    return made


def check_existence(state: State, action: str) -> None:
    """Check that a release exists, or that it does not, as an action needs.

    Raises:
        ChartgenError: It is to be installed and exists, or is to be changed and does not.
    """
    if action == "install" and state.base is not None:
        hint = f"use `chartgen upgrade`, or `chartgen uninstall {state.release}` first"
        raise ChartgenError(Problem(f"release {state.release} already exists", hint=hint))
    if action != "install" and state.last is None:
        raise state.absent("use `chartgen install`")


def _check_not_over(rollout: Rollout) -> None:
    """Refuse to start a run again that ended and whose object is gone, by its time to live or by hand."""
    state, run = rollout.state, rollout.run
    installed = state.base is not None and run and run == run_of(state.base) and state.base is state.last
    live = any(_name(item) == run and "deletionTimestamp" not in item["metadata"] for item in state.runs)
    if installed and not live and run not in state.notes.get(REPLACING, ()):
        hint = "to run it once more, say so with --set run.again=<word>"
        problem = f"run {run} has ended and was removed, and these values change nothing in it"
        raise ChartgenError(Problem(problem, hint=hint))


def _earlier(state: State, revision: int | None) -> Record:
    if not state.records:
        raise state.absent()
    complete = [record for record in state.records if record.status in ("deployed", "superseded")]
    if revision is None:
        complete = [record for record in complete if record is not state.base]
        if not complete:
            raise ChartgenError(f"release {state.release} has no earlier revision to return to")
        return complete[-1]
    for record in complete:
        if record.revision == revision:
            return record
    known = ", ".join(str(record.revision) for record in complete)
    hint = f"installed revisions that Helm still keeps: {known}"
    raise ChartgenError(Problem(f"release {state.release} has no installed revision {revision}", hint=hint))


def _clear(rollout: Rollout, cluster: Cluster, place: Place, stage: Stage, progress: Progress) -> None:
    """Take away what stops Helm: an unfinished uninstall, and revisions that were begun and never ended."""
    state = rollout.state
    if state.uninstalling:
        progress("finishing the uninstall that never ended")
        stage.done = "the uninstall that never ended was being finished"
        releases.remove(state.release, place)
        return
    if state.stuck:
        stage.done = "the records of revisions that never ended were being removed"
    for record in state.stuck:
        progress(f"dropping revision {record.revision} ({record.status}); its objects are taken over")
        cluster.delete(storage_kind(), record.stored, state.namespace)


def _make_room(rollout: Rollout, cluster: Cluster, lock: Lock, stage: Stage, progress: Progress) -> None:
    """Delete the runs that must go, pods and all, and note why: a killed command's successor finds them gone."""
    runs = rollout.obsolete
    if runs:
        over = [_name(run) for run in runs if rollout.state.outcome(_name(run)) == "finished"]
        finished = list(dict.fromkeys([*lock.notes.get(FINISHED, ()), *over]))[-_FINISHED_KEPT:]
        replaced = list(dict.fromkeys([*lock.notes.get(REPLACING, ()), *map(_name, runs)]))
        lock.note(**{REPLACING: replaced, FINISHED: finished})
        stage.done = f"run {', '.join(map(_name, runs))} was being stopped to make room"
    remove_runs(cluster, rollout.state, runs, rollout.run, check=lock.check, progress=progress)


def _run_helm(rollout: Rollout, place: Place, description: str, stage: Stage) -> Release:
    state = rollout.state
    act = releases.upgrade if state.base is not None else releases.install
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
