"""A recipe of others becomes preset, overlay and site, or says what it lacks; what cannot be carried over is told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from userlib import chartgen, write

from chartgen.helm.values import merge
from chartgen.helm.yaml import load, load_file, require_map, values_text
from chartgen.linter.handwritten import HANDWRITTEN, lint_values

FOLDER = Path(__file__).parents[1] / "data" / "recipes"
VALUES = FOLDER / "values.yaml"
HEAD = "workload: {gpus: 16}\nnetwork: {hostNetwork: true}\nvolumes: {}\n"
GONE = object()
Edits = dict[str, Any]


def put(data: Any, path: str, value: object) -> None:
    """Set or remove what a path such as a.b.0 names."""
    *keys, last = path.split(".")
    for key in keys:
        data = data[int(key)] if isinstance(data, list) else data.setdefault(key, {})
    if value is GONE:
        del data[last]
    elif isinstance(data, list):
        data.insert(int(last), value)
    else:
        data[last] = value


def edited(name: str, edits: Edits) -> str:
    data: Any = load_file(FOLDER / "a3mega" / name).data
    for path, value in edits.items():
        put(data, path, value)
    return json.dumps(data)


class Tried:
    """What `chartgen convert` made of a recipe."""

    def __init__(
        self,
        tmp_path: Path,
        values: Edits | None = None,
        config: Edits | None = None,
        *more: str,
        family: str = "a3mega",
    ) -> None:
        made = tmp_path / "made"
        files = {"values.yaml": edited("values.yaml", values or {}), "nemo.yaml": edited("nemo.yaml", config or {})}
        folder = tmp_path / "training" / family / "model"
        write(folder, files)
        arguments: list[str | Path] = [
            "convert",
            folder / "values.yaml",
            "--from",
            "gpu-recipes",
            "--config",
            folder / "nemo.yaml",
        ]
        ran = chartgen(*arguments, "--name", "it", "-d", made, *more)
        self.code, self.said = ran.exit_code, ran.stderr
        self.files = sorted(str(path.relative_to(made)) for path in made.rglob("*.yaml"))
        self.data: dict[str, Any] = {}
        for path in made.rglob("*.yaml"):
            self.data = merge(self.data, require_map(load_file(path), "values"))

    def at(self, path: str) -> Any:
        """The converted value at a path; None where there is none."""
        found: Any = self.data
        for key in path.split("/"):
            found = found.get(key) if isinstance(found, dict) else None
        return found


def test_a_recipe_converts_although_its_queue_and_bucket_are_the_users(tmp_path: Path) -> None:
    tried = Tried(tmp_path)
    assert tried.code == 0, tried.said
    assert tried.files == ["gke-a3mega/it.yaml", "it.yaml", "site.gke-a3mega.it.yaml"]
    assert [key for key in ("queue", "volumes.gcsMounts[0]") if f": {key} " not in tried.said] == []
    assert "error" not in tried.said


def test_model_and_batch_become_portable(tmp_path: Path) -> None:
    data = Tried(tmp_path).data
    assert data["model"] == {
        "layers": 24,
        "hiddenSize": 4096,
        "ffnHiddenSize": 16384,
        "attentionHeads": 32,
        "queryGroups": 32,
        "initStandardDeviation": 0.01,
        "tiedEmbeddings": True,
        "family": "gpt",
        "name": "gpt3-5b",
        "vocabularySize": 50257,
    }
    assert data["parallelism"] == {"tensor": 2, "pipeline": 1, "distributedOptimizer": True}
    assert data["batch"] == {"micro": 2, "global": 320}
    assert (data["precision"], data["steps"], data["sequenceLength"]) == ("bf16", 100, 2048)
    assert data["optimizer"] == {
        "learningRate": 0.00016,
        "minLearningRate": 1.6e-05,
        "warmupSteps": 115,
        "decay": "cosine",
        "weightDecay": 0.1,
        "clipGradient": 1.0,
    }
    assert data["launchers"]["nemo-1"]["config"]["trainer"] == {"max_time": "1:00:00:00"}


def test_machines_network_and_cluster(tmp_path: Path) -> None:
    data = Tried(tmp_path).data
    assert data["nodes"] == 2
    assert data["network"] == {
        "pluginVersion": "v1.0.3",
        "daemonVersion": "v1.0.9",
        "repository": "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo",
        "hostNetwork": True,
    }
    assert data["env"] == {"NCCL_DEBUG": "VERSION", "NVTE_FWD_LAYERNORM_SM_MARGIN": "8"}
    assert data["topology"] == {"mode": "preferred", "level": "kubernetes.io/hostname"}
    assert data["storage"] == {
        "data": {"from": "gs://my-artifacts", "mountOptions": "implicit-dirs"},
        "scratch": {"from": "disk://"},
    }
    assert data["tokenizer"] == {"kind": "gpt2", "path": "/data/tokenizers/gpt2"}


CONFIG = "launchers/nemo-1/config"
PILE = {
    "exp_manager.create_checkpoint_callback": True,
    "exp_manager.checkpoint_callback_params.every_n_train_steps": 25,
}
# Edits of values and configuration -> where what is carried over stands, and what stands there.
CARRIED: dict[str, tuple[Edits, Edits, dict[str, Any]]] = {
    "optimizer of Megatron Core": (
        {},
        {"model.optim.name": "mcore_distributed_optim"},
        {"launchers/nemo-1/distributedOptimizer": "mcore_distributed_optim", "parallelism/distributedOptimizer": True},
    ),
    "optimizer that shares nothing": (
        {},
        {"model.optim.name": "fused_adam"},
        {"parallelism/distributedOptimizer": False},
    ),
    "split": ({}, {"model.data.splits_string": "98,1,1"}, {"data/split": "98,1,1"}),
    "positions": (
        {},
        {"model.max_position_embeddings": 32768},
        {f"{CONFIG}/model/max_position_embeddings": 32768},
    ),
    "saving beside training": (
        {},
        {**PILE, "exp_manager.checkpoint_callback_params.async_save": True},
        {f"{CONFIG}/exp_manager/checkpoint_callback_params/async_save": True, "checkpoint/interval": 25},
    ),
    "saves, does not resume": ({}, PILE, {"checkpoint/enabled": True, f"{CONFIG}/exp_manager/resume_if_exists": False}),
    "data sets": (
        {"volumes.pvcMounts": [{"claimName": "pile", "mountPath": "/pile"}]},
        {
            "model.data.data_impl": "mmap",
            "model.data.data_prefix": [0.3, "/pile/a_text_document", 0.7, "/pile/b_text_document"],
        },
        {
            "data/prefixes": [
                {"path": "/data/a_text_document", "weight": 0.3},
                {"path": "/data/b_text_document", "weight": 0.7},
            ],
            "storage/data/from": "pvc://pile",
            "tokenizer/path": "/artifacts/tokenizers/gpt2",
            "extraVolumeMounts": [{"name": "recipe-artifacts", "mountPath": "/artifacts"}],
        },
    ),
    "data sets that are copied first": (
        {"gcsDownload": {"source": "gs://corpus/tokens/", "target": "/ssd/.cache/"}},
        {"model.data.data_impl": "mmap", "model.data.data_prefix": [1.0, "/ssd/.cache/a_text_document"]},
        {
            "data/prefixes": [{"path": "/data/a_text_document", "weight": 1.0}],
            "data/stage": True,
            "storage/data/from": "gs://corpus/tokens",
        },
    ),
    "checkpoints apart from logs": (
        {
            "volumes.pvcMounts": [{"claimName": "kept", "mountPath": "/checkpoints"}],
            "workload.envs.0": {"name": "CHECKPOINTS_ROOT_DIR", "value": "/checkpoints"},
        },
        PILE,
        {"storage/outputs/from": "pvc://kept"},
    ),
    "overrides": (
        {"workload.arguments": ["trainer.max_steps=7", "++model.fp8=true", "+model.seed=5"]},
        {},
        {"steps": 7, "precision": "fp8", f"{CONFIG}/model/seed": 5},
    ),
    "rotary base of the program": (
        {},
        {"model.normalization": "rmsnorm"},
        {"model/rotaryBase": 10000, "model/family": "llama", f"{CONFIG}/model/activation": "gelu"},
    ),
    "no cut of gradients": ({}, {"trainer.gradient_clip_val": None}, {"optimizer/clipGradient": 0}),
    "validation that is off": (
        {},
        {"trainer.val_check_interval": None, "trainer.limit_val_batches": 0.0},
        {"evaluation/batches": 0},
    ),
    "profile": (
        {},
        {"model.nsys_profile": {"enabled": True, "start_step": 5, "end_step": 7, "ranks": [0]}},
        {"profile/enabled": True, "profile/startStep": 5, "profile/endStep": 7},
    ),
    "project of a tracker": (
        {},
        {"exp_manager.create_wandb_logger": True, "exp_manager.wandb_logger_kwargs": {"project": "gpt", "entity": "a"}},
        {"wandb/project": "gpt", "wandb/entity": "a", f"{CONFIG}/exp_manager/create_wandb_logger": None},
    ),
    "slices of a topology": (
        {
            "tasSettings.topologyRequest": {
                "kueue.x-k8s.io/podset-required-topology": "cloud.google.com/gce-topology-block",
                "kueue.x-k8s.io/podset-slice-required-topology": "cloud.google.com/gce-topology-subblock",
                "kueue.x-k8s.io/podset-slice-size": 2,
            }
        },
        {},
        {
            "topology/mode": "required",
            "topology/level": "cloud.google.com/gce-topology-block",
            "topology/sliceLevel": "cloud.google.com/gce-topology-subblock",
            "topology/sliceSize": 2,
        },
    ),
    "flex start": (
        {"queue": "dws", "dwsSettings.maxRunDurationSeconds": 3600},
        {},
        {"queue/name": "dws", "queue/flexStart": True, "run/deadlineSeconds": 3600},
    ),
    "secret, account and restarts": (
        {
            "workload.envs.0": {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "it"}}},
            "workload.serviceAccountName": "trainer",
            "workload.max_workload_restarts": 3,
        },
        {},
        {"secretEnv/KEY": {"secretName": "keys", "key": "it"}, "serviceAccount": "trainer", "run/maxRestarts": 3},
    ),
    "variable that stands twice": (
        {"workload.envs.0": {"name": "NCCL_DEBUG", "value": "INFO"}},
        {},
        {"env/NCCL_DEBUG": "INFO"},
    ),
}


@pytest.mark.parametrize("case", CARRIED)
def test_what_a_recipe_says_is_carried_over(tmp_path: Path, case: str) -> None:
    values, config, expected = CARRIED[case]
    tried = Tried(tmp_path, values, config)
    assert tried.code == 0, tried.said
    assert {path: tried.at(path) for path in expected} == expected


# Edits of values and configuration -> the key that is named as left.
LEFT: dict[str, tuple[Edits, Edits, str]] = {
    "plugin of other machines": ({"network.hostIPC": True}, {}, "network.hostIPC"),
    "sidecar": ({"workload.gcsSidecarImage": "fuse:1"}, {}, "workload.gcsSidecarImage"),
    "script": ({"workload.runScript": "train.sh"}, {}, "workload.runScript"),
    "key that no chart reads": ({"workload.arguments[]": ["a=b"]}, {}, "workload.arguments[][0]"),
    "key of its own": ({"targetNodepools": ["a"]}, {}, "targetNodepools[0]"),
    "results": ({"workload.envs.0": {"name": "ARTIFACT_DIR", "value": "/x"}}, {}, "workload.envs[0]"),
    "no value": ({"workload.envs.0": {"name": "MORE", "value": None}}, {}, "workload.envs[0]"),
    "mount of nothing": (
        {"volumes.gcsMounts.2": {"bucketName": "b", "mountPath": "/more"}},
        {},
        "volumes.gcsMounts[2]",
    ),
    "mount without a name": ({"volumes.gcsMounts.2": {"mountPath": "/more"}}, {}, "volumes.gcsMounts[2]"),
    "index of data": ({}, {"model.data.index_mapping_dir": "/job-logs/index"}, "model.data.index_mapping_dir"),
    "name of a tracker": (
        {},
        {"exp_manager.create_wandb_logger": True, "exp_manager.wandb_logger_kwargs": {"name": "a"}},
        "exp_manager.wandb_logger_kwargs.name",
    ),
    "unknown option": ({}, {"model.not_an_option": 1}, "model.not_an_option"),
    "topology": ({"tasSettings.topologyRequest": {"other": "x"}}, {}, "tasSettings.topologyRequest.other"),
}


@pytest.mark.parametrize("case", LEFT)
def test_what_is_not_carried_over_is_listed(tmp_path: Path, case: str) -> None:
    values, config, key = LEFT[case]
    tried = Tried(tmp_path, values, config)
    assert tried.code == 0, tried.said
    assert f": {key} " in tried.said


@pytest.mark.threat(12)
def test_secrets_are_left_and_not_shown(tmp_path: Path) -> None:
    token = "hf_abcdefghijklmnopqrstuvwxyz0123456789"  # noqa: S105
    values = {"workload.envs.0": {"name": "HF_TOKEN", "value": token}, "workload.hfToken": token}
    tried = Tried(tmp_path, values)
    assert "workload.envs[0] " in tried.said
    assert "workload.hfToken " in tried.said
    assert token not in tried.said + json.dumps(tried.data)


# Edits of values and configuration, more arguments -> the key that is named as missing.
MISSING: dict[str, tuple[Edits, Edits, str]] = {
    "image": ({"workload.image": None}, {}, "workload.image"),
    "program without a launcher": ({"workload.envs.4.value": "/workload/configs/x.py"}, {}, "workload"),
    "program that nobody names": ({"workload.envs": []}, {}, "workload"),
    "machines that are no whole number": ({"workload.gpus": 36}, {}, "workload.gpus"),
    "GPUs of a machine": ({}, {"trainer.devices": 4}, "trainer.devices"),
    "override": ({"workload.arguments": ["--fast"]}, {}, "workload.arguments[0]"),
    "tokenizer's place": ({"workload.envs.3.value": "/elsewhere"}, {}, "volumes"),
    "tokenizer": ({}, {"model.tokenizer": {"library": "tabular"}}, "model.tokenizer"),
    "vocabulary's file": ({}, {"model.tokenizer.vocab_file": "other.json"}, "model.tokenizer.vocab_file"),
    "optimizer": ({}, {"model.optim.name": "adafactor"}, "model.optim.name"),
    "schedule": ({}, {"model.optim.sched.name": "WarmupHold"}, "model.optim.sched.name"),
    "precision": ({}, {"trainer.precision": "64"}, "trainer.precision"),
    "steps": ({}, {"trainer.max_steps": -1}, "trainer.max_steps"),
    "share of validation": ({}, {"trainer.limit_val_batches": 0.5}, "trainer.limit_val_batches"),
    "when it saves": (
        {},
        {"exp_manager.create_checkpoint_callback": True},
        "exp_manager.checkpoint_callback_params.every_n_train_steps",
    ),
    "data sets": ({}, {"model.data.data_impl": "mmap"}, "model.data.data_prefix"),
    "data sets for each split": ({}, {"model.data.data_prefix": {"train": ["/artifacts/a"]}}, "model.data.data_prefix"),
    "data set's place": (
        {},
        {"model.data.data_impl": "mmap", "model.data.data_prefix": ["/pile/a"]},
        "model.data.data_prefix",
    ),
    "kind of data": ({}, {"model.data.data_impl": "retmmap"}, "model.data.data_impl"),
    "reference": ({}, {"model.num_layers": "${oc.env:LAYERS}"}, "model.num_layers"),
    "further files": ({}, {"defaults": ["_self_", {"model": "gpt"}]}, "defaults"),
    "initial weights": ({}, {"restore_from_path": "/weights/a.nemo"}, "restore_from_path"),
    **{
        path: ({}, {path: GONE}, path)
        for path in (
            *(
                "trainer.precision",
                "trainer.max_steps",
                "model.num_layers",
                "model.hidden_size",
                "model.ffn_hidden_size",
            ),
            *(
                "model.num_attention_heads",
                "model.micro_batch_size",
                "model.global_batch_size",
                "model.encoder_seq_length",
            ),
            *("model.tensor_model_parallel_size", "model.optim.lr", "model.optim.betas", "model.optim.sched.min_lr"),
            *("model.data.data_impl", "model.data.splits_string"),
        )
    },
}


@pytest.mark.parametrize("case", MISSING)
def test_what_nobody_can_read_stops_the_conversion(tmp_path: Path, case: str) -> None:
    values, config, key = MISSING[case]
    tried = Tried(tmp_path, values, config)
    assert (tried.code, tried.files) == (1, [])
    named = [line.split(": ", 2)[2].split(" ")[0] for line in tried.said.splitlines() if line.startswith("error")]
    assert key in named


def test_all_that_is_missing_is_told_at_once(tmp_path: Path) -> None:
    write(tmp_path, {"values.yaml": HEAD.replace("16", "16, arguments: []")})
    ran = chartgen("convert", tmp_path / "values.yaml", "--from", "gpu-recipes", "-d", tmp_path / "made")
    assert ran.exit_code == 1
    assert "--launcher" in ran.stderr
    assert "--machine" in ran.stderr
    assert not (tmp_path / "made").exists()


def test_a_model_that_is_not_given_is_asked_for(tmp_path: Path) -> None:
    values = FOLDER / "a3mega" / "values.yaml"
    ran = chartgen("convert", values, "--from", "gpu-recipes", "-d", tmp_path)
    assert ran.exit_code == 1
    assert "--config" in ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "program"),
    [
        (
            "torchrun --nnodes=2 \\\n  ${NEMO} \nx=1\npython scripts/performance/run_script.py --gpu h100",
            "run_script.py",
        ),
        ("mpirun -np 2 /opt/nccl-tests/build/all_reduce_perf -b 8", "all_reduce_perf"),
        ("echo python is nice", ""),
    ],
)
def test_a_program_in_a_script_is_named(tmp_path: Path, script: str, program: str) -> None:
    write(tmp_path, {"launcher.sh": script})
    values: Edits = {"workload.envs": []}
    tried = Tried(tmp_path, values, {}, "--launcher", str(tmp_path / "launcher.sh"))
    assert (tried.code, tried.files) == (1, [])
    assert program in tried.said


TCPXO = {"network.daemonVersion": GONE, "network.pluginVersion": GONE}
GIB = "us-docker.pkg.dev/gce-ai-infra/gpudirect-gib/nccl-plugin-gib"
# Edits, the recipe's folder, arguments -> what is named: the recipe has 8 GPUs a machine.
MACHINES: dict[str, tuple[Edits, str, tuple[str, ...], tuple[str, ...]]] = {
    "folder": (TCPXO, "a4x-max", (), ("the recipe's machines have 4",)),
    "plugin alone": (
        {**TCPXO, "network.gibVersion": f"{GIB}:v1"},
        "x",
        (),
        ("a3-ultragpu-8g", "a4-highgpu-8g", "--machine"),
    ),
    "processor": ({**TCPXO, "network.gibVersion": f"{GIB}-arm64:v1"}, "a4x-max", (), ("the recipe's machines have 4",)),
    "label": (
        {**TCPXO, "nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-gb200"}},
        "x",
        (),
        ("the recipe's machines have 4",),
    ),
    "contradiction": ({}, "a4", (), ("a3-megagpu-8g", "a4-highgpu-8g", "--machine")),
    "another target": ({}, "a3mega", ("--target", "eks-p5"), ("a3-megagpu-8g", "eks-p5")),
    "another machine": ({}, "a3mega", ("--machine", "a4-highgpu-8g"), ("a3-megagpu-8g", "a4-highgpu-8g")),
}


@pytest.mark.parametrize("case", MACHINES)
def test_a_machine_that_does_not_fit_is_named(tmp_path: Path, case: str) -> None:
    values, family, arguments, words = MACHINES[case]
    tried = Tried(tmp_path, values, {}, *arguments, family=family)
    assert (tried.code, tried.files) == (1, [])
    assert [word for word in words if word not in tried.said] == [], tried.said


@pytest.mark.parametrize(
    ("edits", "family", "target"),
    [
        ({"network.gibVersion": f"{GIB}:v1.1.0"}, "a4", "gke-a4"),
        ({"workload.image": "nemo24.07-gib1.0.3-A3U"}, "x", "gke-a3ultra"),
    ],
)
def test_a_recipe_of_gib_goes_to_the_target_of_its_machine(
    tmp_path: Path, edits: Edits, family: str, target: str
) -> None:
    tried = Tried(tmp_path, {**TCPXO, "network.hostNetwork": GONE, **edits}, {}, family=family)
    assert f"{target}/it.yaml" in tried.files
    assert "network" not in tried.data


OURS = """\
description: A4X Max as a team has it
platform: gke
workload: jobset
machines:
  a4x-maxgpu-4g-metal:
    gpus: 8
    gpu: gb300-288gb
    capacity: {nvidia.com/gpu: "8", cpu: "200", memory: 2Ti}
