"""Plans: what runs, read from the rendered objects of every kind of run."""

from __future__ import annotations

import json
from typing import Any

import manifests
import pytest
from mini_charts import CHART_YAML
from pairs import chart_of, layers

from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values, load_values
from chartgen.releases.plan import Plan, describe_plan, plan_release

pytestmark = pytest.mark.helm

VALUES: dict[str, Any] = {
    "launcher": "megatron-lm",
    "machineType": "box-8",
    "parallelism": {"tensor": 4, "pipeline": 2, "virtualPipeline": 1, "context": 1, "expert": 1},
    "batch": {"micro": 2, "global": "2/gpu"},
    "steps": 10,
    "storage": {"outputs": {"from": "pvc://results"}},
}


def plan(run: dict[str, Any], **values: Any) -> Plan:
    files = {
        "Chart.yaml": CHART_YAML,
        "values.yaml": json.dumps({**VALUES, **values}),
        "templates/run.yaml": json.dumps(run),
    }
    return plan_release(Chart("tiny", files), Values({}), "my-run", "ml")


def with_gpus(run: dict[str, Any], *pods: dict[str, Any]) -> dict[str, Any]:
    """A run whose programs know how many GPUs a machine has, as those of the charts do; a sidecar stands first."""
    for pod in pods:
        env = [{"name": "GPUS_PER_NODE", "value": "8"}, {"name": "RUN_DIRECTORY", "value": "/outputs/a/b"}]
        program = pod["spec"]["containers"][0]
        program["env"] += env
        pod["spec"]["containers"].insert(0, {"name": "daemon", "image": "registry.invalid/daemon:1"})
        pod["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": program["name"]}
    return run


JOBSET = manifests.jobset("run", 4, queue="team")
JOB = manifests.job("run", 4, queue="team")
PYTORCHJOB = manifests.pytorchjob("run", 4, queue="team")
MPIJOB = manifests.mpijob("run", 4, queue="team")
VOLCANO_JOB = manifests.volcano_job("run", 4, queue="team")
RUNTIME = manifests.training_runtime("run", 4)
TRAINJOB = {"apiVersion": "v1", "kind": "List", "items": [RUNTIME, manifests.trainjob("run", queue="team")]}


@pytest.mark.parametrize(
    ("run", "pod", "kind"),
    [
        (JOBSET, JOBSET["spec"]["replicatedJobs"][0]["template"]["spec"]["template"], "JobSet"),
        (JOB, JOB["spec"]["template"], "Job"),
        (PYTORCHJOB, PYTORCHJOB["spec"]["pytorchReplicaSpecs"]["Worker"]["template"], "PyTorchJob"),
        (MPIJOB, MPIJOB["spec"]["mpiReplicaSpecs"]["Worker"]["template"], "MPIJob"),
        (VOLCANO_JOB, VOLCANO_JOB["spec"]["tasks"][-1]["template"], "Volcano Job"),
        (
            TRAINJOB,
            RUNTIME["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"],
            "TrainJob",
        ),
    ],
    ids=["jobset", "job", "pytorchjob", "mpijob", "volcano-job", "trainjob"],
)
def test_a_run_of_every_kind_is_understood(run: dict[str, Any], pod: dict[str, Any], kind: str) -> None:
    found = plan(with_gpus(run, pod))
    assert (found.kind, found.run, found.queue) == (kind, "run", "team")
    assert (found.nodes, found.gpus, found.machine) == (4, 32, "box-8")
    assert found.image == "registry.invalid/train:1"
    assert found.parallelism["data"] == 4
    assert found.batch == {"micro": 2, "global": 64, "microBatches": 8}
    assert found.rendezvous.endswith(":29500")
    assert found.logs == "/outputs/a/b on pvc://results"
    lines = dict(describe_plan(found))
    assert lines["run"] == f"{kind} run"
    assert lines["machines"] == "4 x box-8 = 32 GPUs"
    assert lines["layout"] == "tensor 4 x pipeline 2 x data 4"
    assert lines["steps"] == "10"
    assert "program" not in lines


def test_a_program_for_data_has_no_layout() -> None:
    run = manifests.job("prepare", 3, gpus=0)
    pod = run["spec"]["template"]
    pod["metadata"]["labels"]["app.kubernetes.io/component"] = "data"
    del pod["spec"]["containers"][0]["env"]
    found = plan(run, launcher="pile-dataprep")
    assert (found.nodes, found.gpus, found.parallelism, found.batch, found.steps) == (3, 0, {}, {}, 0)
    assert dict(describe_plan(found)) == {
        "release": "my-run in namespace ml, chart tiny",
        "run": "Job prepare",
        "pods": "3 without GPUs",
        "program": "pile-dataprep",
        "image": "registry.invalid/train:1",
        "queue": "none",
    }


def test_a_program_that_measures_the_network_needs_no_layout_that_divides() -> None:
    run = manifests.job("measure", 1)
    pod = run["spec"]["template"]
    pod["metadata"]["labels"]["app.kubernetes.io/component"] = "test"
    found = plan(with_gpus(run, pod), launcher="nccl-test", parallelism={**VALUES["parallelism"], "pipeline": 16})
    lines = dict(describe_plan(found))
    assert (lines["machines"], lines["program"]) == ("1 x box-8 = 8 GPUs", "nccl-test")
    assert not {"layout", "batch", "steps"} & set(lines)


def test_a_chart_that_runs_nothing_is_told_so() -> None:
    with pytest.raises(ChartgenError, match="tiny contains no job"):
        plan({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (["checkpoint.enabled=true"], {"restarts": "until 3", "a hang ends": "after 20"}),
        (["run.hangMinutes=7", "run.maxRestarts=5"], {"restarts": "5", "a hang ends": "after 7"}),
        (["run.hangMinutes=0"], {"restarts": "none"}),
    ],
)
def test_what_values_leave_to_chartgen_is_in_the_plan(sets: list[str], expected: dict[str, str]) -> None:
    values = load_values((), set_values=("launcher=megatron-lm", "queue.name=a", "storage.outputs.from=pvc://r", *sets))
    lines = dict(describe_plan(plan_release(chart_of("gke-a3mega"), values, "my-run", "ml")))
    found = {label: lines[label] for label in lines if label in ("restarts", "a hang ends")}
    assert found.keys() == expected.keys()
    assert all(found[label].startswith(text) for label, text in expected.items())
    assert "checkpoints" in lines


def test_the_plan_of_a_published_model_has_its_estimate_and_the_measured_speed() -> None:
    lines = dict(
        describe_plan(plan_release(chart_of("oke-h100"), load_values(layers("oke-h100", "llama3-70b")), "a", "b"))
    )
    assert " s a step" in lines["estimate"]
    assert " tokens/s for each of 64 GPUs" in lines["published"]
