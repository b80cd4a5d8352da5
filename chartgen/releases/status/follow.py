"""The log of one rank's pod, followed across lost connections, restarted containers and replaced pods.

Kubernetes returns a log only from a whole second on (PodLogOptions.sinceTime), so some lines arrive twice: their time
stamp and text identify them.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from chartgen.errors import ChartgenError, MissingToolError
from chartgen.kube import POD, Cluster, ClusterError, Streams, is_passing
from chartgen.kube.workloads import each_pod, find_runs, outcome
from chartgen.programs import Progress
from chartgen.releases.history import parse_time
from chartgen.releases.status.members import Member, member, pod_log, since_option

_PAUSE = 0.5  # seconds between two attempts
_NOT_YET = {400, 404}  # the container has not started, or the pod is gone
_OVERLAP = timedelta(seconds=1)  # lines of a container's two streams may not be in the order of their times


class Seen:
    """Recently shown lines of a log, as far back as they can arrive again."""

    def __init__(self) -> None:
        self._recent: dict[tuple[str, str], int] = Counter()
        self._again: Counter[tuple[str, str]] = Counter()
        self._from: datetime | None = None

    def options(self) -> dict[str, str | int]:
        """Prepare to read the log again, and return the API option that skips old lines."""
        self._again = Counter(self._recent)
        return {"sinceTime": f"{self._from:%Y-%m-%dT%H:%M:%SZ}"} if self._from else {}

    def new(self, line: str) -> str | None:
        """Return the text of a line with a time stamp; None when it was shown before."""
        stamp, _, text = line.partition(" ")
        try:
            time = parse_time(stamp)
        except ValueError:
            return line  # a message of the kubelet itself
        if self._again[stamp, text]:
            self._again[stamp, text] -= 1
            return None
        self._keep(time, (stamp, text))
        return text

    def _keep(self, time: datetime, key: tuple[str, str]) -> None:
        begin = time.replace(microsecond=0) - _OVERLAP
        if self._from is None or begin > self._from:
            self._from = begin
            self._recent = Counter({old: n for old, n in self._recent.items() if parse_time(old[0]) >= begin})
        self._recent[key] += 1


class Shared:
    """What the followers of one run share.

    Pods without numbers, such as Ray's workers, are all alike: any new one replaces any that has
    ended, so that each has one follower at most.

    Args:
        pods: The uids of the pods without numbers at the start, which replace no other.
        progress: Receives a line when the connection is lost and when a pod is replaced.

    Attributes:
        stop: Event that ends the followers.
        streams: Closed by the caller at the end, so that no read blocks.
    """

    def __init__(self, pods: Iterable[str], progress: Progress) -> None:
        self.progress, self.stop, self.streams = progress, threading.Event(), Streams()
        self._lock, self._taken = threading.Lock(), set(pods)

    def take(self, pod: Member) -> bool:
        """Take a pod as a replacement; return False when it cannot be one."""
        if pod.index is not None:
            return True
        with self._lock:
            is_new = pod.uid not in self._taken
            self._taken.add(pod.uid)
            return is_new


class Follower:
    """Follows the log of one pod and of the pods that replace it."""

    def __init__(self, cluster: Cluster, release: str, pod: Member, namespace: str, shared: Shared) -> None:
        self._cluster, self._release, self._namespace = cluster, release, namespace
        self._pod, self._shared, self._seen = pod, shared, Seen()
        self._progress, self._stop, self._streams = shared.progress, shared.stop, shared.streams
        self._lost = self._complete = False
        self._unreadable = ""  # why the pod has no log, now or ever
        self._done = ""  # uid of the pod whose log is complete

    def lines(self, *, since: int, tail: int, shows: Callable[[str], bool]) -> Iterator[str]:
        """Yield the lines, first the earlier ones, until the end of the run.

        Args:
            since: Limit earlier lines to the last seconds; 0 for all.
            tail: Limit earlier lines to this number; negative for all.
            shows: Returns whether to show a line.

        Raises:
            ClusterError: The cluster denies access to the log.
        """
        before = filter(shows, self._read(since_option(since)))
        yield from before if tail < 0 else deque(before, maxlen=tail)
        yield from filter(shows, self._rest())

    def _rest(self) -> Iterator[str]:
        while not self._stop.is_set():
            try:
                pod = self._current()
                if pod is None and self._run_has_ended():
                    return
            except (ClusterError, MissingToolError) as error:
                self._fail(error)
                pod = None
            if pod is not None:
                yield from self._follow(pod)
            self._stop.wait(_PAUSE)

    def _follow(self, pod: Member) -> Iterator[str]:
        if pod.uid != self._pod.uid:
            self._progress(f"pod {pod.name} on machine {pod.machine} replaces pod {self._pod.name}")
            self._seen = Seen()  # another machine has another clock
        elif pod.program_restarts > self._pod.program_restarts:
            yield from self._read({"previous": "true"})
        self._pod = pod
        yield from self._read({"follow": "true"})
        # only a log read after the end of the container is complete: a lost connection also ends it
        if pod.phase in {"Succeeded", "Failed"} and (self._complete or self._unreadable):
            self._done = pod.uid
            if self._unreadable:  # it was evicted, or failed before its container started
                self._progress(f"the log of pod {pod.name} cannot be read: {self._unreadable}")

    def _current(self) -> Member | None:
        """Return the pod to read: the same pod until its log is complete, then its replacement."""
        found = self._cluster.get(POD, self._pod.name, self._namespace)
        if found and found["metadata"].get("uid") == self._pod.uid != self._done:
            for _, each in self._cluster.judged([found], member):
                return each
            self._miss()  # the object has another form than a pod; somebody may correct it
            return None
        others = each_pod(self._cluster, self._release, self._namespace, dict(self._pod.place))
        for _, each in self._cluster.judged(others, member):
            if each.uid != self._pod.uid and each.machine and self._shared.take(each):
                return each
        return None

    def _run_has_ended(self) -> bool:
        runs = find_runs(self._cluster, self._release, self._namespace, needed=lambda _: False)
        if not runs:
            for gap in self._cluster.gaps:  # its run may be of such a kind
                self._progress(f"whether the run has ended is unknown: {gap}")
        return all(map(outcome, runs))

    def _read(self, options: dict[str, str | int]) -> Iterator[str]:
        """Yield the new lines of the current pod's log."""
        self._complete, self._unreadable = False, ""
        options = {"timestamps": "true", **self._seen.options(), **options}
        try:
            for line in pod_log(self._cluster, self._pod, self._namespace, self._streams, **options):
                text = self._seen.new(line)
                if text is not None:
                    yield text
        except (ClusterError, MissingToolError) as error:
            if isinstance(error, ClusterError) and error.status in _NOT_YET:
                self._unreadable = str(error)
            self._fail(error)
        else:
            self._complete, self._lost = True, False

    def _fail(self, error: ChartgenError) -> None:
        """Continue after a temporary error, and report it once; raise any other."""
        if self._stop.is_set() or (isinstance(error, ClusterError) and error.status in _NOT_YET):
            return
        if not is_passing(error):
            raise error
        self._miss()

    def _miss(self) -> None:
        if not self._lost:
            self._progress(f"the log of pod {self._pod.name} does not come, trying again")
        self._lost = True
