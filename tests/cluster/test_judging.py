"""A rehearsal judges the run, never the machine that simulates it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import manifests
import pytest
from denials import denied

from chartgen.kube import JOB, LEASE
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import Verdict, judge_release, look, patience, pause_until_started

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    names = create_machines(plane.cluster, [manifests.pool("judged", 4)])
    yield plane
    delete_machines(plane.cluster, names)


@contextmanager
def stopped(plane: ControlPlane, name: str) -> Iterator[None]:
    """A process of the simulation gets no processor at all."""
    os.kill(plane.processes.pids[name], signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(plane.processes.pids[name], signal.SIGCONT)


def judged(plane: ControlPlane, name: str, *, canary: float = 60.0) -> Verdict:
    return judge_release(plane.cluster, name, namespace="default", timeout=2, canary=canary)


@pytest.mark.parametrize("process", ["kwok", "kube-scheduler", "kube-controller-manager"])
def test_a_simulation_that_stands_still_does_not_judge(machines: ControlPlane, process: str) -> None:
    name = f"still-{process}"
    with stopped(machines, process):
        machines.cluster.apply([manifests.job(name, 2, pool="judged")])
        verdict = judged(machines, name, canary=2)
    assert (verdict.ok, verdict.overloaded) == (False, True)
    assert judged(machines, name).ok
    machines.cluster.delete(JOB, name)
    assert not [job for job in machines.cluster.list(JOB) if "canary" in job["metadata"]["name"]]


def test_a_run_that_does_not_fit_is_judged(machines: ControlPlane) -> None:
    machines.cluster.apply([manifests.job("unfit", 1, gpus=9, pool="judged")])
    verdict = judged(machines, "unfit")
    assert (verdict.ok, verdict.overloaded) == (False, False)
    assert "too little free nvidia.com/gpu" in " ".join(verdict.reasons)
    machines.cluster.delete(JOB, "unfit")


def test_a_refused_canary_leaves_the_verdict(machines: ControlPlane) -> None:
    """A cluster with webhooks or quotas may refuse the Job of one pod, which is no sign of slowness."""
    cluster = machines.cluster
    probe = {**manifests.job("chartgen-canary-probe", 1), "apiVersion": JOB.api_version}
    allowed = "!object.metadata.name.startsWith('chartgen-canary-')"
    cluster.apply([manifests.job("unfit-too", 1, gpus=9, pool="judged")])
    with denied(cluster, "batch", "jobs", "CREATE", allowed, lambda: cluster.create(JOB, probe, dry_run=True)) as why:
        verdict = judged(machines, "unfit-too")
    assert (verdict.ok, verdict.overloaded) == (False, False)
    assert "too little free nvidia.com/gpu" in verdict.reasons[0]
    assert why in verdict.reasons[-1]
    cluster.delete(JOB, "unfit-too")


def test_a_run_that_is_only_late_is_waited_for(machines: ControlPlane) -> None:
    """The simulation stands still for longer than it may take, but goes on before the Job of one pod is given up."""
    lines: list[str] = []

    def resume(line: str) -> None:
        lines.append(line)
        if "speed of the simulation" in line:
            os.kill(machines.processes.pids["kwok"], signal.SIGCONT)

    with stopped(machines, "kwok"):
        machines.cluster.apply([manifests.job("late", 2, pool="judged")])
        verdict = judge_release(machines.cluster, "late", namespace="default", timeout=2, progress=resume)
    assert verdict.ok, verdict.reasons
    assert any("speed of the simulation" in line for line in lines)
    machines.cluster.delete(JOB, "late")


def test_no_machine_is_given_up_because_this_one_is_busy(machines: ControlPlane) -> None:
    """No lease can expire, and the grace period is longer than any rehearsal."""
    assert not machines.cluster.list(LEASE, namespace="kube-node-lease")
    pid = machines.processes.pids["kube-controller-manager"]
    assert b"--node-monitor-grace-period=3600s" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def test_more_machines_get_more_time() -> None:
    assert patience(32) < patience(2048)
    assert patience(2048) > 300


def test_a_pause_ends_when_the_last_pod_runs(machines: ControlPlane) -> None:
    begin = time.monotonic()
    machines.cluster.apply([manifests.job("paused", 2, pool="judged")])
    pause_until_started(machines.cluster, "paused", "default", 60)
    assert look(machines.cluster, "paused").ok
    assert time.monotonic() - begin < 60
    machines.cluster.delete(JOB, "paused")
