"""What became of a release: admitted or why not, placed or why not."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from chartgen.kube import Cluster, Object
from chartgen.kube.workloads import expected_pods, find_pods, find_runs, why_failed
from chartgen.programs import Progress
from chartgen.releases.status.events import run_warnings
from chartgen.releases.status.pods import failure, gpus, is_started, rendezvous, why_pending
from chartgen.releases.status.queue import why_not_admitted

_INTERVAL = 0.25
_SHARE, _LONGEST = 3.0, 10.0  # times as long as a look takes, and seconds: thousands of pods keep the API server busy
# Words of Kueue 0.19 (pkg/scheduler, pkg/controller/core) and of the API server for what no waiting cures.
_FINAL = (
    "maximum capacity",
    "allows to fit only",
    "doesn't exist",
    "unavailable in ClusterQueue",
    "is invalid",
    "forbidden",
    "has failed",
)
_SETTLE_FINAL = 2.0  # seconds; queues that were just created say "doesn't exist" for a moment


@dataclass(frozen=True)
class Verdict:
    """What became of a release.

    Args:
        admitted: The queue admitted it, or it asks for no queue.
        pods: Pods that exist.
        pods_expected: Pods that its runs ask for.
        running: Pods that were started: they run, or have succeeded.
        machines: Distinct machines that its pods are placed on.
        gpus: GPUs of the placed pods.
        rendezvous: MASTER_ADDR:MASTER_PORT of its pods; empty when they have none.
        reasons: Why it is not admitted, not placed or failed; empty when all is well.
        seconds: Time until this verdict.
        ok: Admitted, and all its pods were started.
        overloaded: Nobody can tell: the simulated cluster of a rehearsal was too slow.
    """

    admitted: bool
    pods: int
    pods_expected: int
    running: int
    machines: int
    gpus: int
    rendezvous: str
    reasons: list[str] = field(default_factory=list)
    seconds: float = 0.0
    ok: bool = False
    overloaded: bool = False


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
        cluster: Where it was installed.
        release: Its name: the value of the label app.kubernetes.io/instance.
        namespace: Its namespace; default the context's.
        timeout: Seconds without progress after which the state is the verdict.
        settle: Seconds without any change after which a run with a reason not to start is not waited for.
        progress: Gets one line per change.
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
                progress(describe(verdict))
        if reach(verdict) > furthest:
            furthest, progressed = reach(verdict), now
        patience = _SETTLE_FINAL if any(word in reason for reason in verdict.reasons for word in _FINAL) else settle
        if verdict.ok or (verdict.reasons and now - changed > patience):
            return verdict
        if now - progressed > timeout:
            return _timed_out(verdict, timeout)
        time.sleep(max(_INTERVAL, min(_SHARE * (now - looked), _LONGEST)))


def look(cluster: Cluster, release: str, *, namespace: str = "", seconds: float = 0.0) -> Verdict:
    """Return the state of a release at this moment, as a verdict.

    Args:
        cluster: Where it was installed.
        release: Its name.
        namespace: Its namespace; default the context's.
        seconds: What to report as the time until the verdict.
    """
    namespace = namespace or cluster.namespace
    runs = find_runs(cluster, release, namespace)
    pods = find_pods(cluster, release, namespace)
    expected = sum(map(expected_pods, runs))
    waiting = why_not_admitted(cluster, runs, namespace)
    placed = [pod for pod in pods if pod["spec"].get("nodeName")]
    running = sum(map(is_started, pods))
    admitted = bool(runs) and not waiting
    ok = admitted and running == expected > 0
    reasons = [] if ok else waiting or _why_not_running(cluster, runs, pods, namespace)
    return Verdict(
        admitted=admitted,
        pods=len(pods),
        pods_expected=expected,
        running=running,
        machines=len({pod["spec"]["nodeName"] for pod in placed}),
        gpus=sum(map(gpus, placed)),
        rendezvous=next(filter(None, map(rendezvous, pods)), ""),
        reasons=reasons,
        seconds=seconds,
        ok=ok,
    )


def reach(verdict: Verdict) -> int:
    """Return how far a release is, as a number that grows with each step: admitted, a pod made, placed or started."""
    return verdict.admitted + verdict.pods + verdict.machines + verdict.running


def describe(verdict: Verdict) -> str:
    """Say a verdict in one line."""
    if verdict.pods_expected == 0:
        return "no job of this release yet"
    if not verdict.admitted:
        return f"queued: {'; '.join(verdict.reasons)}"
    pods = f"{verdict.pods} of {verdict.pods_expected} pods, {verdict.running} running"
    text = f"admitted, {pods}, {verdict.machines} machines, {verdict.gpus} GPUs"
    return "; ".join([text, *verdict.reasons])


def _why_not_running(cluster: Cluster, runs: list[Object], pods: list[Object], namespace: str) -> list[str]:
    if failures := _unique([*map(failure, pods), *map(why_failed, runs)]):
        return failures
    # Events stay for an hour, so those of a short hiccup count only while pods are missing.
    missing = len(pods) < sum(map(expected_pods, runs))
    warned = (str(event) for event in run_warnings(cluster, runs, namespace)) if missing else ()
    return _unique([*warned, *map(why_pending, pods)])


def _timed_out(verdict: Verdict, timeout: float) -> Verdict:
    from dataclasses import replace

    late = f"no progress for {timeout:.0f} s: {verdict.running} of {verdict.pods_expected} pods run"
    return replace(verdict, reasons=[*verdict.reasons, late])


def _state(verdict: Verdict) -> tuple[Any, ...]:
    return (verdict.admitted, verdict.pods, verdict.running, verdict.machines, tuple(verdict.reasons))


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, texts)))
