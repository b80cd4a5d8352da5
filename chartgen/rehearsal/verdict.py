"""The verdict on an installed release: its readout once it runs, or once it is clear why it does not.

When the simulation itself is too slow, nothing is judged.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from chartgen.errors import ChartgenError, MissingToolError
from chartgen.kube import INSTANCE_LABEL, JOB, POD, Cluster, ClusterError, Object, is_passing, wait_for
from chartgen.kube.node_pool import OWNER
from chartgen.programs import Progress
from chartgen.releases.status.pending import NotYet
from chartgen.releases.status.readout import Readout, read_readout
from chartgen.releases.status.watch import watch
from chartgen.visible import counted

_INTERVAL = 0.25  # seconds between two readouts


@dataclass(frozen=True)
class Verdict:
    """Result of an install."""

    admitted: bool  # the queue admitted it, or it does not use a queue
    pods: int  # pods that exist
    pods_expected: int  # pods that its runs request
    running: int  # pods that were started: they run, or have succeeded
    machines: int  # distinct machines of its pods
    gpus: int  # GPUs of the placed pods
    rendezvous: str  # MASTER_ADDR:MASTER_PORT of its pods; empty without them
    # Why it is not admitted, not placed or failed; empty without a problem
    reasons: list[str] = field(default_factory=list)
    seconds: float = 0.0  # time until this verdict
    ok: bool = False  # admitted, and all its pods were started
    overloaded: bool = False  # no verdict: the simulated cluster of a rehearsal was too slow

    @property
    def reach(self) -> int:
        """Return the progress as a number that grows with each step: admitted, a pod made, placed or started."""
        return self.admitted + self.pods + self.machines + self.running

    def __str__(self) -> str:
        if self.pods_expected == 0:
            return "no job of this release yet"
        if not self.admitted:
            return f"queued: {'; '.join(self.reasons)}"
        pods = f"{self.pods} of {self.pods_expected} pods, {self.running} running"
        return "; ".join(
            [f"admitted, {pods}, {counted(self.machines, 'machine')}, {counted(self.gpus, 'GPU')}", *self.reasons]
        )


def look(cluster: Cluster, release: str, *, namespace: str = "") -> Verdict:
    """Return the verdict on the present state of a release."""
    return _verdict_of(read_readout(cluster, release, namespace, brief=True))


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
        timeout: Seconds without progress, or without an answer, after which the current state is the verdict.
        settle: Seconds without any change after which the wait for a run with a reason not to start ends.

    Raises:
        MissingToolError: The cluster does not answer the first request, or for longer than the timeout.
    """
    report = progress or (lambda _: None)
    started = changed = progressed = time.monotonic()
    last, furthest = _verdict_of(Readout(release, namespace, "absent")), 0
    pause = partial(pause_until_started, cluster, release, namespace)
    for readout in watch(
        cluster, release, namespace, progress=report, patience=timeout, interval=_INTERVAL, brief=True, pause=pause
    ):
        verdict, now = _verdict_of(readout), time.monotonic()
        if verdict != last:
            last, changed = verdict, now
            report(str(verdict))
        if verdict.reach > furthest:
            furthest, progressed = verdict.reach, now
        if verdict.ok or (_is_explained(readout) and now - changed > settle):
            break
        if now - progressed > timeout:
            late = f"no progress for {timeout:.0f} s: {verdict.running} of {verdict.pods_expected} pods run"
            last = replace(last, reasons=[*last.reasons, late])
            break
    return replace(last, seconds=time.monotonic() - started)


def pause_until_started(cluster: Cluster, release: str, namespace: str, seconds: float) -> None:
    """Wait some seconds, or until a release has pods and none is pending: thousands take seconds to list."""
    end, step = time.monotonic() + seconds, max(1.0, seconds / 5)
    while (left := end - time.monotonic()) > step:
        time.sleep(step)
        with suppress(ClusterError, MissingToolError):  # the next readout reports it
            if _has_pods(cluster, release, namespace, "!=") and not _has_pods(cluster, release, namespace, "="):
                return
    time.sleep(max(left, 0))


def _has_pods(cluster: Cluster, release: str, namespace: str, pending: str) -> bool:
    labels, fields = {INSTANCE_LABEL: release}, f"status.phase{pending}Pending"
    found = cluster.each(POD, namespace=namespace, labels=labels, fields=fields, metadata_only=True, page=1)
    return next(found, None) is not None


def _verdict_of(readout: Readout) -> Verdict:
    ok = readout.phase == "finished" or (readout.phase == "running" and readout.started >= readout.pods_expected)
    failure = [readout.failure.what, *readout.failure.then] if readout.failure else []
    return Verdict(
        admitted=readout.phase not in {"absent", "queued"},
        pods=readout.pods,
        pods_expected=readout.pods_expected,
        running=readout.started,
        machines=readout.machines,
        gpus=readout.gpus,
        rendezvous=readout.rendezvous,
        reasons=[] if ok else [*failure, *map(str, readout.causes)],
        ok=ok,
    )


