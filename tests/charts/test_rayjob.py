"""A RayJob: what KubeRay and Kueue count on, a head without GPUs, and a driver that Ray starts without arguments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from rendered import Objects, chart, one, rendered

from chartgen.composer.assembly import compose
from chartgen.composer.library import open_library
from chartgen.composer.target import load_target, with_launchers
from chartgen.data.api_schemas import kind_schema
from chartgen.errors import ChartgenError
from chartgen.helm.manifests import render
from chartgen.kube.run_kinds import kind_of, queue_of
from chartgen.kube.workloads import expected_pods, find_workers, outcome, why_failed

MODEL = "launchers.nemo-rl.model=/data/llama"
KEPT = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"]


def rayjob(*sets: str, name: str = "onprem-p8000") -> Objects:
    network = ("network.interface=infiniband",) if name == "onprem-p8000" else ()
    return rendered("nodes=2", "queue.name=lab", MODEL, *network, *sets, files=(), workload="rayjob", name=name)


def templates(found: Objects) -> dict[str, dict[str, Any]]:
    """The pod templates of the run, by their group."""
    spec = one("RayJob", found)["spec"]
    cluster = spec["rayClusterSpec"]
    (workers,) = cluster["workerGroupSpecs"]
    return {
        "head": cluster["headGroupSpec"]["template"],
        "workers": workers["template"],
        "submitter": spec["submitterPodTemplate"],
    }


def containers(found: Objects) -> dict[str, dict[str, Any]]:
    return {name: each["spec"]["containers"][0] for name, each in templates(found).items()}


@pytest.mark.parametrize("name", ["eks-p5", "onprem-p8000"])
def test_a_site_file_with_launchers_of_other_kinds(name: str) -> None:
    site = Path(__file__).parents[2] / f"values/site.{name}.example.yaml"
    sets = ("launcher=nemo-rl", "network.transportCheck=off", MODEL)
    assert one("RayJob", rendered(*sets, files=(site,), workload="rayjob", name=name))


def test_what_kuberay_and_kueue_count_on() -> None:
    found = rayjob("topology.mode=required", "run.maxRestarts=2", "run.deadlineSeconds=7200", "ray.version=2.55.1")
    run = one("RayJob", found)
    spec = run["spec"]
    assert run["apiVersion"] == "ray.io/v1"
    assert run["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == queue_of(run) == "lab"
    assert run["metadata"]["annotations"]["ray.io/overwrite-container-cmd"] == "true"
    assert (spec["submissionMode"], spec["shutdownAfterJobFinishes"]) == ("K8sJobMode", True)
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (2, 7200)
    assert {"suspend", "managedBy", "ttlSecondsAfterFinished"}.isdisjoint(spec), "`suspend` is Kueue's"
    assert spec["rayClusterSpec"]["rayVersion"] == "2.55.1"
    (workers,) = spec["rayClusterSpec"]["workerGroupSpecs"]
    assert {workers[key] for key in ("replicas", "minReplicas", "maxReplicas")} == {2}
    assert workers["rayStartParams"] == {"num-gpus": "8"}
    assert spec["rayClusterSpec"]["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0", "num-gpus": "0"}
    topology = "kueue.x-k8s.io/podset-required-topology"
    assert [name for name, each in templates(found).items() if topology in each["metadata"]["annotations"]] == [
        "workers"
    ], "the head's machine need not be a neighbour"
    labels = {each["metadata"]["labels"]["run"] for each in templates(found).values()}
    assert labels == {run["metadata"]["name"]}
    # 47 characters are KubeRay's limit, 41 those of a run's name
    assert len(run["metadata"]["name"]) <= 41


def test_it_fits_the_schema_of_kuberay() -> None:
    run = one("RayJob", rayjob("run.maxRestarts=2", "run.deadlineSeconds=7200", "ray.version=2.55.1"))
    schema, definitions = kind_schema("ray.io/v1/RayJob", "1.37")
    assert schema
    strict = Draft7Validator({**schema, "definitions": definitions})
    assert list(strict.iter_errors(run)) == []
    run["spec"]["backoffLimit"] = "2"
    assert list(strict.iter_errors(run)) != []


def test_only_workers_have_gpus_and_what_comes_with_them() -> None:
    found = rayjob("storage.data.from=pvc://data", "storage.outputs.from=pvc://results")
    pods, own = templates(found), containers(found)
    assert own["workers"]["resources"]["limits"] == {"nvidia.com/gpu": "8", "nvidia.com/hostdev": "8"}
    assert own["head"]["resources"] == {"requests": {"cpu": "8", "memory": "64Gi"}, "limits": {"memory": "64Gi"}}
    assert own["submitter"]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    added = {name: each["securityContext"]["capabilities"].get("add", []) for name, each in own.items()}
    assert added == {"head": KEPT, "workers": sorted([*KEPT, "IPC_LOCK"]), "submitter": []}
    mounts = {name: {each["mountPath"] for each in own[name]["volumeMounts"]} for name in ("head", "workers")}
    assert mounts["head"] == {"/etc/chartgen", "/data", "/outputs", "/scratch"}
    assert mounts["workers"] - mounts["head"] == {"/dev/shm"}
    assert own["head"]["env"] == own["workers"]["env"], "the driver's variables reach every process"
    assert {"MASTER_ADDR", "NODE_RANK"}.isdisjoint(each["name"] for each in own["workers"]["env"])
    # Kueue places what the flavor tolerates, and all three run on the machines of the run
    assert len({str(each["spec"]["tolerations"]) for each in pods.values()}) == 1
    assert "containers" in pods["submitter"]["spec"]
    assert "command" not in own["submitter"], "the command is KubeRay's"


def test_a_compute_domain_is_claimed_by_workers_only() -> None:
    found = rayjob(name="gke-a4x")
    claims = {name: each["spec"].get("resourceClaims", []) for name, each in templates(found).items()}
    name = one("RayJob", found)["metadata"]["name"]
    assert {"name": "compute-domain-channel", "resourceClaimTemplateName": f"{name}-channel"} in claims["workers"]
    assert claims["head"] == claims["submitter"] == []
    assert one("ComputeDomain", found)["spec"]["numNodes"] == 2


def test_gke_a3mega_keeps_its_daemon_off_the_head() -> None:
    found = templates(rayjob(name="gke-a3mega"))
    names = {name: [each["name"] for each in pod["spec"].get("initContainers", [])] for name, pod in found.items()}
    assert names == {"head": [], "workers": ["nccl-plugin-installer", "tcpxo-daemon"], "submitter": []}
    interfaces = "networking.gke.io/interfaces"
    assert [name for name, pod in found.items() if interfaces in pod["metadata"]["annotations"]] == ["workers"]
    volumes = {each["name"] for each in found["head"]["spec"]["volumes"]}
    assert volumes == {"start", "data", "outputs", "scratch"}


def test_the_row_of_its_kind() -> None:
    found = rayjob("run.maxRestarts=2")
    run = one("RayJob", found)
    workers = find_workers(found)
    assert workers
    assert (workers.kind, workers.count, workers.queue, workers.trains) == ("RayJob", 2, "lab", True)
    assert expected_pods(run) == 4
    kind = kind_of(run)
    assert [(each.name, each.count, each.works) for each in kind.roles(run["spec"])] == [
        ("head", 1, False),
        ("workload", 2, True),
        ("submitter", 1, False),
    ]
    assert kind.status.most_restarts(run) == 2
    assert kind.roles({"clusterSelector": {"ray.io/cluster": "of-others"}}) == []


@pytest.mark.parametrize(
    ("status", "ended", "why", "restarts"),
    [
        ({}, "", "", 0),
        ({"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "failed": 1}, "", "", 1),
        ({"jobDeploymentStatus": "Retrying", "jobStatus": "FAILED", "failed": 1}, "", "", 1),
        ({"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED", "succeeded": 1}, "finished", "", 0),
        ({"jobDeploymentStatus": "Complete", "jobStatus": "STOPPED"}, "failed", "STOPPED", 0),
        ({"jobDeploymentStatus": "Failed", "reason": "AppFailed", "failed": 3}, "failed", "AppFailed", 2),
        ({"jobDeploymentStatus": "ValidationFailed", "reason": "ValidationFailed"}, "failed", "ValidationFailed", 0),
    ],
)
def test_how_it_ends(status: dict[str, Any], ended: str, why: str, restarts: int) -> None:
    run = {**one("RayJob", rayjob()), "status": status}
    assert outcome(run) == ended
    assert why in why_failed(run)
    assert kind_of(run).status.count_restarts(run) == restarts


def test_the_head_hands_program_and_arguments_to_the_driver(tmp_path: Path) -> None:
    found = rayjob("launchers.nemo-rl.args={grpo.seed=7,a b 'c'}")
    scripts, head = one("ConfigMap", found)["data"], containers(found)["head"]
    assert one("RayJob", found)["spec"]["entrypoint"] == "bash /etc/chartgen/driver.sh"
    program = tmp_path / "examples" / "run_grpo.py"
    program.parent.mkdir()
    program.write_text("import os, sys\nprint(os.getcwd(), os.environ.get('LD_LIBRARY_PATH'), sys.argv[1:])\n")
    folder = {name: str(tmp_path / name.lower()) for name in ("RUN_DIRECTORY", "CHECKPOINT_DIRECTORY")}
    env = {**os.environ, **folder, "LD_LIBRARY_PATH": "/opt/image", "KUBERAY_GEN_RAY_START_CMD": "echo ray start"}

    def said(name: str, *args: str) -> str:
        (tmp_path / name).write_text(scripts[name].replace("/run/chartgen", str(tmp_path / "run")))
        argv = ["bash", str(tmp_path / name), *args]
        return subprocess.run(argv, env=env, capture_output=True, text=True, check=True).stdout

    assert said("head.sh", str(program), *head["args"][1:]) == "ray start\n"
    expected = ["--config", "/etc/chartgen/nemo-rl.yaml", "grpo.seed=7", "a b 'c'"]
    assert said("driver.sh") == f"{tmp_path} None {expected}\n", "the machines' own libraries count there"


def test_a_machine_becomes_a_node_of_ray_after_its_network_is_ready(tmp_path: Path) -> None:
    script = one("ConfigMap", rayjob())["data"]["start.sh"]
    assert script.index("uverbs") < script.index("KUBERAY_GEN_RAY_START_CMD")
    for name in ("head.sh", "driver.sh"):
        assert "uverbs" not in one("ConfigMap", rayjob())["data"][name], "the head has no adapter"
    (tmp_path / "start.sh").write_text(script[: script.index("# InfiniBand")] + script[script.index("# KubeRay") :])
    env = {**os.environ, "RUN_DIRECTORY": str(tmp_path / "a"), "CHECKPOINT_DIRECTORY": str(tmp_path / "b")}
    argv = ["bash", str(tmp_path / "start.sh")]
    started = subprocess.run(
        argv, env={**env, "KUBERAY_GEN_RAY_START_CMD": "exit 7"}, capture_output=True, text=True, check=False
    )
    assert started.returncode == 7
    lost = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert (lost.returncode, "KUBERAY_GEN_RAY_START_CMD" in lost.stderr) == (127, True) or lost.returncode == 1


def test_programs_without_gpus_are_jobs() -> None:
    found = rayjob("launcher=download", "data.source=https://example.com/a.txt", "storage.data.from=pvc://data")
    assert {each["kind"] for each in found} == {"ConfigMap", "Job", "NetworkPolicy"}


@pytest.mark.parametrize(
    ("sets", "key"),
    [
        (("run.ttlSecondsAfterFinished=60",), "run.ttl"),
        (("run.hangMinutes=5",), "run.hangMinutes"),
        (("profile.enabled=true",), "profile.enabled"),
        (("ray.headResources.nvidia\\.com/gpu=1",), "ray.headResources"),
        (("ray.version=latest",), "ray.version"),
    ],
)
def test_refusals(sets: tuple[str, ...], key: str) -> None:
    with pytest.raises(ChartgenError, match=key):
        rayjob(*sets)


def test_kuberay_wants_a_name_that_begins_with_a_letter() -> None:
    with pytest.raises(ChartgenError, match="KubeRay wants a name"):
        render(chart("rayjob", "onprem-p8000"), "1-run", "ml", {"nodes": 1})


def test_launchers_are_for_their_kinds() -> None:
    """Programs that start through Ray are in charts of RayJobs alone, and no others that train are."""
    library = open_library()
    for name in library.names("workload"):
        if name in ("volcano-job", "mpijob"):
            continue
        made = compose(load_target("onprem-p8000"), name)
        offered = {path.removeprefix("templates/launchers/_") for path in made.files if "templates/launchers/_" in path}
        assert ("nemo-rl.tpl" in offered, "megatron-lm.tpl" in offered) == (name == "rayjob", name != "rayjob")


def test_a_chart_of_chosen_launchers_and_one_without_any_for_the_kind() -> None:
    target = load_target("onprem-p8000")
    made = compose(with_launchers(target, ["megatron-lm", "nemo-rl", "download"]), "rayjob")
    assert 'enum": ["nemo-rl", "download"]' in made.files["values.schema.json"]
    with pytest.raises(ChartgenError, match=r"onprem-p8000\.yaml:.*rayjob"):
        compose(with_launchers(target, ["megatron-lm", "download"]), "rayjob")
