"""Waiting for a run: readouts one after the other, also while the cluster goes away and comes back."""

from __future__ import annotations

import time
from collections.abc import Iterator

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.kube import Cluster, ClusterError
from chartgen.programs import Progress
from chartgen.releases.status.readout import Readout, read
from chartgen.releases.status.text import summarize

# Phases in which a run has reached, or passed, the one that is waited for.
_REACHED = {
    "queued": {"queued", "starting", "running", "finished"},
    "running": {"running", "finished"},
    "finished": {"finished"},
}
_INTERVAL, _LONGEST = 1.0, 30.0  # seconds between two readouts
_SHARE = 5  # a readout that takes a second is made every five, so that following is no load
_GONE = 10.0  # seconds after which a run that does not exist is not waited for: an upgrade replaces it at once


def wait_for_phase(
    cluster: Cluster,
    release: str,
    phase: str,
    *,
    namespace: str = "",
    timeout: float = 7200.0,
    progress: Progress | None = None,
) -> Readout:
    """Wait until a run is queued, running or finished, or has failed; whoever calls looks at the phase.

    Args:
        cluster: Where it was installed.
        release: The release's name.
        phase: "queued", "running" or "finished"; what has passed it has reached it.
        namespace: Its namespace; default the context's.
        timeout: Seconds to wait.
        progress: Gets one line per change.

    Raises:
        ChartgenError: It is not there in time, or there is no such run.
        MissingToolError: The cluster does not answer at the first time; later it is tried again.
    """
    started, shown, missed = time.monotonic(), "", 0.0
    say = progress or (lambda _: None)
    for readout in watch(cluster, release, namespace, progress=say, until=started + timeout):
        now = time.monotonic()
        missed = missed or now if readout.phase == "absent" else 0.0
        if missed and (readout.revision is None or now - missed > _GONE):
            raise ChartgenError(Problem(readout.causes[-1].text, hint=readout.causes[-1].hint))
        line = summarize(readout)
        if line != shown:
            shown = line
            say(line)
        if readout.phase in _REACHED[phase] or readout.phase == "failed":
            return readout
    state = shown or "the cluster does not answer"
    raise ChartgenError(Problem(f"release {release} is not {phase} after {timeout:.0f} s: {state}"))


def watch(
    cluster: Cluster, release: str, namespace: str = "", *, progress: Progress, until: float = float("inf")
) -> Iterator[Readout]:
    """Return readouts of a release again and again.

    Args:
        cluster: Where it was installed.
        release: Its name.
        namespace: Its namespace; default the context's.
        progress: Gets a line when the cluster goes away, and one when it is back.
        until: When to stop, as `time.monotonic` counts.

    Raises:
        MissingToolError: The cluster does not answer at the first time.
        ClusterError: It refuses to be read.
    """
    answered = lost = False
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
        taken = time.monotonic() - looked
        if time.monotonic() > until:
            return
        time.sleep(min(max(_INTERVAL, _SHARE * taken), _LONGEST))


def is_passing(error: ChartgenError) -> bool:
    """Report whether a request that failed may succeed later: no answer, too many requests, or a server's own fault."""
    return not isinstance(error, ClusterError) or error.status == 429 or error.status >= 500
