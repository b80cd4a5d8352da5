"""How far a run is and how fast: the end of its log, read with what the release's values say of model and machines."""

from __future__ import annotations

from collections.abc import Sequence

from chartgen.errors import ChartgenError
from chartgen.helm.values import Values
from chartgen.metrics.figures.facts import Facts, agree
from chartgen.metrics.figures.jobs import facts_of_release
from chartgen.metrics.figures.peak import Peak, find_peak
from chartgen.metrics.show.live import progress_line
from chartgen.releases.history import Record, restore_chart


def progress_of(lines: Sequence[str], record: Record | None) -> str:
    """Say step, time of a step, speed, MFU and time left; empty when the log tells no step.

    Args:
        lines: The end of the log.
        record: Helm's record of the release; None when it has none.
    """
    if not progress_line(lines, 0):
        return ""
    facts = _facts(record)
    peak = find_peak("", facts)
    return progress_line(lines, facts.get("steps") or 0, facts, peak.tflops if isinstance(peak, Peak) else None)


def _facts(record: Record | None) -> Facts:
    if record is None or not record.target:
        return Facts()
    try:
        return agree([(record.name, facts_of_release(restore_chart(record), Values(record.values)))])
    except ChartgenError:
        return Facts()  # values that this chartgen does not know any more: the log alone tells
