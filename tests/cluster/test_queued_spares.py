"""Kueue gives a run its machines and its spares together, or none of them."""

from __future__ import annotations

import pytest
from facts import has
from queued import queued_machines
from userlib import chartgen

from chartgen.helm.yaml import Plain
from chartgen.kube import POD, WORKLOAD, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.verdict import look
from chartgen.releases.status.readout import read_readout

SETS = "launcher=megatron-lm,nodes=2,run.spares=1,queue.name=p8000,network.interface=tcp,"
SETS += "launchers.megatron-lm.image=nvcr.io/nvidia/nemo:26.06"

pytestmark = pytest.mark.engines


@pytest.mark.parametrize("workload", ["jobset", pytest.param("job", marks=pytest.mark.full)])
@pytest.mark.parametrize("quota", [3, 2])
def test_a_run_waits_until_its_spare_has_quota_too(plane: ControlPlane, workload: str, quota: int) -> None:
    space = f"spared-{workload}-{quota}"
    sets: dict[str, Plain] = {"nodes": 2, "run": {"spares": 1}, "setup": {"quota": {"nodes": quota}}}
    with queued_machines(plane, space, workload, 3, sets):
        install = ("install", "onprem-p8000", "run", "--workload", workload, "--set", SETS, "--force", "-n", space)
        done = chartgen(*install)
        assert done.exit_code == 0, done.output
        if quota == 3:
            wait_for(lambda: look(plane.cluster, "run", namespace=space).ok, what="that it runs", timeout=180)
            (found,) = plane.cluster.list(WORKLOAD, namespace=space)
            assert [each["count"] for each in found["status"]["admission"]["podSetAssignments"]] == [3]
            assert len({pod["spec"]["nodeName"] for pod in plane.cluster.list(POD, namespace=space)}) == 3
        else:
            expected = has("queue p8000 24 nvidia.com/gpu 16")
            wait_for(
                lambda: expected in [each.message for each in read_readout(plane.cluster, "run", space).causes],
                what="the reason",
                timeout=180,
            )
            assert read_readout(plane.cluster, "run", space).phase == "queued"
            assert not plane.cluster.list(POD, namespace=space)
        assert chartgen("uninstall", "run", "--lose-progress", "-n", space).exit_code == 0
        wait_for(lambda: not plane.cluster.list(WORKLOAD, namespace=space), what="that its quota is free", timeout=180)
