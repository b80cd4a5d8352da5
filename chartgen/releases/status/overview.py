"""All releases of chartgen's charts at a glance, one row each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

from chartgen.kube import Cluster
from chartgen.releases.history import find_latest, read_record
from chartgen.releases.status.readout import Readout, read
from chartgen.releases.status.text import since
from chartgen.visible import one_line

HEADS = ("namespace", "release", "chart", "phase", "for", "machines", "GPUs", "GPU-hours", "progress, or why it waits")
_LEAST = 24  # columns for the progress, without which a table says little
_FIRST_TO_GO = ("chart", "GPU-hours", "machines", "namespace", "for")


def read_all(cluster: Cluster, namespace: str = "") -> Iterator[Readout]:
    """Yield the state of each release whose chart chartgen composed for runs, by namespace and name.

    Args:
        cluster: The cluster.
        namespace: The namespace; empty for all.

    Raises:
        ClusterError: The cluster denies read access.
        ChartgenError: An object in Helm's store is not a record of Helm.
    """
    records = map(read_record, find_latest(cluster, namespace))
    for record in sorted(records, key=lambda record: (record.namespace, record.name)):
        if record.target and not record.setup:
            yield read(cluster, record.name, record.namespace)


def gpu_hours(readout: Readout, now: datetime) -> float | None:
    """Return the GPU-hours of the present phase; None unless the run is running with GPUs since a known time."""
    if readout.phase != "running" or readout.since is None or not readout.gpus:
        return None
    return readout.gpus * (now - readout.since).total_seconds() / 3600


def table(readouts: Sequence[Readout], *, now: datetime | None = None) -> list[tuple[str, ...]]:
    """Return a row of texts for each readout, in the order of `HEADS`.

    Args:
        readouts: The readouts.
        now: The current time; default the clock's.
    """
    now = now or datetime.now(timezone.utc)
    return [_row(readout, now) for readout in readouts]


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


def _row(readout: Readout, now: datetime) -> tuple[str, ...]:
    hours = gpu_hours(readout, now)
    causes = [cause.message for cause in readout.causes]
    why = [readout.failure.what] if readout.failure else []
    return (
        readout.namespace,
        readout.release,
        readout.revision.chart if readout.revision else "",
        readout.phase,
        since(readout.since, now) if readout.since else "",
        str(readout.machines or ""),
        str(readout.gpus or ""),
        "" if hours is None else f"{hours:.1f}",
        one_line("; ".join([*([readout.progress] if readout.progress else []), *causes, *why])),
    )
