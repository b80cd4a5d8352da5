"""A recipe of others becomes preset, overlay and site; what cannot be carried over is told with its place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from chartgen.convert import convert_recipe, yaml_text
from chartgen.errors import ChartgenError
from chartgen.linter.handwritten import HANDWRITTEN, lint_values
from chartgen.yamltext import load, load_file

FOLDER = Path(__file__).parent / "data" / "recipes"
VALUES, CONFIG = FOLDER / "values.yaml", FOLDER / "nemo.yaml"
NATIVE = "use steps, batch and the like, or launchers.nemo-1.config"
HEAD = "workload: {gpus: 16}\nnetwork: {hostNetwork: true}\nvolumes: {}\n"


def test_model_and_batch_become_portable() -> None:
    made = convert_recipe(load_file(VALUES), load_file(CONFIG))
    assert made.preset == {
        "launcher": "nemo-1",
        "tokenizer": {"kind": "gpt2", "path": "/data/tokenizers/gpt2"},
        "precision": "bf16",
        "steps": 100,
        "evaluation": {"interval": 50, "batches": 10},
        "launchers": {
            "nemo-1": {
                "config": {"trainer": {"max_time": "1:00:00:00"}},
            }
        },
        "checkpoint": {"enabled": True},
        "batch": {"micro": 2, "global": 320},
        "parallelism": {"tensor": 2, "pipeline": 1, "distributedOptimizer": True},
        "sequenceLength": 2048,
        "optimizer": {"learningRate": 0.00016},
        "model": {
            "layers": 24,
            "hiddenSize": 4096,
            "attentionHeads": 32,
            "initStandardDeviation": 0.01,
            "family": "gpt",
            "name": "gpt3-5b",
        },
    }


def test_machines_network_and_cluster() -> None:
    made = convert_recipe(load_file(VALUES))
    registry = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo"
    assert made.overlay == {
        "nodes": 5,
        "network": {
            "pluginVersion": "v1.0.3",
            "daemonVersion": "v1.0.8",
            "repository": registry,
            "hostNetwork": True,
        },
        "launchers": {"nemo-1": {"image": "nvcr.io/nvidia/nemo:24.07"}},
        "env": {
            "NVTE_FWD_LAYERNORM_SM_MARGIN": "8",
            "NCCL_DEBUG": "INFO",
        },
        "topology": {"mode": "preferred"},
    }
    assert made.site == {
        "storage": {
            "outputs": {"from": "gs://my-logs"},
            "data": {"from": "gs://my-artifacts", "mountOptions": "implicit-dirs"},
            "scratch": {"from": "disk://"},
        },
        "queue": {"name": "a3-mega"},
    }


def test_what_is_left_is_told_with_its_place() -> None:
    made = convert_recipe(load_file(VALUES), load_file(CONFIG))
    assert [str(problem).replace(f"{FOLDER}/", "") for problem in made.left] == [
        "values.yaml:21:3: workload.gpus: 36 is no multiple of 8; became 5 whole machines",
        "values.yaml:17:7: volumes.gcsMounts[2] has no bucketName; set storage.data.from",
        "values.yaml:32:7: HF_TOKEN holds a secret; put it into a Secret, and use secretEnv",
        f"values.yaml:24:3: workload.runScript was not carried over; {NATIVE}",
        "values.yaml:6:5: kueue.x-k8s.io/podset-slice-size was not carried over; see topology.*",
        "nemo.yaml:16:3: model.num_query_groups refers to another option; set it yourself",
    ]


def test_command_writes_files_and_checks_them(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "chartgen", "convert", str(VALUES), "--from", "gpu-recipes", "--config", str(CONFIG)]
    argv += ["--destination", str(tmp_path)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, env=dict(os.environ))
    files = ["gpt3-5b.yaml", "gke-a3mega/gpt3-5b.yaml", "site.gke-a3mega.gpt3-5b.yaml"]
    assert ran.stdout.splitlines() == [str(tmp_path / file) for file in files]
    assert ran.returncode == 1
    assert "[plugin-and-daemon]" in ran.stderr or "v1.0.9" in ran.stderr
    written = "".join(path.read_text() for path in tmp_path.rglob("*.yaml"))
    assert "hf_abcdef" not in written + ran.stdout + ran.stderr
    again = subprocess.run(argv, capture_output=True, text=True, check=False, env=dict(os.environ))
    assert "is there already; use --force, or another --name" in again.stderr


@pytest.mark.parametrize("text", ["a: 1\n", "workload: 3\n", "workload: {gpus: many}\n", "workload: {gpus: 0}\n"])
def test_values_of_something_else_are_refused(text: str) -> None:
    with pytest.raises(
        ChartgenError, match=r"has no number at workload\.gpus; give the values\.yaml of a training recipe"
    ):
        convert_recipe(load(text, "values.yaml"))


def test_written_yaml_reads_back() -> None:
    data = {"a": {"b": "no", "on": 1.0e-05, "c.d/e": ["x: y", None]}, "f": {}, "g": "1e3"}
    assert load(yaml_text(data), "x").data == data


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
