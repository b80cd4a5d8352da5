"""Wait for a run: repeated readouts, also across interruptions of the cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.kube import Cluster, ClusterError, is_passing
from chartgen.programs import Progress
from chartgen.releases.status.readout import Readout, read_readout
from chartgen.releases.status.text import summarize

# Phases that satisfy the requested one: that phase or a later one.
_REACHED = {
    "queued": {"queued", "starting", "running", "finished"},
    "running": {"running", "finished"},
    "finished": {"finished"},
}
_INTERVAL, _LONGEST = 1.0, 30.0  # seconds between two readouts
_SHARE = 5  # a readout that takes a second is made every five, to limit the load
_GONE = 10.0  # seconds until a missing run ends the watch: an upgrade replaces it at once


def wait_for_phase(
    cluster: Cluster,
    release: str,
    phase: str,
    *,
    namespace: str = "",
    timeout: float = 7200.0,
    progress: Progress | None = None,
) -> Readout:
    """Wait until a run is queued, running or finished, or has failed; the caller checks the phase.

    Args:
        phase: "queued", "running" or "finished"; a later phase counts too.
        timeout: Seconds to wait.

    Raises:
        ChartgenError: The phase is not reached in time, or the run does not exist.
        MissingToolError: The cluster does not answer the first request; later requests are repeated.
    """
    started, shown, gone = time.monotonic(), "", None
    report = progress or (lambda _: None)
    for readout in watch(cluster, release, namespace, progress=report, until=started + timeout):
        gone = readout.causes[-1] if readout.gone else None
        if gone:
            continue
        line = summarize(readout)
        if line != shown:
            shown = line
            report(line)
        if readout.phase in _REACHED[phase] or readout.phase == "failed":
            return readout
    if gone:
        raise ChartgenError(gone)
    state = shown or "the cluster does not answer"
    raise ChartgenError(Problem(f"release {release} is not {phase} after {timeout:.0f} s: {state}"))


def watch(  # noqa: PLR0913 - independent options, passed by name
    cluster: Cluster,
    release: str,
    namespace: str = "",
    *,
    progress: Progress,
    until: float = float("inf"),
    patience: float = float("inf"),
    interval: float = _INTERVAL,
    brief: bool = False,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Readout]:
    """Yield readouts of a release repeatedly, until it has had no run for some seconds.

    Args:
        progress: Receives a line when the cluster stops answering, and when it answers again.
        until: When to stop, in the time of `time.monotonic`.
        patience: Seconds without an answer that are waited for after the first one.
        interval: Seconds between two readouts, at least.
        pause: Waits so many seconds between two readouts, or less.

    Raises:
        MissingToolError: The cluster does not answer the first request, or for longer than `patience`.
        ClusterError: The cluster denies read access.
    """
    lost = False
    missed = answered = 0.0
    while True:
        looked = time.monotonic()
        try:
            readout = read_readout(cluster, release, namespace, brief=brief)
        except (ClusterError, MissingToolError) as error:
            if not answered or not is_passing(error) or looked - answered > patience:
                raise
            if not lost:
                progress("the cluster does not answer, trying again")
            lost = True
        else:
            if lost:
                progress("the cluster answers again")
            answered, lost = time.monotonic(), False
            yield readout
            missed = missed or looked if readout.gone else 0.0
            if missed and (readout.revision is None or looked - missed > _GONE):
                return
        taken = time.monotonic() - looked
        if time.monotonic() > until:
            return
        pause(min(max(interval, _SHARE * taken), _LONGEST))
