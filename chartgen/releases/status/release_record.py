"""Anomalies in Helm's record of a release: unfinished commands, missing and left-over runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from chartgen.errors import Problem
from chartgen.kube import Object
from chartgen.kube.manifest_walk import title
from chartgen.kube.run_kinds import run_names
from chartgen.kube.workloads import why_no_run
from chartgen.releases.history import UNFINISHED, RevisionRecord

_KIND = re.compile(r"^kind: (\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class Revision:
    """The last revision in Helm's store.

    Args:
        number: From 1.
        chart: Name and version of the chart.
        status: Helm's status.
        updated: Creation time.
    """

    number: int
    chart: str
    status: str
    updated: datetime


def revision_of(record: RevisionRecord) -> Revision:
    """Return the fields of a record that a readout shows, without values and manifest."""
    return Revision(record.revision, f"{record.chart}-{record.chart_version}", record.status, record.updated)


def record_causes(record: RevisionRecord, runs: Sequence[Object]) -> Iterator[Problem]:
    """Yield the anomalies of a release's record."""
    if command := UNFINISHED.get(record.status):
        text = f"Helm's record is {record.status}: a command still works on it, or was interrupted"
        yield Problem(text, hint=f"the next `chartgen {command}` recovers it")
    elif record.status == "failed":
        yield Problem(
            f"revision {record.revision} has failed: {record.description}", hint="correct it and upgrade once more"
        )
    elif record.status == "deployed":
        for run in runs:
            kind, name = run["kind"], run["metadata"]["name"]
            if not re.search(rf'^  name: "?{re.escape(name)}"?$', record.manifest, re.MULTILINE):
                text = f"{kind} {name} is left over from another revision"
                yield Problem(text, hint="the next `chartgen upgrade` or `chartgen uninstall` removes it")


def why_absent(release: str, namespace: str, record: RevisionRecord | None) -> Problem:
    """Return why the release has no run."""
    if record is None:
        text = f"no release {release} in namespace {namespace}"
        return Problem(text, hint="`helm list --all-namespaces` shows all releases")
    if run_names().isdisjoint(_KIND.findall(record.manifest)):
        return why_no_run(f"chart {record.chart}", record.objects)
    return Problem(
        "its run is not in the cluster: it was deleted, or its time to live has passed",
        hint="`chartgen upgrade` with another `run.again` starts it once more",
    )


def why_leaving(runs: Sequence[Object]) -> Problem:
    """Return why the release has no run while its last ones are being deleted."""
    names = ", ".join(map(title, runs))
    return Problem(f"{names} is being deleted: an upgrade replaces it, or an uninstall removes it")
