"""Logs of a run: the output of chosen ranks so far or, with `follow`, as it comes, across restarts."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.kube import Cluster, ClusterError
from chartgen.programs import Progress
from chartgen.releases.status.follow import Follower, Shared
from chartgen.releases.status.members import each_member, pod_log, since_option
from chartgen.releases.status.ranks import Source, choose

_MOST_FOLLOWED = 64  # pods; each needs a connection, and the API server of a cloud allows some hundreds
_TURN = 0.2  # seconds after which a blocked follower checks whether it should end
_FAREWELL = 10.0  # seconds for a follower to end: it may be in a request
_BACKLOG = 1000  # queued lines of all pods together, to limit memory


def find_sources(cluster: Cluster, release: str, namespace: str, *, rank: str = "", machine: str = "") -> list[Source]:
    """Return pods to show, see `choose`; UsageError: an unknown rank or machine. ChartgenError: no pods."""
    members = [member for member, _ in each_member(cluster, release, namespace)]
    if not members:
        hint = f"`chartgen status {release}` shows why"
        raise ChartgenError(Problem(f"release {release} has no pods in namespace {namespace}", hint=hint))
    return choose(members, rank=rank, machine=machine)


def read_pod_logs(
    cluster: Cluster, sources: Sequence[Source], namespace: str, *, since: int = 0, tail: int = -1, progress: Progress
) -> Iterator[str]:
    """Yield the output so far, one pod after the other.

    Args:
        since: Only the last seconds; 0 for all.
        tail: Only the last lines of each pod; negative for all.
        progress: Receives a line for each log that is unreadable or ends early, when others are readable.

    Raises:
        ChartgenError: No log can be read to its end.
    """
    failures: list[tuple[str, ClusterError | MissingToolError]] = []
    for source in sources:
        try:
            lines = pod_log(cluster, source.member, namespace, **since_option(since))
            shown = (line for line in lines if source.shows(line))
            for line in shown if tail < 0 else deque(shown, maxlen=tail):
                yield prefixed(source, line, sources)
        except (ClusterError, MissingToolError) as error:
            failures.append((source.member.name, error))
    if len(failures) == len(sources):
        raise failures[0][1]
    for pod, failure in failures:
        progress(f"the log of pod {pod} cannot be read to its end: {failure}")


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
    """Yield output as it comes, also of replacement pods, until the run has ended; a close ends all connections.

    Args:
        since: Limit earlier output to the last seconds; 0 for all.
        tail: Limit earlier output to the last lines of each pod; negative for all.
        progress: Receives a line when a connection is lost and when a pod is replaced.

    Raises:
        ChartgenError: The pods are too many to follow, or access to a log is denied.
    """
    if len(sources) > _MOST_FOLLOWED:
        problem = f"{len(sources)} pods are too many to follow at once, {_MOST_FOLLOWED} is the most"
        raise ChartgenError(Problem(problem, hint="choose one with --rank or --machine"))
    lines: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=_BACKLOG)
    # the list of a large run takes seconds, and numbered pods do without
    is_listed = any(source.member.index is None for source in sources)
    pods = [member.uid for member, _ in each_member(cluster, release, namespace)] if is_listed else []
    shared = Shared(pods, progress)

    def put(item: str | BaseException | None) -> bool:
        """Queue an item; return False once the reader has stopped."""
        while not shared.stop.is_set():
            with suppress(queue.Full):
                lines.put(item, timeout=_TURN)
                return True
        return False

    def collect(source: Source) -> None:
        follower = Follower(cluster, release, source.member, namespace, shared)
        try:
            for line in follower.lines(since=since, tail=tail, shows=source.shows):
                if not put(prefixed(source, line, sources)):
                    return
            put(None)
        except BaseException as error:  # noqa: BLE001 - the reader must receive any error, or it waits forever
            put(error)

    threads = [threading.Thread(target=collect, args=(source,), daemon=True) for source in sources]
    for thread in threads:
        thread.start()
    try:
        yield from _until_all_ended(lines, len(sources))
    finally:
        shared.stop.set()
        shared.streams.cut()
        for thread in threads:
            thread.join(_FAREWELL)


def prefixed(source: Source, line: str, sources: Sequence[Source]) -> str:
    """Prefix a line with its source when several pods are shown."""
    return source.prefix(line) + line if len(sources) > 1 else line


def _until_all_ended(lines: queue.Queue[str | BaseException | None], count: int) -> Iterator[str]:
    while count:
        try:
            line = lines.get(timeout=_TURN)  # a signal just before a wait without end does not interrupt it
        except queue.Empty:
            continue
        if isinstance(line, BaseException):
            raise line
        if line is None:
            count -= 1
        else:
            yield line
