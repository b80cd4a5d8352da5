"""The whole table of exit codes under the real controller of every kind: each code starts a run again, or ends it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from selection import cases

from chartgen.composer.assembly import compose
from chartgen.composer.node_pools import node_pool
from chartgen.composer.target import load_target
from chartgen.data.exits import exit_codes, final_exits
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values
from chartgen.kube import NAMESPACE, POD, Object, wait_for
from chartgen.kube.workloads import find_runs, gpus, outcome
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.releases.status.failure import restarts

pytestmark = pytest.mark.engines
OTHERS = {*exit_codes()} - {*final_exits()}
# Volcano may count one failure twice: the pod that failed, and those that end with it.
AGAIN = ["run.maxRestarts=2"]
# Kind -> a target, more values, and the codes after which its controller starts the run again. In the pods of a
# PyTorchJob and an MPIJob a script does so (tests/charts), whose last code then ends the run; a Job has no restarts.
KINDS: dict[str, tuple[str, list[str], set[int]]] = {
    "jobset": ("gke-a3mega", AGAIN, OTHERS),
    "trainjob": ("eks-p5", AGAIN, OTHERS),
    "volcano-job": ("oke-h100", AGAIN, OTHERS),
    "rayjob": ("onprem-p8000", [*AGAIN, "network.interface=infiniband"], {*exit_codes()}),
    "job": ("gke-a3high", [], set()),
    "pytorchjob": ("eks-p5", AGAIN, set()),
    "mpijob": ("eks-p5", AGAIN, set()),
}


def pods_of(plane: ControlPlane, space: str, name: str) -> dict[str, Object]:
    """Return the pods of a run that have not ended, by uid."""
    found = plane.cluster.list(POD, namespace=space, labels={"app.kubernetes.io/instance": name})
    live = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
    return {pod["metadata"]["uid"]: pod for pod in live if pod["status"].get("phase") in ("Pending", "Running")}


def is_running(plane: ControlPlane, space: str, name: str, count: int) -> bool:
    """Report whether all pods of a run run."""
    found = pods_of(plane, space, name).values()
    return len(found) == count and all(pod["status"]["phase"] == "Running" for pod in found)


def end(plane: ControlPlane, space: str, pod: Object, code: int) -> None:
    """Let a pod fail with an exit code: what a kubelet would report."""
    ended = {"exitCode": code, "reason": "Error", "startedAt": None, "finishedAt": None}
    name = pod["spec"]["containers"][0]["name"]
    status = {"name": name, "ready": False, "restartCount": 0, "image": "x", "imageID": "x"}
    change = {"phase": "Failed", "containerStatuses": [{**status, "state": {"terminated": ended}}]}
    plane.cluster.patch(POD, pod["metadata"]["name"], {"status": change}, namespace=space, subresource="status")


@pytest.mark.parametrize("kind", cases(KINDS, KINDS.keys() - {"trainjob", "rayjob"}))
def test_every_exit_code_starts_a_run_again_or_ends_it(plane: ControlPlane, kind: str) -> None:
    target, sets, again = KINDS[kind]
    space, made, codes = f"codes-{kind}", compose(load_target(target), kind), exit_codes()
    values = load_values(set_values=["nodes=2", *sets]).data
    machines = create_machines(plane.cluster, [node_pool(load_target(target).default_machine, 2 * len(codes))])
    plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}])
    for code in codes:
        plane.cluster.apply(objects(render(made, f"code-{code}", space, values)), namespace=space)
    count = {"rayjob": 4, "mpijob": 3, "volcano-job": 3}.get(kind, 2)
    before: dict[int, set[str]] = {}
    owners: dict[int, Any] = {}

    def strike(code: int) -> None:
        """Let the pod whose end is the run's fail; KubeRay's submitter is a Job that makes three of them."""
        found = pods_of(plane, space, f"code-{code}")
        # where a pod without GPUs starts the others, it is the one that ends so
        ends = [pod for pod in found.values() if not gpus(pod)] or list(found.values())[-1:]
        ends = [pod for pod in ends if pod["metadata"]["labels"].get("app.kubernetes.io/component") != "head"]
        owner = ends[0]["metadata"]["ownerReferences"][0]["uid"] if ends else ""
        if owners.setdefault(code, owner) == owner and ends:
            before.setdefault(code, set()).update(found)
            end(plane, space, ends[0], code)

    def became(code: int) -> str:
        (run,) = find_runs(plane.cluster, f"code-{code}", space)
        if kind == "rayjob":
            strike(code)
        if outcome(run) == "failed" and not restarts(run):
            return "ended"
        fresh = not before[code] & {*pods_of(plane, space, f"code-{code}")}
        return "again" if fresh and is_running(plane, space, f"code-{code}", count) else ""

    for code in codes:
        running = partial(is_running, plane, space, f"code-{code}", count)
        wait_for(running, what=f"that {kind} {code} runs", timeout=180)
    for code in codes:
        strike(code)
    wanted = {code: "again" if code in again else "ended" for code in codes}
    try:
        wait_for(lambda: {code: became(code) for code in codes} == wanted, what="the ends", timeout=180)
    finally:
        assert {code: became(code) for code in codes} == wanted
    plane.cluster.delete(NAMESPACE, space)
    delete_machines(plane.cluster, machines)


@pytest.mark.parametrize("kind", cases(["jobset", "trainjob"], {"jobset"}))
def test_a_deadline_ends_a_run_that_would_start_again(plane: ControlPlane, kind: str) -> None:
    target, sets, _ = KINDS[kind]
    space, made = f"deadline-{kind}", compose(load_target(target), kind)
    values = load_values(set_values=["nodes=2", "run.deadlineSeconds=5", *sets]).data
    machines = create_machines(plane.cluster, [node_pool(load_target(target).default_machine, 2)])
    plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}])
    plane.cluster.apply(objects(render(made, "late", space, values)), namespace=space)

    def ended() -> bool:
        return all(outcome(run) == "failed" and not restarts(run) for run in find_runs(plane.cluster, "late", space))

    wait_for(lambda: find_runs(plane.cluster, "late", space) and ended(), what="the end", timeout=60)
    plane.cluster.delete(NAMESPACE, space)
    delete_machines(plane.cluster, machines)
