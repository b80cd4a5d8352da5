"""KubeRay's operator outside of a cluster, for RayJobs; its webhooks are off by default, as in its installer.

It reads the state of a Ray job from Ray's dashboard, which simulated machines lack: it makes the cluster of a run and
its submitter, and never sees the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.probes import answers


def start(plane: ControlPlane) -> None:
    """Start KubeRay's operator and wait until it handles jobs."""

    def command(ports: Sequence[int]) -> list[str | Path]:
        return [
            "env",
            f"KUBECONFIG={plane.kubeconfig}",
            engines.require("kuberay"),
            "--enable-leader-election=false",
            "--metrics-addr=0",
            f"--health-probe-bind-address=127.0.0.1:{ports[0]}",
            "--qps=300",
            "--burst=500",
        ]

    def ready(ports: Sequence[int]) -> bool:
        return answers(f"http://127.0.0.1:{ports[0]}/readyz")

    plane.processes.start("kuberay", command, ports=1, ready=ready)
