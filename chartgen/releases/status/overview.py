"""All releases of chartgen's charts at a glance, one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.kube import Cluster, ClusterError
from chartgen.releases.history import find_latest, read_record, storage_kind
from chartgen.releases.status.readout import Readout, read_readout
from chartgen.releases.status.text import since
from chartgen.visible import one_line

HEADS = (
    *("namespace", "release", "chart", "phase", "for", "machines", "GPUs", "GPU-hours", "cost"),
    "progress, or why it waits",
)
_LEAST = 24  # columns for the progress, without which a table says little
_FIRST_TO_GO = ("chart", "GPU-hours", "machines", "cost", "namespace", "for")


def read_releases(cluster: Cluster, namespace: str = "", *, refused: Callable[[Problem], None]) -> Iterator[Readout]:
    """Yield the state of each release whose chart chartgen composed for runs, by namespace and name.

    Args:
        refused: Receives the problem of each release that the user may not read, which is left out.

    Raises:
        ClusterError: The cluster denies access to Helm's records.
    """
    for latest in find_latest(cluster, namespace):
        metadata = latest["metadata"]
        item = cluster.get(storage_kind(), metadata["name"], metadata["namespace"])
        try:
            record = read_record(item) if item else None
        except ChartgenError as error:
            for problem in error.problems:
                refused(problem)
            continue
        if record and record.target and not record.setup:
            try:
                yield read_readout(cluster, record.name, record.namespace, record=record)
            except ClusterError as error:
                if error.denied is None:
                    raise
                text = f"release {record.name} in namespace {record.namespace} cannot be read"
                missing = error.denied.missing
                refused(Problem(f"{text}: {missing.message}", hint=missing.hint))
            except MissingToolError:
                raise
            except ChartgenError as error:  # of another tenant's run
                refused(error.problems[0])


@dataclass(frozen=True)
class Glance(Readout):
    """State of a release among others, with what its run has used so far."""

    # GPU-hours since the present phase began; None unless the run is running with GPUs since a known time
    gpu_hours: float | None = None
    # Cost of its machines in that time, in the currency of the price; None without a price or that time
    cost: float | None = None


def glance(readout: Readout, now: datetime, price: float | None = None) -> Glance:
    """Return a readout with what its run has used so far, at a price of one machine for an hour; None = unknown."""
    if readout.phase != "running" or readout.since is None or readout.since > now or not readout.gpus:
        return Glance(**vars(readout))  # with a start after now, the clock here is behind the cluster's
    hours = (now - readout.since).total_seconds() / 3600
    cost = None if price is None else readout.machines * hours * price
    return Glance(**vars(readout), gpu_hours=readout.gpus * hours, cost=cost)


def overview_rows(glances: Sequence[Glance], *, now: datetime | None = None) -> list[tuple[str, ...]]:
    """Return a row of texts for each release, in the order of `HEADS`."""
    return [_row(each, now or datetime.now(timezone.utc)) for each in glances]


def lay_out(rows: Sequence[tuple[str, ...]], heads: Sequence[str] = HEADS, columns: int | None = None) -> list[str]:
    """Return rows under their heads as lines.

    Args:
        rows: The texts, as of `table`.
        heads: The heads of the columns to show; a screen too narrow for them shows fewer.
        columns: Width of the screen, which cuts lines; None for whole lines.
    """
    shown = [HEADS.index(head) for head in heads]
    widths = [max(len(row[at]) for row in (HEADS, *rows)) for at in shown]
    for head in _FIRST_TO_GO:
        if columns is None or sum(widths[:-1]) + 2 * len(widths) + _LEAST <= columns:
            break
        if HEADS.index(head) in shown:
            position = shown.index(HEADS.index(head))
            del shown[position], widths[position]
    texts = (
        "  ".join(f"{row[at]:<{width}}" for at, width in zip(shown, widths, strict=True)) for row in (HEADS, *rows)
    )
    return [text.rstrip()[:columns] for text in texts]


def _row(readout: Glance, now: datetime) -> tuple[str, ...]:
    why = [cause.message for cause in readout.causes] + ([readout.failure.what] if readout.failure else [])
    return (
        readout.namespace,
        readout.release,
        readout.revision.chart if readout.revision else "",
        readout.phase,
        since(readout.since, now) if readout.since else "",
        str(readout.machines or ""),
        str(readout.gpus or ""),
        "" if readout.gpu_hours is None else f"{readout.gpu_hours:.1f}",
        "" if readout.cost is None else f"{readout.cost:,.2f}",
        one_line("; ".join(filter(None, [readout.progress, *why]))),
    )
