"""Kueue's replacement of a machine (TASFailedNodeReplacement) under runs of a chart with a topology."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import Result
from kubelet import lose_machine
from queued import queued_machines
from userlib import chartgen

from chartgen.composer.node_pools import node_pool
from chartgen.composer.target import load_target
from chartgen.kube import NODE, POD, WORKLOAD, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines
from chartgen.rehearsal.verdict import look

SPACE = "replaced"

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[list[str]]:
    """Three machines of a target and a queue of three with a topology, in a namespace."""
    with queued_machines(plane, SPACE, "jobset", 3, {"nodes": 2, "setup": {"quota": {"nodes": 3}}}) as names:
        yield names


@pytest.mark.parametrize("workload", ["jobset", "trainjob"])
def test_a_run_goes_on_without_the_machine_that_is_gone(
    plane: ControlPlane, machines: list[str], workload: str
) -> None:
    assert len(machines) == 3
    sets = "nodes=2,queue.name=p8000,topology.mode=preferred,run.maxRestarts=1,network.interface=tcp"
    call("install", "onprem-p8000", workload, "--workload", workload, "--set", sets, "--force")
    wait_for(lambda: look(plane.cluster, workload, namespace=SPACE).ok, what="that it runs", timeout=180)
    before = admission(plane)
    lost = min(places(plane, workload))
    lose_machine(plane.cluster, lost)
    others = {*machines} - {lost}
    wait_for(lambda: places(plane, workload) == others, what="that the third machine takes its place", timeout=180)
    wait_for(lambda: look(plane.cluster, workload, namespace=SPACE).ok, what="that it runs again", timeout=180)
    assert admission(plane) == before, "its quota was never given back"
    call("uninstall", workload, "--lose-progress")
    wait_for(lambda: not plane.cluster.list(WORKLOAD, namespace=SPACE), what="that its quota is free", timeout=180)
    plane.cluster.delete(NODE, lost)
    create_machines(plane.cluster, [node_pool(load_target("onprem-p8000").default_machine, 3)])


def call(*arguments: str) -> Result:
    done = chartgen(*arguments, "--namespace", SPACE)
    assert done.exit_code == 0, done.output
    return done


def admission(plane: ControlPlane) -> list[tuple[str, str, str]]:
    """Return the conditions of the one workload that say whether it has quota, and since when."""
    (found,) = plane.cluster.list(WORKLOAD, namespace=SPACE)
    assert "topologyAssignment" in str(found["status"]["admission"])
    conditions = found["status"]["conditions"]
    return [
        (each["type"], each["status"], each["lastTransitionTime"])
        for each in conditions
        if each["type"] in ("QuotaReserved", "Admitted", "Evicted")
    ]


def places(plane: ControlPlane, release: str) -> set[str]:
    """Return the machines of a run's pods that are not being removed."""
    found = plane.cluster.list(POD, namespace=SPACE, labels={"app.kubernetes.io/instance": release})
    return {pod["spec"].get("nodeName", "") for pod in found if "deletionTimestamp" not in pod["metadata"]}
