"""State of a release before a command acts: Helm's records, live runs, and leftovers of killed commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from chartgen.errors import ChartgenError, Problem
from chartgen.kube import INSTANCE_LABEL, POD, Cluster, Object, side_by_side
from chartgen.kube.run_kinds import owner_names
from chartgen.kube.workloads import find_runs, find_workers, outcome, owners
from chartgen.releases.history import UNFINISHED, RevisionRecord, is_owned, read_records
from chartgen.releases.lock import read_notes

LIST_HINT = "`helm list --all-namespaces` shows all releases"
_STUCK = UNFINISHED.keys() - {"uninstalling"}
REPLACING = "replacing"  # note: runs that a command deletes to make room for a new one
FINISHED = "finished"  # note: runs that had finished when they were replaced


@dataclass(frozen=True)
class State:
    """State of a release."""

    release: str
    namespace: str
    records: tuple[RevisionRecord, ...]  # all revisions in Helm's store, oldest first
    runs: tuple[Object, ...]  # its live runs, including those that are being deleted
    notes: dict[str, list[str]] = field(default_factory=dict)  # notes of earlier commands
    touched: bool = False  # whether a command of chartgen has changed it since the last complete uninstall

    @property
    def last(self) -> RevisionRecord | None:
        """Return the newest revision; None before the first."""
        return self.records[-1] if self.records else None

    @property
    def base(self) -> RevisionRecord | None:
        """Return the base of an upgrade: the newest completely installed revision; None before the first."""
        if self.uninstalling:
            return None
        return next((record for record in self.complete if record.status == "deployed"), [None, *self.complete][-1])

    @property
    def complete(self) -> list[RevisionRecord]:
        """Return the revisions that were completely installed, oldest first."""
        return [record for record in self.records if record.status in ("deployed", "superseded")]

    @property
    def uninstalling(self) -> bool:
        """Report whether an uninstall is unfinished."""
        return self.last is not None and self.last.status == "uninstalling"

    @property
    def stuck(self) -> list[RevisionRecord]:
        """Return revisions that block Helm and need not be kept: unfinished ones, and failed first installs."""
        found = [record for record in self.records if record.status in _STUCK]
        if self.base is None:
            found += [record for record in self.records if record.status == "failed"]
        return found

    def find(self, revision: int | None) -> RevisionRecord:
        """Return a revision; for None an upgrade's base or the newest. ChartgenError: it, or the release, is gone."""
        if not self.records:
            raise self.absent(LIST_HINT)
        if revision is None:
            return self.base or self.records[-1]
        for record in self.records:
            if record.revision == revision:
                return record
        known = ", ".join(str(record.revision) for record in self.records)
        problem = f"release {self.release} has no revision {revision}"
        raise ChartgenError(Problem(problem, hint=f"Helm keeps {known}"))

    @property
    def objects(self) -> list[Object]:
        """Return the objects of the base revision; empty before the first."""
        return self.base.objects if self.base else []

    def absent(self, hint: str = "") -> ChartgenError:
        """Return the error for a missing release."""
        return ChartgenError(Problem(f"no release {self.release} in namespace {self.namespace}", hint=hint))

    def run(self, name: str) -> Object | None:
        """Return a live run by its name; None if it does not exist."""
        return next((run for run in self.runs if run["metadata"]["name"] == name), None)

    def outcome(self, name: str) -> str:
        """Report how a run ended: "finished" or "failed"; empty while it waits or runs, or when unknown."""
        live = self.run(name)
        return outcome(live) if live else "finished" if name in self.notes.get(FINISHED, ()) else ""

    def signature(self) -> tuple[Any, ...]:
        """Return the part that must not change between plan and execution; runs under deletion may disappear."""
        staying = (run["metadata"] for run in self.runs if "deletionTimestamp" not in run["metadata"])
        return (
            tuple((record.revision, record.status) for record in self.records),
            tuple(sorted(metadata["uid"] for metadata in staying)),
        )

    def findings(self) -> Iterator[str]:
        """Report unfinished work of an earlier command."""
        for record in self.stuck:
            what = "failed" if record.status == "failed" else f"never ended ({record.status})"
            yield f"revision {record.revision} {what}: {record.description}; what it made is taken over"
        if self.uninstalling:
            yield "an uninstall never ended: it is finished first"
        for run in self.runs:
            if not any(run["metadata"]["name"] in record.manifest for record in self.records):
                yield f"{run['kind']} {run['metadata']['name']} is in no revision of the release, but still runs"


def survey_release(cluster: Cluster, release: str, namespace: str) -> State:
    """Read the state of a release; nothing is changed."""
    reads: tuple[Callable[[], Any], ...] = (
        lambda: find_runs(cluster, release, namespace, deleting=True),
        lambda: read_records(cluster, release, namespace),
        lambda: read_notes(cluster, release, namespace),
    )
    found, records, notes = side_by_side(reads)
    runs = [run for run in found if is_owned(run, release, namespace)]
    return State(release, namespace, tuple(records), tuple(runs), notes or {}, touched=notes is not None)


def run_of(record: RevisionRecord | None) -> str:
    """Return the name of a revision's run; empty without one."""
    workers = find_workers(record.run_objects) if record else None
    return workers.name if workers else ""


def pods_before(cluster: Cluster, state: State, runs: Iterable[Object], run: str) -> list[Object]:
    """Return the pods that must end before a run starts: those of the removed runs, and terminating pods without a run.

    Args:
        runs: The runs to be removed.
        run: The run that will start, whose pods may stay; empty for none.
    """
    removed = {item["metadata"]["name"] for item in runs}

    def must_end(pod: Object) -> bool:
        run_of_pod = pod["metadata"].get("labels", {}).get("run", run)
        return run_of_pod in removed or ("deletionTimestamp" in pod["metadata"] and run_of_pod != run)

    found = cluster.list(POD, namespace=state.namespace, labels={INSTANCE_LABEL: state.release})
    return [pod for pod in found if must_end(pod) and owner_names() & {*owners(pod)}]  # no pod of another tenant
