"""Uninstall: the run stops with all that any revision made for it, and data stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from chartgen import release as releases
from chartgen.cluster import CLAIM, Cluster
from chartgen.plan import find_workers
from chartgen.records import storage_kind
from chartgen.rollout.lock import Lock
from chartgen.rollout.objects import is_kept, leftovers, remove_runs, sweep
from chartgen.rollout.state import LIST_HINT, State, survey

if TYPE_CHECKING:
    from chartgen.release import Place
    from chartgen.tools import Progress

# Variables of the program's container that name what outlives a run.
_DIRECTORIES = {"CHECKPOINT_DIRECTORY": "checkpoints in", "RUN_DIRECTORY": "logs in"}


@dataclass(frozen=True)
class Removal:
    """What an uninstall removed.

    Args:
        release: The release's name.
        namespace: Its namespace.
        chart: Name and version of its chart; empty when Helm had no record of it any more.
        kept: What stays, in words: claims, and where outputs are.
    """

    release: str
    namespace: str
    chart: str
    kept: list[str]


def uninstall(cluster: Cluster, place: Place, release: str, *, progress: Progress) -> Removal:
    """Uninstall a release, in whatever state it is, and sweep what failed upgrades have left of it.

    Args:
        cluster: Where the release lives.
        place: The same, for Helm.
        release: Its name.
        progress: Gets one line for each step.

    Raises:
        ChartgenError: There is no such release, another command changes it, or Helm refuses.
    """
    releases.check_name(release)
    found = survey(cluster, release, place.namespace)
    if not (found.records or found.runs or found.touched):
        raise found.absent(LIST_HINT)
    with Lock(cluster, release, place.namespace, "uninstall", progress) as lock:
        state = survey(cluster, release, place.namespace)
        for finding in state.findings():
            progress(finding)
        # Runs first: Helm deletes the last revision's objects only, and forgets the others with its records.
        remove_runs(cluster, state, state.runs, check=lock.check, progress=progress)
        kept = _kept(cluster, state)
        for name in sweep(cluster, state.objects, state):
            progress(f"removed {name}, which no revision held any more")
        _forget(cluster, state, place)
        lock.remove()
    last = state.last
    return Removal(release, place.namespace, f"{last.chart}-{last.chart_version}" if last else "", kept)


def _forget(cluster: Cluster, state: State, place: Place) -> None:
    """Let Helm remove the rest and its records; a revision that never ended would stop it."""
    left = [record for record in state.records if record not in state.stuck]
    for record in state.stuck if left else []:
        cluster.delete(storage_kind(), record.stored, state.namespace)
    if state.records:
        releases.remove(state.release, place)


def _kept(cluster: Cluster, state: State) -> list[str]:
    """Say what stays: objects that are kept on purpose, claims that the run used, and where its outputs are."""
    kept = [f"claim {_name(item)}" for item in leftovers(cluster, CLAIM, state) if is_kept(item)]
    workers = find_workers(state.last.objects) if state.last else None
    if workers:
        volumes = workers.pod["spec"].get("volumes", ())
        claims = [
            volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume
        ]
        kept += [f"claim {name}" for name in claims]
        kept += [f"{label} {workers.env[name]}" for name, label in _DIRECTORIES.items() if name in workers.env]
    return list(dict.fromkeys(kept))


def _name(item: dict[str, dict[str, str]]) -> str:
    return item["metadata"]["name"]
