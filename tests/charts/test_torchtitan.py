"""Launcher torchtitan: portable values become options that each release of torchtitan reads as they are meant.

With `CHARTGEN_PROGRAMS`, a folder that `make parsers` fills, torchtitan's own parser reads them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from facts import missing
from pod_runner import lab, run
from rendered import arguments, env, one

from chartgen.checks import check
from chartgen.helm.values import Values, load_values

PROGRAMS = os.environ.get("CHARTGEN_PROGRAMS", "")
PARSER = Path(__file__).parents[1] / "programs" / "own_parser.py"
OWN = "launchers.torchtitan"
NAMED = f"{OWN}.image=r.example/titan:1,{OWN}.recipe=llama3_8b,{OWN}.datasetPath=/data/c4"
BASE = (f"launcher=torchtitan,tokenizer.kind=huggingface,tokenizer.path=/data/llama,{NAMED}",)
SAVES = "checkpoint.enabled=true,checkpoint.interval=7,storage.outputs.from=pvc://results,storage.data.from=pvc://data"
VERSIONS = {
    "0.2": f"{OWN}.version=0.2,{OWN}.recipe=8B",
    "0.3": "nodes=1",
    "main": f"{OWN}.version=main,{OWN}.datasetPath=",
}
ALL = (
    SAVES,
    "nodes=4,parallelism.tensor=4,parallelism.sequence=true,parallelism.pipeline=2,parallelism.context=2",
    "batch.micro=2,batch.global=32,sequenceLength=4096,precision=fp32,recompute=full,checkpoint.from=/data/w",
    "evaluation.batches=2,evaluation.interval=5,steps=20",
    "optimizer.learningRate=2e-4,optimizer.minLearningRate=2e-5,optimizer.warmupSteps=3,optimizer.decay=cosine",
    f"optimizer.weightDecay=0.2,optimizer.clipGradient=0.5,{OWN}.config.compile.components={{model}}",
    f"{OWN}.config.compile.enable=true,{OWN}.config.checkpoint.async_mode=async",
    "wandb.project=titan",
)
# As each release has it: 2 samples of 4096 tokens, 8 of them in the 4 micro-batches of a pipeline.
READ: dict[str, dict[str, Any]] = {
    "0.2": {
        "model.name": "llama3",
        "model.flavor": "8B",
        "model.hf_assets_path": "/data/llama",
        "optimizer.lr": 2e-4,
        "optimizer.weight_decay": 0.2,
        "training.dataset_path": "/data/c4",
        "training.local_batch_size": 16,
        "training.global_batch_size": 32,
        "parallelism.pipeline_parallel_microbatch_size": 2,
        "training.seq_len": 4096,
        "validation.freq": 5,
        "validation.dataset_path": "/data/c4",
        "validation.seq_len": 4096,
        "activation_checkpoint.mode": "full",
        "profiling.enable_profiling": False,
    },
    "0.3": {
        "hf_assets_path": "/data/llama",
        "optimizer.param_groups.0.optimizer_kwargs.lr": 2e-4,
        "optimizer.param_groups.0.optimizer_kwargs.weight_decay": 0.2,
        "dataloader.dataset": "c4_test",
        "dataloader.dataset_path": "/data/c4",
        "training.local_batch_size": 16,
        "training.global_batch_size": 32,
        "parallelism.pipeline_parallel_microbatch_size": 2,
        "training.seq_len": 4096,
        "training.disable_cuda_graphs": True,
        "validator.freq": 5,
        "validator.dataloader.dataset_path": "/data/c4",
        "parallelism.enable_sequence_parallel": True,
        "activation_checkpoint_type": "FullAC.Config",
        "profiler.enable_profiling": False,
    },
    "main": {
        "hf_assets_path": "/data/llama",
        "optimizer.param_groups.0.optimizer_kwargs.lr": 2e-4,
        "training.num_tokens_per_microbatch_per_dp_rank": 2 * 4096,
        "training.num_tokens_per_train_step": 32 * 4096,
        "parallelism.num_pp_microbatches": 8,
        "training.max_context_length": 4096,
        "training.disable_cuda_graphs": True,
        "validator.steps": 2,
        "activation_checkpoint_type": "FullAC.Config",
    },
}
READ_BY_ALL = {
    "training.steps": 20,
    "training.max_norm": 0.5,
    "training.mixed_precision_param": "float32",
    "lr_scheduler.min_lr_factor": 0.1,
    "lr_scheduler.warmup_steps": 3,
    "lr_scheduler.decay_type": "cosine",
    "parallelism.tensor_parallel_degree": 4,
    "parallelism.pipeline_parallel_degree": 2,
    "parallelism.pipeline_parallel_schedule": "1F1B",
    "parallelism.context_parallel_degree": 2,
    "parallelism.data_parallel_shard_degree": -1,
    "checkpoint.enable": True,
    "checkpoint.folder": "/outputs/ml/my-run/checkpoints",
    "checkpoint.interval": 7,
    "checkpoint.initial_load_path": "/data/w",
    "checkpoint.initial_load_in_hf": True,
    "checkpoint.last_save_model_only": False,
    "checkpoint.async_mode": "async",
    "comm.train_timeout_seconds": 600,
    "metrics.log_freq": 1,
    "metrics.enable_wandb": True,
    "compile.enable": True,
    "compile.components": ["model"],
}


def titan(version: str, *sets: str) -> list[str]:
    """The words behind the module's name."""
    words = arguments(run(*BASE, VERSIONS[version], *sets))
    assert words[:2] == ["-m", "torchtitan.train"]
    return words[2:]


