"""Logs of a run: what chosen ranks have printed, and with `follow` what they print, across restarts."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from chartgen.errors import ChartgenError, Problem
from chartgen.kube import Cluster, ClusterError, Streams
from chartgen.programs import Progress
from chartgen.releases.status.follow import Follower
from chartgen.releases.status.members import each_member
from chartgen.releases.status.pod_logs import pod_log, since_option
from chartgen.releases.status.ranks import Source, choose

_MOST_FOLLOWED = 64  # pods; each holds a connection, of which the API server of a cloud allows some hundreds
_TURN = 0.2  # seconds after which a follower whose lines nobody takes looks whether it should end
_FAREWELL = 10.0  # seconds that a follower gets to end: it may be in the middle of a request
_BACKLOG = 1000  # lines that wait to be printed, for all pods together, so that memory stays bounded


def find_sources(cluster: Cluster, release: str, namespace: str, *, rank: str = "", machine: str = "") -> list[Source]:
    """Choose the pods whose logs are shown; see `choose`.

    Raises:
        UsageError: There is no such rank or machine.
        ChartgenError: No pod of the release exists.
    """
    members = [member for member, _ in each_member(cluster, release, namespace)]
    if not members:
        hint = f"`chartgen status {release}` says why"
        raise ChartgenError(Problem(f"release {release} has no pods in namespace {namespace}", hint=hint))
    return choose(members, rank=rank, machine=machine)


def read_logs(
    cluster: Cluster, sources: Sequence[Source], namespace: str, *, since: int = 0, tail: int = -1, progress: Progress
) -> Iterator[str]:
    """Return what was printed so far, one pod after the other.

    Args:
        cluster: Where the pods run.
        sources: The pods.
        namespace: Their namespace.
        since: Only the last seconds; 0 for all.
        tail: Only the last lines of each pod; negative for all.
        progress: Gets a line for each log that cannot be read, when there are others.

    Raises:
        ChartgenError: No log can be read.
    """
    failures: list[ClusterError] = []
    for source in sources:
        try:
            lines = pod_log(cluster, source.member, namespace, **since_option(since))
            shown = (line for line in lines if source.shows(line))
            for line in shown if tail < 0 else deque(shown, maxlen=tail):
                yield prefixed(source, line, sources)
        except ClusterError as error:
            failures.append(error)
    if len(failures) == len(sources):
        raise failures[0]
    for failure in failures:
        progress(str(failure))


def follow_logs(
    cluster: Cluster,
    release: str,
    sources: Sequence[Source],
    namespace: str,
    *,
    since: int = 0,
    tail: int = -1,
    progress: Progress,
) -> Iterator[str]:
    """Return what is printed as it comes, also by the pods that replace these, until the run has ended.

    Args:
        cluster: Where the pods run.
        release: Their release.
        sources: The pods.
        namespace: Their namespace.
        since: Of what was printed before, only the last seconds; 0 for all.
        tail: Of what was printed before, only the last lines of each pod; negative for all.
        progress: Gets a line when a connection is lost and when a pod is replaced.

    Raises:
        ChartgenError: There are too many pods to follow, or a log is refused.

    Closing the iterator early closes its connections and ends its threads.
    """
    if len(sources) > _MOST_FOLLOWED:
        problem = f"{len(sources)} pods are too many to follow at once, {_MOST_FOLLOWED} is the most"
        raise ChartgenError(Problem(problem, hint="choose one with --rank or --machine"))
    lines: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=_BACKLOG)
    stop, streams = threading.Event(), Streams()

    def put(item: str | BaseException | None) -> bool:
        """Hand something over; False once nobody takes it any more."""
        while not stop.is_set():
            with suppress(queue.Full):
                lines.put(item, timeout=_TURN)
                return True
        return False

    def collect(source: Source) -> None:
        follower = Follower(cluster, release, source.member, namespace, progress=progress, stop=stop, streams=streams)
        try:
            for line in follower.lines(since=since, tail=tail, shows=source.shows):
                if not put(prefixed(source, line, sources)):
                    return
            put(None)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the reader has to know, or it waits for ever
            put(error)

    threads = [threading.Thread(target=collect, args=(source,), daemon=True) for source in sources]
    for thread in threads:
        thread.start()
    try:
        yield from _until_all_ended(lines, len(sources))
    finally:
        stop.set()
        streams.cut()
        for thread in threads:
            thread.join(_FAREWELL)


def prefixed(source: Source, line: str, sources: Sequence[Source]) -> str:
    """Write before a line whose it is, when several pods are shown."""
    return source.prefix(line) + line if len(sources) > 1 else line


def _until_all_ended(lines: queue.Queue[str | BaseException | None], count: int) -> Iterator[str]:
    while count:
        line = lines.get()
        if isinstance(line, BaseException):
            raise line
        if line is None:
            count -= 1
        else:
            yield line
