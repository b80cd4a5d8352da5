"""`chartgen status` of a release of 1,000 machines beside ten others: `python benchmarks/status.py`.

Everything runs on a control plane of its own with simulated machines, which takes some minutes to fill. The ratio is to
kubectl, which reads the same objects (`kubectl get`), as JSON and as its table, each as a whole process; without a
kubectl it is to the plain HTTP requests of the same objects. Exit code 1 when a budget is exceeded.
"""

from __future__ import annotations

import os
import statistics
import sys
import time

from bench import CHARTGEN, Figure, Run, clock, interleave

from chartgen.kube import JOB, JOBSET, POD, Cluster
from chartgen.kube.node_pool import NodePool
from chartgen.programs import find_tool
from chartgen.rehearsal.controllers import start_controllers
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines
from chartgen.releases.status.readout import read_readout

MACHINES, OTHERS, ROUNDS = 1000, 10, 5
KINDS = "jobsets,jobs,pods"
LABEL = "app.kubernetes.io/instance"
GPUS = {"nvidia.com/gpu": "8"}


def jobset(release: str, machines: int) -> dict[str, object]:
    """A run of so many machines."""
    labels = {LABEL: release}
    container = {"name": "train", "image": "registry.invalid/train:1", "resources": {"requests": GPUS, "limits": GPUS}}
    template = {"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    job = {"completionMode": "Indexed", "completions": machines, "parallelism": machines, "template": template}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": release, "namespace": "default", "labels": labels},
        "spec": {"replicatedJobs": [{"name": "workers", "template": {"spec": job}}]},
    }


def fill(plane: ControlPlane, machines: int = MACHINES) -> None:
    """Start all runs and wait until their pods run."""
    start_controllers(plane, ("jobset",))
    capacity = {**GPUS, "cpu": "208", "memory": "1872Gi", "pods": "110"}
    create_machines(plane.cluster, [NodePool("machine", machines + OTHERS, capacity)])
    releases = [f"other-{number}" for number in range(OTHERS)]
    plane.cluster.apply([jobset("big", machines), *(jobset(name, 1) for name in releases)])
    while any(read_readout(plane.cluster, name).phase != "running" for name in ("big", *releases)):
        time.sleep(2)


def requests(cluster: Cluster) -> None:
    """Read the same objects plainly."""
    for kind in (JOBSET, JOB, POD):
        cluster.list(kind, namespace="default", labels={LABEL: "big"})


def measure(plane: ControlPlane, rounds: int = ROUNDS) -> list[Figure]:
    """Time the command, and in this process what it does."""
    os.environ["KUBECONFIG"] = str(plane.kubeconfig)
    kubectl = find_tool("kubectl")
    commands = {"status": [CHARTGEN, "status", "big"], "other": [CHARTGEN, "status", "other-0"]}
    if kubectl:
        get = [str(kubectl), "get", KINDS, "--selector", f"{LABEL}=big"]
        commands |= {"kubectl get, JSON": [*get, "--output", "json"], "kubectl get, table": get}
    runs = interleave(commands, rounds)
    seconds = {name: statistics.median(run.seconds for run in taken) for name, taken in runs.items()}
    reading = statistics.median(clock(lambda: read_readout(plane.cluster, "big"), rounds))
    plain = statistics.median(clock(lambda: requests(plane.cluster), rounds))
    name = f"chartgen status of {MACHINES} machines"
    figures = [
        Figure(f"{name}, beside {OTHERS} releases", seconds["status"], 3, "s"),
        Figure("chartgen status of a small release there", seconds["other"], 3, "s"),
        Figure("  peak memory", peak(runs["status"]), 200, "MB"),
        Figure("reading in process / plain HTTP requests", reading / plain, None if kubectl else 2, "x"),
    ]
    if kubectl:
        for form in ("table", "JSON"):
            ratio = seconds["status"] / seconds[f"kubectl get, {form}"]
            figures.append(Figure(f"chartgen status / kubectl get {KINDS}, {form}", ratio, 1, "x"))
    return figures + [Figure(f"  median: {each}", median, None, "s") for each, median in seconds.items()]


def peak(runs: list[Run]) -> float:
    """Return the most memory that any of them took, in MB."""
    return max(run.megabytes for run in runs)


def main() -> int:
    """Measure, print the table, and say by the exit code whether every budget holds."""
    with ControlPlane() as plane:
        fill(plane)
        figures = measure(plane)
    print("\n".join(figure.row() for figure in figures))
    return 1 if any(figure.over for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