fragments: [nvidia-gpu, shared-memory, storage, storage-gcs, storage-disk, storage-memory, kueue]
launchers: [nemo-1]
sources: [the test]
"""


def test_a_target_of_ones_own_takes_recipes_of_its_machine(tmp_path: Path) -> None:
    write(tmp_path / "ours", {"targets/team-max.yaml": OURS})
    values: Edits = {
        **TCPXO,
        "network.hostNetwork": GONE,
        "network.gibVersion": f"{GIB}-arm64:v1.1.0",
        "network.ncclBuildType": 221,
        "workload.image": "nvcr.io/nvidia/nemo:25.07",
    }
    ours = ("--path", str(tmp_path / "ours"))
    undecided = Tried(tmp_path, values, {}, *ours, family="a4x-max")
    assert (undecided.code, undecided.files) == (1, [])
    assert "--target gke-a4x or team-max" in undecided.said
    tried = Tried(tmp_path, values, {}, *ours, "--target", "team-max", family="a4x-max")
    assert tried.code == 0, tried.said
    assert "team-max/it.yaml" in tried.files
    assert [key for key in ("network.gibVersion", "network.ncclBuildType") if f": {key} " not in tried.said] == []
    assert "network" not in tried.data


def test_files_that_are_there_are_kept(tmp_path: Path) -> None:
    assert Tried(tmp_path).code == 0
    again = Tried(tmp_path)
    assert again.code == 1
    assert "--force" in again.said
    assert Tried(tmp_path, {}, {}, "--force").code == 0


def test_flags_of_the_readme_count_as_for_helm(tmp_path: Path) -> None:
    sets = ("workload.image=nvcr.io/nvidia/nemo:24.09", "queue=a3", "volumes.gcsMounts[0].bucketName=logs")
    tried = Tried(tmp_path, {"workload.image": None}, {}, *(word for text in sets for word in ("--set", text)))
    assert tried.code == 0, tried.said
    assert tried.at("launchers/nemo-1/image") == "nvcr.io/nvidia/nemo:24.09"
    assert tried.at("queue/name") == "a3"
    assert tried.at("storage/outputs/from") == "gs://logs"


@pytest.mark.parametrize("text", ["a: 1\n", "workload: 3\n", "workload: {gpus: many}\n", "workload: {gpus: 0}\n"])
def test_values_of_something_else_are_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path, {"values.yaml": text})
    ran = chartgen("convert", tmp_path / "values.yaml", "--from", "gpu-recipes", "-d", tmp_path / "made")
    assert ran.exit_code == 1
    assert ": workload.gpus " in ran.stderr


def test_written_yaml_reads_back() -> None:
    data = {"a": {"b": "no", "on": 1.0e-05, "c.d/e": ["x: y", None]}, "f": {}, "g": "1e3"}
    assert load(values_text(data), "x").data == data


def test_lint_of_the_recipe_names_each_known_defect() -> None:
    found = [(each.rule, each.problem.line) for each in lint_values(load_file(VALUES)) if each.rule in IDS]
    assert found == [
        ("buckets-have-names", 17),
        ("gpus-fill-machines", 21),
        ("dead-key-of-brackets", 23),
        ("dead-key-of-recipe", 24),
        ("no-secrets-in-handwritten-values", 33),
        ("dead-key-of-brackets", 35),
        ("plugin-and-daemon-fit", 37),
        ("variables-stand-once", 42),
    ]


IDS = {rule.id for rule in HANDWRITTEN}
DEFECTS = {
    "dead-key-of-brackets": "subnetworks[]:\n",
    "dead-key-of-recipe": HEAD + "tasSetting: {}\n",
    "gpus-fill-machines": HEAD.replace("16", "12"),
    "buckets-have-names": HEAD.replace("volumes: {}", "volumes: {gcsVolumes: true, gcsMounts: [{mountPath: /a}]}"),
    "buckets-have-a-sidecar": HEAD.replace("volumes: {}", "volumes: {gcsMounts: [{bucketName: a}]}"),
    "networks-are-named": HEAD.replace("true", "false"),
    "plugin-and-daemon-fit": HEAD.replace("true", 'true, pluginVersion: "p:v1.0.3", daemonVersion: "d:v1.0.8"'),
    "variables-stand-once": HEAD.replace("16", "16, envs: [{name: A, value: one}, {name: A, value: two}]"),
    "no-secrets-in-handwritten-values": "hfToken: hf_abcdefghijklmnopqrstuvwxyz0123456789\n",
}


@pytest.mark.parametrize("rule", sorted(IDS))
def test_each_rule_finds_its_defect_alone(rule: str) -> None:
    assert [each.rule for each in lint_values(load(DEFECTS[rule], "values.yaml"))] == [rule]
    assert lint_values(load(HEAD, "values.yaml")) == []


@pytest.mark.parametrize("section", ["workload", "network", "volumes"])
@pytest.mark.parametrize(
    "value", ["1.5", "text", "[a, {name: {b: c}}]", "{gpus: 8, envs: [{name: {a: b}}], gcsMounts: 3}"]
)
def test_sections_of_another_type_are_looked_at(section: str, value: str) -> None:
    """Values that people wrote by hand may hold anything; the rules answer all the same."""
    written = re.sub(rf"{section}: .*", f"{section}: {value}", HEAD + "tasSettings: {}\ndwsSettings: {}\n")
    assert {each.severity for each in lint_values(load(written, "values.yaml"))} <= {"error", "warning"}


@pytest.mark.threat(22)
def test_the_name_of_a_recipe_writes_no_keys(tmp_path: Path) -> None:
    """A file's name may have several lines, and stands in a comment of what is written."""
    recipe = tmp_path / "v\nwandb: {project: injected}\n#.yaml"
    recipe.write_text((FOLDER / "a3mega" / "values.yaml").read_text())
    config, made = FOLDER / "a3mega" / "nemo.yaml", tmp_path / "made"
    flags = ("--set", "workload.image=nvcr.io/nvidia/nemo:24.07", "--name", "m", "-d", made)
    chartgen("convert", "--from", "gpu-recipes", recipe, "--config", config, *flags)
    files = [*made.rglob("*.yaml")]
    assert files
    for file in files:
        assert "wandb" not in require_map(load_file(file), file.name)
