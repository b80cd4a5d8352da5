"""A TrainJob: what Trainer, Helm and Kueue count on, and a name that covers its TrainingRuntime."""

from __future__ import annotations

from typing import Any

import pytest
from rendered import Objects, chart, one, rendered

from chartgen.errors import ChartgenError
from chartgen.helm.manifests import render


def trainjob(*sets: str) -> Objects:
    flags = ("nodes=2", "queue.name=lab", "network.interface=tcp", *sets)
    return rendered(*flags, files=(), workload="trainjob", name="onprem-p8000")


def jobset_of(found: Objects) -> dict[str, Any]:
    return dict(one("TrainingRuntime", found)["spec"]["template"]["spec"])


def test_what_trainer_helm_and_kueue_count_on() -> None:
    found = trainjob("topology.mode=required", "run.maxRestarts=2")
    run, runtime = one("TrainJob", found), one("TrainingRuntime", found)
    name = run["metadata"]["name"]
    assert run["apiVersion"] == runtime["apiVersion"] == "trainer.kubeflow.org/v1alpha1"
    assert run["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "lab"
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": name}
    assert run["spec"] == {"runtimeRef": reference}, "`suspend` and `runtimePatches` are Kueue's"
    assert runtime["metadata"]["name"] == name
    assert found.index(runtime) < found.index(run), "Trainer refuses a TrainJob without its runtime"
    assert runtime["metadata"]["annotations"] == {"argocd.argoproj.io/sync-wave": "-1"}
    assert runtime["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/instance"] == "my-run"
    (job,) = jobset_of(found)["replicatedJobs"]
    assert jobset_of(found)["failurePolicy"]["maxRestarts"] == 2
    assert job["template"]["metadata"]["labels"] == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    assert runtime["spec"]["mlPolicy"] == {"numNodes": job["template"]["spec"]["completions"]} == {"numNodes": 2}
    pod = job["template"]["spec"]["template"]
    assert "kueue.x-k8s.io/podset-required-topology" in pod["metadata"]["annotations"]
    (program,) = pod["spec"]["containers"]
    assert (job["name"], program["name"]) == ("node", "node"), "the names that Trainer's own tools look for"
    env = {each["name"]: each for each in program["env"]}
    assert env["MASTER_ADDR"]["value"] == f"{name}-node-0-0.{name}"
    assert "job-completion-index" in env["NODE_RANK"]["valueFrom"]["fieldRef"]["fieldPath"]


def test_helm_creates_the_runtime_before_the_run() -> None:
    """Of kinds that it does not know, Helm creates those first whose names come first."""
    text = render(chart("trainjob", "onprem-p8000"), "my-run", "ml", {"nodes": 1})
    kinds = [line.partition(": ")[2] for line in text.splitlines() if line.startswith("kind: ")]
    assert kinds == ["NetworkPolicy", "ConfigMap", "List", "TrainJob"] == [*kinds[:2], *sorted(kinds[2:])]


def test_a_change_of_the_runtime_alone_is_a_new_run() -> None:
    names = {
        one(kind, trainjob(*sets))["metadata"]["name"]
        for kind in ("TrainJob", "TrainingRuntime")
        for sets in ((), ("tolerations[0].operator=Exists",))
    }
    assert len(names) == 2


def test_programs_without_gpus_are_jobs() -> None:
    found = trainjob("launcher=download", "data.source=https://example.com/a.txt", "storage.data.from=pvc://data")
    assert {each["kind"] for each in found} == {"ConfigMap", "Job", "NetworkPolicy"}


def test_refusals() -> None:
    with pytest.raises(ChartgenError, match="Kubeflow Trainer wants a name"):
        render(chart("trainjob", "onprem-p8000"), "1-run", "ml", {"nodes": 1})