def told(words: list[str]) -> dict[str, Any]:
    """The options, a switch as whether it is on."""
    found: dict[str, Any] = {}
    for word, after in zip(words, [*words[1:], "--"], strict=True):
        if word.startswith("--"):
            section, _, name = word.removeprefix("--").rpartition(".")
            switch = after.startswith(("--", "activation-checkpoint:"))
            path = f"{section}.{name.removeprefix('no_') if switch else name}".lstrip(".")
            found[path] = after if not switch else not name.startswith("no_")
    return found


def read(version: str, words: list[str]) -> dict[str, Any]:
    """What the genuine parser makes of the words."""
    folder = Path(PROGRAMS, f"torchtitan-{version}")
    if not PROGRAMS or not folder.is_dir():
        pytest.skip(f"CHARTGEN_PROGRAMS has no torchtitan-{version}; make parsers installs it")
    argv = [sys.executable, str(PARSER), str(folder), *words]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def at(tree: Any, path: str) -> Any:
    return reduce(lambda below, step: below[int(step) if isinstance(below, list) else step], path.split("."), tree)


@pytest.mark.parametrize("version", VERSIONS)
def test_torchtitans_own_parser_reads_what_was_meant(version: str) -> None:
    found = read(version, titan(version, *ALL))
    expected = READ[version] | READ_BY_ALL
    assert {path: at(found, path) for path in expected} == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_a_small_run_leaves_the_recipe_its_own_settings(version: str) -> None:
    words = titan(version, "steps=0")
    found = told(words)
    assert {"training.steps", "optimizer.lr", "lr_scheduler.warmup_steps", "checkpoint.enable"}.isdisjoint(found)
    assert not [word for word in words if "param_groups" in word or word.startswith("activation")]
    assert "training.disable_cuda_graphs" not in found
    assert (found.get("training.local_batch_size"), found.get("training.num_tokens_per_train_step")) == (
        (None, str(8 * 2048)) if version == "main" else ("1", None)
    )
    if PROGRAMS:
        read(version, words)


def test_weights_reach_a_run_that_saves_nothing() -> None:
    found = told(titan("0.3", f"checkpoint.from=/data/w,{OWN}.weights=dcp"))
    assert found["checkpoint.enable"] is found["checkpoint.load_only"] is True
    assert found["checkpoint.initial_load_in_hf"] is False
    assert found["checkpoint.folder"] != "/outputs/ml/my-run/checkpoints"


def test_variables_and_files() -> None:
    made = run(
        *BASE, "nodes=2,parallelism.pipeline=2,batch.global=64", f"{OWN}.module=lab", f"{OWN}.files.lab\\.py=a = 1"
    )
    variables = env(made)
    # the first rank of the last stage: the only ones that know the loss
    assert (variables["LOG_RANK"], variables["HF_HUB_OFFLINE"]) == ("8", "1")
    files = one("ConfigMap", made)["data"]
    assert files["lab.py"] == "a = 1"
    assert "export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}/etc/chartgen" in files["rank.sh"].splitlines()
    assert arguments(made)[2:6] == ["--module", "lab", "--config", "llama3_8b"]
    assert "PYTHONPATH" not in one("ConfigMap", run(*BASE))["data"]["rank.sh"]


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (f"{OWN}.recipe=", "launchers.torchtitan.recipe llama3_8b"),
        (f"{OWN}.image=", "launchers.torchtitan.image"),
        (f"{OWN}.datasetPath=", "launchers.torchtitan.datasetPath download"),
        (f"{OWN}.version=main", "launchers.torchtitan.datasetPath main"),
        ("data.name=c4,storage.data.from=pvc://d", "data.name torchtitan"),
        ("tokenizer.kind=sentencepiece", "tokenizer.kind huggingface"),
        ("parallelism.pipeline=4,batch.global=4,gpusPerNode=8", "batch.global 8"),
        ("parallelism.pipeline=2,parallelism.virtualPipeline=4,batch.global=64", "parallelism.virtualPipeline 2"),
        ("parallelism.context=8,sequenceLength=2056", "sequenceLength 16 2048 2064"),
        (f"{OWN}.version=0.2,parallelism.tensor=2", "parallelism.sequence true"),
        ("parallelism.tensor=2,parallelism.expert=2", "parallelism.expertTensor 1"),
        ("optimizer.decay=constant", "optimizer.decay cosine"),
        ("optimizer.minLearningRate=1e-5", "optimizer.minLearningRate optimizer.learningRate"),
        ("optimizer.clipGradient=0", "optimizer.clipGradient"),
        ("profile.enabled=true,profile.startStep=1,profile.endStep=2", "profile.enabled"),
        ("recompute=full,launchers.torchtitan.args={--a}", "launchers.torchtitan.args config"),
        ("precision=fp8", "precision bf16 fp32"),
        ("model.rotaryBase=500000,model.family=llama", "model.rotaryBase"),
        (f"{OWN}.config.training.seq_len=4096", "training.seq_len sequenceLength"),
        (f"{OWN}.args={{--training.mixed_precision_param=float32}}", "training.mixed_precision_param precision"),
    ],
)
def test_what_torchtitan_cannot_run_is_refused(sets: str, expected: str) -> None:
    found = check(lab(), load_values(set_values=[*BASE, sets]))
    (line,) = (str(each.problem) for each in found if each.severity == "error")
    assert missing(expected, line) == []


def test_check_estimates_no_memory_of_a_recipe() -> None:
    own: Any = {"recipe": "llama3_8b", "datasetPath": "/data/c4", "image": "r.example/titan:1"}
    tokenizer: Any = {"kind": "huggingface", "path": "/data/llama"}
    found = check(lab(), Values({"launcher": "torchtitan", "tokenizer": tokenizer, "launchers": {"torchtitan": own}}))
    assert [each.rule for each in found] == ["memory-is-not-estimated"]
