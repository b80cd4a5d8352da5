"""Verdicts: a run that fits runs, one that does not comes back quickly and says why."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import manifests
import pytest

from chartgen.kube import POD, wait_for
from chartgen.rehearsal import verdict as rehearsal_verdict
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import Verdict, wait_for_verdict
from chartgen.releases.status import watch

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    pools = [manifests.pool("full", 32), manifests.pool("short", 31), manifests.pool("plain", 4)]
    names = create_machines(plane.cluster, pools)
    plane.cluster.apply(manifests.queue("full", 256) + manifests.queue("short", 256) + manifests.queue("quota", 248))
    plane.cluster.apply([*manifests.queue("plain", 32, topology=False), manifests.volcano_queue("narrow", 16)])
    yield plane
    delete_machines(plane.cluster, names)


def verdict_on(plane: ControlPlane, run: dict[str, Any], **options: Any) -> Verdict:
    name, kind = run["metadata"]["name"], plane.cluster.kind(run["apiVersion"], run["kind"])
    plane.cluster.apply([run])
    try:
        return wait_for_verdict(plane.cluster, name, **options)
    finally:
        plane.cluster.delete(kind, name, foreground=True)
        wait_for(lambda: plane.cluster.get(kind, name) is None, what=f"that {name} is gone", timeout=180)


def test_256_gpus_are_admitted_and_each_pod_gets_its_own_machine(machines: ControlPlane) -> None:
    lines: list[str] = []
    run = manifests.jobset("whole", 32, queue="full", pool="full", topology=True)
    verdict = verdict_on(machines, run, progress=lines.append)
    assert verdict.ok, verdict.reasons
    assert (verdict.pods, verdict.running, verdict.machines, verdict.gpus) == (32, 32, 32, 256)
    assert verdict.rendezvous == "whole-workers-0-0.whole:29500"
    assert lines[-1] == "admitted, 32 of 32 pods, 32 running, 32 machines, 256 GPUs"


def test_with_31_machines_it_stays_queued_and_says_why(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.jobset("late", 32, queue="short", pool="short", topology=True))
    assert not verdict.ok
    assert not verdict.admitted
    assert verdict.pods == 0
    assert "topology short have room for 31 of its 32 pods" in verdict.reasons[0]


def test_a_quota_that_can_never_hold_it_is_named(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.jobset("big", 32, queue="quota", topology=True))
    assert not verdict.admitted
    assert "256 nvidia.com/gpu, and flavor quota has 248 in all" in verdict.reasons[0]


def test_a_queue_that_does_not_exist_is_named(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.jobset("lost", 2, queue="nosuch"))
    assert not verdict.admitted
    (reason,) = verdict.reasons
    assert reason.startswith("queue nosuch: no LocalQueue nosuch; ")


def test_a_jobset_without_queue_needs_no_admission(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.jobset("free", 4, pool="plain"))
    assert verdict.ok, verdict.reasons
    assert (verdict.machines, verdict.gpus) == (4, 32)


def test_a_plain_job_goes_through_a_queue_without_topology(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.job("plainjob", 4, queue="plain", pool="plain"))
    assert verdict.ok, verdict.reasons
    assert verdict.machines == 4


def test_a_program_without_gpus_runs(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.job("cpu", 2, gpus=0, pool="plain"))
    assert verdict.ok, verdict.reasons
    assert verdict.gpus == 0


def test_what_the_scheduler_cannot_place_is_explained(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.job("wide", 2, gpus=9, pool="plain"), settle=2)
    assert verdict.admitted
    assert not verdict.ok
    assert "too little free nvidia.com/gpu" in verdict.reasons[0]


def test_a_job_that_the_api_server_refuses_is_explained(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.jobset("dangling", 2, pool="plain", mounts=True))
    assert not verdict.ok
    assert 'volumeMounts[0].name: Not found: "nowhere"' in verdict.reasons[0]


def test_a_pytorchjob_goes_through_a_queue_with_topology(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.pytorchjob("torch", 4, queue="full", pool="full", topology=True))
    assert verdict.ok, verdict.reasons
    assert (verdict.pods_expected, verdict.running, verdict.machines, verdict.gpus) == (4, 4, 4, 32)


def test_a_pytorchjob_that_the_quota_cannot_hold_stays_queued(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.pytorchjob("bigtorch", 5, queue="plain"))
    assert (verdict.admitted, verdict.pods) == (False, 0)
    assert "flavor plain has 32 in all" in verdict.reasons[0]


def test_a_pytorchjob_whose_pods_are_refused_is_explained(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.pytorchjob("badtorch", 2, pool="plain", mounts=True))
    assert not verdict.ok
    assert 'volumeMounts[0].name: Not found: "nowhere"' in verdict.reasons[0]


def test_a_volcano_gang_runs_with_its_master(machines: ControlPlane) -> None:
    lines: list[str] = []
    verdict = verdict_on(machines, manifests.volcano_job("gang", 4, pool="plain"), progress=lines.append)
    assert verdict.ok, verdict.reasons
    assert (verdict.pods_expected, verdict.running, verdict.gpus) == (5, 5, 32)
    assert "5 of 5 pods, 5 running" in lines[-1]


def test_a_volcano_queue_without_room_for_the_gang_is_named(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.volcano_job("squeezed", 4, queue="narrow"), settle=2)
    assert (verdict.admitted, verdict.pods) == (False, 0)
    (reason,) = verdict.reasons
    assert reason.startswith("queue 'narrow': its capability leaves too little nvidia.com/gpu for all 5 pods at once; ")


def test_a_gang_larger_than_all_machines_is_named(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.volcano_job("huge", 100), settle=2)
    (reason,) = verdict.reasons
    assert "all machines together have too little free nvidia.com/gpu for all 101 pods at once" in reason


def test_one_cause_that_keeps_a_gang_waiting_is_said_once(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.volcano_job("odd", 2, gpus=9, pool="plain"), settle=6)
    assert (verdict.admitted, verdict.pods, verdict.running) == (True, 3, 0)
    (reason,) = verdict.reasons
    # Volcano explains the pods that it tried before it gave the gang up
    assert reason[1:].startswith(" pods cannot be placed: ")
    assert "too little free nvidia.com/gpu" in reason


def test_a_volcano_job_whose_pods_are_refused_is_explained(machines: ControlPlane) -> None:
    verdict = verdict_on(machines, manifests.volcano_job("ghostly", 1, pool="plain", account="ghost"), settle=2)
    assert not verdict.ok
    assert verdict.reasons[0].startswith("no service account ghost in the namespace; ")


def test_a_release_that_is_not_there_ends_the_wait(machines: ControlPlane) -> None:
    verdict = wait_for_verdict(machines.cluster, "nobody")
    assert not verdict.ok
    assert verdict.reasons[0].startswith("no release nobody in namespace default; ")


def test_a_run_that_goes_on_is_not_given_up(machines: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look takes nearly all of the patience, and finds one more pod running; the clock is the test's."""
    clock, count = [0.0], 3
    kind = machines.cluster.kind("batch/v1", "Job")

    def one_more(_: float) -> None:
        clock[0] += 90
        done = _running(machines)
        if done < count:
            create_machines(machines.cluster, [manifests.pool("slowly", done + 1)])
            wait_for(lambda: _running(machines) > done, what="that one pod more runs", timeout=180)

    for module in (watch, rehearsal_verdict):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=one_more))
    machines.cluster.apply([manifests.job("slowly", count, pool="slowly")])
    try:
        verdict = wait_for_verdict(machines.cluster, "slowly", timeout=100, settle=1e6)
    finally:
        machines.cluster.delete(kind, "slowly", foreground=True)
        delete_machines(machines.cluster, manifests.pool("slowly", count).names)
    assert verdict.ok, verdict.reasons
    assert verdict.seconds > 100


def _running(plane: ControlPlane) -> int:
    pods = plane.cluster.list(POD, namespace="default", labels={"app.kubernetes.io/instance": "slowly"})
    return sum(pod["status"]["phase"] == "Running" for pod in pods)
