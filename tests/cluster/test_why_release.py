"""`chartgen why RELEASE` on a real API server: all pods' logs, how their containers ended, and pods that are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import manifests
import pytest
from answers import answer
from facts import has
from kubelet import Kubelet, end_container, kubelet_of, pod_names
from userlib import chartgen

from chartgen.kube import POD, Object, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.rehearsal.verdict import wait_for_verdict
from chartgen.releases.status.explained import explain_release
from chartgen.releases.status.readout import read_readout

POOL = "died"
LOST = "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error"


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    found = create_machines(plane.cluster, [manifests.pool(POOL, 2)])
    yield plane
    delete_machines(plane.cluster, found)


@pytest.fixture
def kubelet(machines: ControlPlane) -> Iterator[Kubelet]:
    with kubelet_of(machines, [f"{POOL}-0", f"{POOL}-1"]) as found:
        yield found


@pytest.fixture
def start(machines: ControlPlane) -> Iterator[Callable[[Object], list[str]]]:
    """Starts a run and returns its pods; removes it at the end."""
    runs: list[Object] = []

    def started(run: Object) -> list[str]:
        runs.append(run)
        machines.cluster.apply([run])
        name = run["metadata"]["name"]
        assert wait_for_verdict(machines.cluster, name, timeout=180).ok
        return pod_names(machines.cluster, name)

    yield started
    for run in runs:
        machines.cluster.delete_object(run, namespace="default", foreground=True)
        left = {"app.kubernetes.io/instance": run["metadata"]["name"]}
        wait_for(lambda: not machines.cluster.list(POD, labels=left), what="that they are gone", timeout=180)  # noqa: B023


def test_the_rank_that_failed_first_is_named_although_another_pod_ended_before(
    kubelet: Kubelet, machines: ControlPlane, start: Callable[[Object], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = start(manifests.jobset("short", 2, pool=POOL))
    machine = (machines.cluster.get(POD, second) or {})["spec"]["nodeName"]
    kubelet.write(first, f"[rank0]: {LOST}", second=9)
    kubelet.write(second, "[rank11]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4 GiB", second=5)
    # the controller may remove the other pod as soon as one has failed: the log that decides is of the first to fail
    end_container(machines.cluster, second, code=1, finishedAt="2026-01-02T03:04:12Z")
    end_container(machines.cluster, first, code=1, finishedAt="2026-01-02T03:04:10Z")
    found = explain_release(machines.cluster, "short", "default")
    assert (found.cause, found.rank, found.machine, found.restart) == ("gpu-memory", 11, machine, "none"), found
    assert found.evidence[0].place == f"{second}:1"
    assert found.evidence[-1].text == "image x", "as the kubelet names it"
    monkeypatch.setenv("KUBECONFIG", str(machines.kubeconfig))
    wait_for(lambda: read_readout(machines.cluster, "short", "default").failure, what="that it has failed", timeout=180)
    failure = read_readout(machines.cluster, "short", "default").failure
    assert failure
    assert failure.hint == has("chartgen logs short")
    assert answer(chartgen("why", "short", "--output", "json").stdout)["cause"] == "gpu-memory"


def test_the_end_of_a_container_counts_when_its_log_shows_nothing(
    kubelet: Kubelet, machines: ControlPlane, start: Callable[[Object], list[str]]
) -> None:
    first, second = start(manifests.jobset("large", 2, pool=POOL))
    kubelet.write(first, f"[rank0]: {LOST}")
    kubelet.waiting.add(second)
    # the controller may remove what is left as soon as one has failed
    end_container(machines.cluster, second, code=137, reason="OOMKilled")
    end_container(machines.cluster, first, code=1)
    found = explain_release(machines.cluster, "large", "default")
    assert found.cause == "host-memory"
    assert any(name.startswith(f"{second}: 0 lines, ") and "waiting to start" in name for name in found.examined), found
