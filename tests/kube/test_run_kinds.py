"""What a run is, whatever its kind: pods that work, its end, its restarts, also where an object says little."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from userlib import write

from chartgen.errors import ChartgenError
from chartgen.kube.run_kinds import kind_of, know_kinds, run_kind, run_kinds
from chartgen.kube.workloads import expected_pods, find_workers, outcome, why_failed

POD: dict[str, Any] = {"metadata": {}, "spec": {"containers": [{"name": "main", "image": "example.com/a:1"}]}}


def run(api_version: str, kind: str, spec: dict[str, Any], **status: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec, "status": status}


@pytest.mark.parametrize("message", [{"message": ""}, {"message": "BackoffLimitExceeded"}, {}])
def test_a_run_that_failed_without_a_word_has_failed(message: dict[str, str]) -> None:
    job = run("batch/v1", "Job", {"template": POD}, conditions=[{"type": "Failed", "status": "True", **message}])
    assert outcome(job) == "failed"
    assert why_failed(job).startswith("Job a has failed: ")


def test_restarts_are_counted_where_their_limit_is_not_known() -> None:
    tasks = [{"name": "worker", "template": POD, "replicas": 2}]
    job = run("batch.volcano.sh/v1alpha1", "Job", {"tasks": tasks}, state={"phase": "Failed"}, retryCount=3)
    assert kind_of(job).status.count_restarts(job) == 2
    assert (outcome(job), expected_pods(job)) == ("failed", 2)


@pytest.mark.parametrize(("names", "working"), [(["Master"], 0), (["Master", "Worker"], 1), (["Worker"], 0)])
def test_a_master_works_where_there_are_no_workers(names: list[str], working: int) -> None:
    replicas = {name: {"template": POD, "replicas": at + 1} for at, name in enumerate(names)}
    found = find_workers([run("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas})])
    assert found is not None
    assert found.count == working + 1


@pytest.mark.parametrize("kind", ["PyTorchJob", "MPIJob"])
def test_a_job_without_replicas_has_no_workers(kind: str) -> None:
    """A half-written object of a chart: lint reports what the API server refuses, and goes on."""
    field = {"PyTorchJob": "pytorchReplicaSpecs", "MPIJob": "mpiReplicaSpecs"}[kind]
    assert find_workers([run("kubeflow.org/v1", kind, {field: {}})]) is None


def test_a_mistake_in_a_folder_that_a_command_named_leaves_the_other_kinds(tmp_path: Path) -> None:
    write(tmp_path, {"workloads/broken/workload.yaml": "api: a/v1\nkind: B\nrun: {title: B}\n"})
    know_kinds([tmp_path])
    assert run_kind(run("batch/v1", "Job", {}))


def test_a_mistake_in_a_folder_of_the_environment_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"workloads/broken/workload.yaml": "api: a/v1\nkind: B\nrun: {title: B}\n"})
    monkeypatch.setenv("CHARTGEN_PATH", str(tmp_path))
    with pytest.raises(ChartgenError, match=r"broken/workload\.yaml"):
        run_kinds()
