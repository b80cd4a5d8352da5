"""Uninstall: remove the run with the objects of all revisions, and keep data."""

from __future__ import annotations

from dataclasses import dataclass, field

from chartgen.kube import CLAIM, Cluster
from chartgen.kube.workloads import find_workers, outcome
from chartgen.programs import Progress
from chartgen.releases import helm_release
from chartgen.releases.cleanup import is_kept, leftovers, remove_runs, sweep_objects
from chartgen.releases.helm_release import Place
from chartgen.releases.history import storage_kind
from chartgen.releases.lock import Lock
from chartgen.releases.preview import LostWork, lost_work
from chartgen.releases.stage import CommandStage, reported
from chartgen.releases.state import LIST_HINT, REPLACING, State, survey_release
from chartgen.releases.survival import Store, Survival, stored_values, survival, survival_of


@dataclass(frozen=True)
class Removal:
    """Result of an uninstall."""

    release: str  # the release's name
    namespace: str  # its namespace
    chart: str  # name and version of its chart; empty when Helm no longer had a record of it
    kept: list[str]  # descriptions of kept data: claims, and the location of outputs
    survival: Survival | None = None  # data that outlives the last revision's run; None without a run
    losses: list[LostWork] = field(default_factory=list)  # work that was lost with live runs


def uninstall(cluster: Cluster, place: Place, release: str, *, progress: Progress) -> Removal:
    """Uninstall a release in any state, and delete leftovers of failed upgrades.

    Raises:
        ChartgenError: The release does not exist, another command changes it, or Helm fails.
    """
    check_installed(cluster, place, release)
    with (
        reported(CommandStage("uninstall", release, place.namespace), cluster, progress) as stage,
        Lock(cluster, release, place.namespace, "uninstall", progress) as lock,
    ):
        state = survey_release(cluster, release, place.namespace)
        for finding in state.findings():
            progress(finding)
        lost = lost_work(cluster, state, state.runs)
        # Runs first: Helm deletes only the objects of the last revision, and all its records.
        if state.runs:
            # runs that an interrupted uninstall has stopped may start again; finished runs may not
            stopped = [_name(run) for run in state.runs if not outcome(run)]
            lock.note(**{REPLACING: list(dict.fromkeys([*lock.notes.get(REPLACING, ()), *stopped]))})
            stage.done = f"run {', '.join(map(_name, state.runs))} was being stopped"
        remove_runs(cluster, state, state.runs, check=lock.check, progress=progress)
        kept = _kept(cluster, state)
        stage.done = "its runs are gone, and the rest was being removed"
        lock.check()
        for name in sweep_objects(cluster, state.objects, state):
            progress(f"removed {name}, which was in no revision any more")
        lock.check(within=0)
        _forget(cluster, state, place)
        lock.remove()
    last = state.last
    chart = f"{last.chart}-{last.chart_version}" if last else ""
    return Removal(release, place.namespace, chart, kept, survival_of(last) if last else None, lost)


def check_installed(cluster: Cluster, place: Place, release: str) -> State:
    """Return the state of a release to uninstall; UsageError: an invalid name. ChartgenError: it does not exist."""
    helm_release.check_name(release)
    state = survey_release(cluster, release, place.namespace)
    if not (state.records or state.runs or state.touched):
        raise state.absent(LIST_HINT)
    return state


def _forget(cluster: Cluster, state: State, place: Place) -> None:
    """Let Helm remove the rest and its records; delete unfinished revisions first, which would block it."""
    left = [record for record in state.records if record not in state.stuck]
    for record in state.stuck if left else []:
        cluster.delete(storage_kind(), record.stored, state.namespace)
    if state.records:
        helm_release.uninstall(state.release, place)


def _kept(cluster: Cluster, state: State) -> list[str]:
    """Report kept data: objects that Helm keeps, claims of the run, and the location of its outputs."""
    kept = [f"claim {_name(item)}" for item in leftovers(cluster, CLAIM, state) if is_kept(item)]
    workers = find_workers(state.last.objects) if state.last else None
    if state.last is None or workers is None:
        return kept
    own = {_name(item) for item in state.last.objects if item["kind"] == CLAIM.name and not is_kept(item)}
    volumes = [volume.get("persistentVolumeClaim", {}) for volume in workers.pod["spec"].get("volumes", ())]
    kept += [f"claim {volume['claimName']}" for volume in volumes if volume and volume["claimName"] not in own]
    found = survival(workers, stored_values(state.last))
    kept += [] if found.saves == "no" else _kept_in("checkpoints", found.checkpoints, own)
    kept += _kept_in("logs", found.logs, own)
    return list(dict.fromkeys(kept))


def _kept_in(what: str, store: Store, own: set[str]) -> list[str]:
    """Report where data stays; nothing when its storage ends with the pods or the release."""
    if not store.directory or store.stays == "no" or store.where in {f"claim {name}" for name in own}:
        return []
    doubt = ", if that keeps it" if store.stays == "unknown" else ""
    return [f"{what} in {store.directory} on {store.where}{doubt}"]


def _name(item: dict[str, dict[str, str]]) -> str:
    return item["metadata"]["name"]
