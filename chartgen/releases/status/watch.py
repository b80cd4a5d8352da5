"""Wait for a run: repeated readouts, also across interruptions of the cluster, or a verdict."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.kube import Cluster, ClusterError, is_passing
from chartgen.programs import Progress
from chartgen.releases.status.readout import Readout, Verdict, look, read
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
# Of a verdict: seconds between two reads; then a multiple of the duration of a read, and a maximum in seconds, because
# thousands of pods keep the API server busy.
_TURN, _REST, _PAUSE = 0.25, 3.0, 10.0
# Messages of Kueue 0.19 (pkg/scheduler, pkg/controller/core) and the API server for problems that waiting cannot fix.
_FINAL = (
    "maximum capacity",
    "allows to fit only",
    "doesn't exist",
    "unavailable in ClusterQueue",
    "is invalid",
    "forbidden",
    "has failed",
)
_SETTLE_FINAL = 2.0  # seconds; new queues report "doesn't exist" for a moment


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
        cluster: The cluster of the release.
        release: The release's name.
        phase: "queued", "running" or "finished"; a later phase counts too.
        namespace: Its namespace; default the context's.
        timeout: Seconds to wait.
        progress: Receives one line per change.

    Raises:
        ChartgenError: The phase is not reached in time, or the run does not exist.
        MissingToolError: The cluster does not answer the first request; later requests are repeated.
    """
    started, shown, gone = time.monotonic(), "", None
    say = progress or (lambda _: None)
    for readout in watch(cluster, release, namespace, progress=say, until=started + timeout):
        gone = readout.causes[-1] if readout.gone else None
        if gone:
            continue
        line = summarize(readout)
        if line != shown:
            shown = line
            say(line)
        if readout.phase in _REACHED[phase] or readout.phase == "failed":
            return readout
    if gone:
        raise ChartgenError(gone)
    state = shown or "the cluster does not answer"
    raise ChartgenError(Problem(f"release {release} is not {phase} after {timeout:.0f} s: {state}"))


def watch(
    cluster: Cluster, release: str, namespace: str = "", *, progress: Progress, until: float = float("inf")
) -> Iterator[Readout]:
    """Yield readouts of a release repeatedly, until it has had no run for some seconds.

    Args:
        cluster: The cluster of the release.
        release: Its name.
        namespace: Its namespace; default the context's.
        progress: Receives a line when the cluster stops answering, and when it answers again.
        until: When to stop, in the time of `time.monotonic`.

    Raises:
        MissingToolError: The cluster does not answer the first request.
        ClusterError: The cluster denies read access.
    """
    answered = lost = False
    missed = 0.0
    while True:
        looked = time.monotonic()
        try:
            readout = read(cluster, release, namespace)
        except (ClusterError, MissingToolError) as error:
            if not answered or not is_passing(error):
                raise
            if not lost:
                progress("the cluster does not answer, trying again")
            lost = True
        else:
            if lost:
                progress("the cluster answers again")
            answered, lost = True, False
            yield readout
            missed = missed or looked if readout.gone else 0.0
            if missed and (readout.revision is None or looked - missed > _GONE):
                return
        taken = time.monotonic() - looked
        if time.monotonic() > until:
            return
        time.sleep(min(max(_INTERVAL, _SHARE * taken), _LONGEST))


def wait_for_verdict(
    cluster: Cluster,
    release: str,
    *,
    namespace: str = "",
    timeout: float = 120.0,
    settle: float = 6.0,
    progress: Progress | None = None,
) -> Verdict:
    """Watch an installed release until it runs, or until it is clear why it does not.

    Args:
        cluster: The cluster of the release.
        release: Its name: the value of the label app.kubernetes.io/instance.
        namespace: Its namespace; default the context's.
        timeout: Seconds without progress after which the current state is the verdict.
        settle: Seconds without any change after which the wait for a run with a reason not to start ends.
        progress: Receives one line per change.
    """
    started = changed = progressed = time.monotonic()
    shown: tuple[Any, ...] = ()
    furthest = 0
    while True:
        looked = time.monotonic()
        verdict = look(cluster, release, namespace=namespace, seconds=looked - started)
        now, state = time.monotonic(), _state(verdict)
        if state != shown:
            shown, changed = state, now
            if progress:
                progress(str(verdict))
        if verdict.reach > furthest:
            furthest, progressed = verdict.reach, now
        patience = _SETTLE_FINAL if any(word in reason for reason in verdict.reasons for word in _FINAL) else settle
        if verdict.ok or (verdict.reasons and now - changed > patience):
            return verdict
        if now - progressed > timeout:
            return _timed_out(verdict, timeout)
        time.sleep(max(_TURN, min(_REST * (now - looked), _PAUSE)))


def _timed_out(verdict: Verdict, timeout: float) -> Verdict:
    late = f"no progress for {timeout:.0f} s: {verdict.running} of {verdict.pods_expected} pods run"
    return replace(verdict, reasons=[*verdict.reasons, late])


def _state(verdict: Verdict) -> tuple[Any, ...]:
    return (verdict.admitted, verdict.pods, verdict.running, verdict.machines, tuple(verdict.reasons))