def _is_explained(readout: Readout) -> bool:
    """Report whether a readout has a reason that time alone does not remove."""
    return readout.phase == "failed" or any(not isinstance(cause, NotYet) for cause in readout.causes)


_PATIENCE = 120.0  # seconds without progress
_MACHINES_PER_SECOND = 10.0  # per additional second of patience; 2,048 machines report about 6 pods a second on 2 cores
_CANARY_SECONDS = 60.0  # normally about one second


def patience(machines: int) -> float:
    """Return the seconds without progress after which a rehearsal with this number of machines gives up."""
    return _PATIENCE + machines / _MACHINES_PER_SECOND


def judge_release(
    cluster: Cluster,
    release: str,
    *,
    namespace: str,
    timeout: float,
    canary: float = _CANARY_SECONDS,
    progress: Progress | None = None,
) -> Verdict:
    """Watch an installed release until it runs, clearly does not run, or the simulation proves too slow.

    A run that does not start may only be late. So a Job of one pod follows it through the same controllers: if that
    Job starts and the run has made no progress, the run does not start; if the Job does not start either, the verdict
    is `overloaded`. If the cluster refuses the Job, the verdict has that as a further reason.

    Args:
        timeout: Seconds without progress after which the wait for a run without a reason not to start ends.
        canary: Seconds for the Job of one pod to start.
    """
    started = time.monotonic()
    while True:
        watched = partial(wait_for_verdict, cluster, release, namespace=namespace, timeout=timeout, progress=progress)
        verdict = _while_busy(watched, timeout)
        if verdict.ok:
            break
        if progress:
            progress("checking the speed of the simulation")
        try:
            keeps_up, unchecked = _starts(cluster, namespace, canary), []
        except ClusterError as error:
            keeps_up, unchecked = True, [f"it is not checked whether the simulation is only slow: {error}"]
        after = _while_busy(lambda: look(cluster, release, namespace=namespace), timeout)
        if after.reach > verdict.reach:
            continue  # it was only late
        known = replace(verdict, reasons=[*verdict.reasons, *unchecked])
        verdict = known if keeps_up else _overloaded(after, canary)
        break
    return replace(verdict, seconds=time.monotonic() - started)


def _while_busy(read: Callable[[], Verdict], seconds: float) -> Verdict:
    """Return what is read from an API server, which is asked again for some seconds while it does not answer."""
    end = time.monotonic() + seconds
    while True:
        try:
            return read()
        except (ClusterError, MissingToolError) as error:
            if not is_passing(error) or time.monotonic() > end:
                raise
        time.sleep(_INTERVAL)


def _starts(cluster: Cluster, namespace: str, seconds: float) -> bool:
    """Report whether a Job of one pod starts within some seconds.

    Raises:
        ClusterError: The cluster refuses the Job, such as by a webhook or a quota, so nothing is known of its speed.
    """
    job = _canary(namespace)
    name = job["metadata"]["name"]

    def runs() -> bool:
        pods = cluster.list(POD, namespace=namespace, labels={"batch.kubernetes.io/job-name": name})
        return any(pod.get("status", {}).get("phase") in ("Running", "Succeeded") for pod in pods)

    try:
        cluster.create(JOB, job)
        wait_for(runs, what="that a Job of one pod starts", timeout=seconds, interval=0.5)
    except ChartgenError as error:
        if not is_passing(error):
            raise
        return False
    finally:
        with suppress(ChartgenError):  # it may be refused too, and the Job goes with the namespace or the cluster
            cluster.delete(JOB, name, namespace)
    return True


def _canary(namespace: str) -> Object:
    container = {"name": "canary", "image": "registry.invalid/canary"}  # simulated machines pull nothing
    pod = {
        "restartPolicy": "Never",
        "containers": [container],
        "nodeSelector": OWNER,
        "tolerations": [{"operator": "Exists"}],
    }
    metadata = {"name": f"chartgen-canary-{secrets.token_hex(4)}", "namespace": namespace}
    spec = {"backoffLimit": 0, "template": {"spec": pod}}
    return {"apiVersion": JOB.api_version, "kind": JOB.name, "metadata": metadata, "spec": spec}


def _overloaded(verdict: Verdict, seconds: float) -> Verdict:
    load = f"load {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors"
    reason = f"the simulation is overloaded: not even a Job of one pod started within {seconds:.0f} s ({load})"
    return replace(verdict, overloaded=True, reasons=[reason, *verdict.reasons])
