"""What Helm's record of a release says beside its runs: unfinished commands, runs that are gone or left over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from chartgen.kube import Object
from chartgen.kube.run_kinds import RUN_NAMES
from chartgen.releases.history import Record
from chartgen.releases.status.messages import Cause

_RUN = re.compile(rf"^kind: (?:{'|'.join(RUN_NAMES)})$", re.MULTILINE)
# States that a command leaves when it is killed (helm, pkg/release), and the command that recovers from each.
_UNFINISHED = {
    "pending-install": "install",
    "pending-upgrade": "upgrade",
    "pending-rollback": "upgrade",
    "uninstalling": "uninstall",
}


@dataclass(frozen=True)
class Revision:
    """The last revision that Helm has recorded.

    Args:
        number: From 1.
        chart: Name and version of the chart.
        status: Helm's word.
        updated: When it was made.
    """

    number: int
    chart: str
    status: str
    updated: datetime


def revision_of(record: Record) -> Revision:
    """Take what a readout shows out of a record, without values and manifest."""
    return Revision(record.revision, f"{record.chart}-{record.chart_version}", record.status, record.updated)


def record_causes(record: Record, runs: Sequence[Object]) -> Iterator[Cause]:
    """Say what is odd about a release's record."""
    if command := _UNFINISHED.get(record.status):
        text = f"Helm's record is {record.status}: a command still works on it, or was stopped in the middle"
        yield Cause(text, f"the next `chartgen {command}` recovers it")
    elif record.status == "failed":
        yield Cause(f"revision {record.revision} has failed: {record.description}", "correct it and upgrade once more")
    elif record.status == "deployed":
        for run in runs:
            kind, name = run["kind"], run["metadata"]["name"]
            if not re.search(rf'^  name: "?{re.escape(name)}"?$', record.manifest, re.MULTILINE):
                text = f"{kind} {name} is left over from another revision"
                yield Cause(text, "the next `chartgen upgrade` or `chartgen uninstall` removes it")


def why_absent(release: str, namespace: str, record: Record | None) -> Cause:
    """Say why there is no run."""
    if record is None:
        text = f"there is no release {release} in namespace {namespace}"
        return Cause(text, "`helm list --all-namespaces` shows what there is")
    if not _RUN.search(record.manifest):
        return Cause(f"chart {record.chart} runs nothing")
    return Cause(
        "its run is not in the cluster: it was deleted, or its time to live has passed",
        "`chartgen upgrade` with another `run.again` starts it once more",
    )
