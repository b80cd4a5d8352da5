"""What is advised for pods that Kueue's topology has assigned to machines."""

from __future__ import annotations

from typing import cast

import pytest

from chartgen.errors import Problem
from chartgen.kube import Cluster
from chartgen.releases.status.pending import why_not_started
from chartgen.releases.status.pod_summary import PodSummary

# As kube-scheduler 1.36 writes them (pkg/scheduler/framework/types.go, FitError).
OTHERS = "31 node(s) didn't match Pod's node affinity/selector"
HELD = (
    f"0/32 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules, {OTHERS}. preemption: 0/32"
)
BUSY = f"0/32 nodes are available: 1 Insufficient nvidia.com/gpu, {OTHERS}. preemption: 0/32 nodes are available"
GONE = "0/32 nodes are available: 32 node(s) didn't match Pod's node affinity/selector. preemption: 0/32 nodes"


def told(message: str, *, topology: bool, machine: str = "machine-7") -> Problem:
    """The cause for 32 pods of which the scheduler says this; it is told without a cluster."""
    annotations = {"kueue.x-k8s.io/podset-preferred-topology": "rack"} if topology else {}
    selector = {"kubernetes.io/hostname": machine} if machine else {"node.kubernetes.io/instance-type": "a3"}
    pod = {"metadata": {"name": "a", "annotations": annotations}, "spec": {"nodeSelector": selector}}
    summary = PodSummary(pods=32)
    summary.unplaced[message] = 32
    summary.example[message] = pod
    (cause,) = why_not_started(cast("Cluster", None), [], summary, 32, "ml")
    return cause


@pytest.mark.parametrize("message", [HELD, BUSY])
def test_machines_that_a_pod_was_not_assigned_to_are_no_fault(message: str) -> None:
    cause = told(message, topology=True)
    assert "machine-7" in cause.message
    assert "labels" not in cause.message
    assert "machineType" not in cause.hint
    assert "machineType" in told(message, topology=False).hint, "somebody has written this selector"


def test_assigned_machine_that_is_gone() -> None:
    cause = told(GONE, topology=True)
    assert "machine-7" in cause.message
    assert "machine-7" in cause.hint
    assert "machineType" not in cause.hint


def test_pod_that_is_not_assigned_yet_asks_for_labels() -> None:
    assert "machineType" in told(GONE, topology=True, machine="").hint
