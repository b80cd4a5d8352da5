"""The verdict of a rehearsal; no verdict when the simulation itself is too slow."""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from dataclasses import replace

from chartgen.errors import ChartgenError
from chartgen.kube import JOB, POD, Cluster, ClusterError, Object, is_passing, wait_for
from chartgen.kube.node_pool import OWNER
from chartgen.programs import Progress
from chartgen.rehearsal.verdict import Verdict, look, wait_for_verdict

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
        cluster: The cluster of the release, with simulated machines.
        release: Its name.
        namespace: Its namespace.
        timeout: Seconds without progress after which the wait for a run without a reason not to start ends.
        canary: Seconds for the Job of one pod to start.
        progress: Receives one line per change.
    """
    started = time.monotonic()
    while True:
        verdict = wait_for_verdict(cluster, release, namespace=namespace, timeout=timeout, progress=progress)
        if verdict.ok:
            break
        if progress:
            progress("checking the speed of the simulation")
        try:
            keeps_up, unchecked = _starts(cluster, namespace, canary), []
        except ClusterError as error:
            keeps_up, unchecked = True, [f"it is not checked whether the simulation is only slow: {error}"]
        after = look(cluster, release, namespace=namespace)
        if after.reach > verdict.reach:
            continue  # it was only late
        known = replace(verdict, reasons=[*verdict.reasons, *unchecked])
        verdict = known if keeps_up else _overloaded(after, canary)
        break
    return replace(verdict, seconds=time.monotonic() - started)


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
        with suppress(ClusterError):  # it may be refused too, and the Job goes with the namespace or the cluster
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
