"""The MPI operator outside of a cluster, for MPIJobs; it has no webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import webhooks
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.probes import answers

_NAMESPACE = "mpi-operator"  # of its lease


def start(plane: ControlPlane) -> None:
    """Start the MPI operator and wait until it handles jobs."""
    plane.cluster.apply([webhooks.namespace_object(_NAMESPACE)])

    def command(ports: Sequence[int]) -> list[str | Path]:
        return [
            "env",
            f"HEALTH_PORT={ports[0]}",  # see data/engines.yaml
            engines.require("mpi-operator"),
            f"--kubeConfig={plane.kubeconfig}",
            "--kube-api-qps=300",
            "--kube-api-burst=500",
            "--controller-queue-rate-limit=300",
            "--controller-queue-burst=500",
        ]

    def ready(ports: Sequence[int]) -> bool:
        return answers(f"http://127.0.0.1:{ports[0]}/healthz")

    plane.processes.start("mpi-operator", command, ports=1, ready=ready)
