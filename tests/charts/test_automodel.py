"""Launcher automodel: portable values become the YAML that each release of AutoModel reads as it is meant.

With `CHARTGEN_PROGRAMS`, a folder that `make parsers` fills, AutoModel's own configuration classes read it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from facts import missing
from pod_runner import lab, run
from rendered import arguments, env, one

from chartgen.checks import check
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load, load_file, require_map

PROGRAMS = os.environ.get("CHARTGEN_PROGRAMS", "")
PARSER = Path(__file__).parents[1] / "programs" / "own_config.py"
OWN = "launchers.automodel"
MODEL = f"{OWN}.model=/data/llama"
BASE = ("launcher=automodel", MODEL)
SAVES = "checkpoint.enabled=true,checkpoint.interval=7,storage.outputs.from=pvc://results,storage.data.from=pvc://data"
DATA = "data.prefixes={a,b},data.directory=/data/c4,tokenizer.kind=huggingface,tokenizer.path=/data/words"
ALL = (
    SAVES,
    DATA,
    "nodes=4,parallelism.tensor=4,parallelism.sequence=true,parallelism.pipeline=2,parallelism.context=2",
    "batch.micro=2,batch.global=32,sequenceLength=4096,recompute=selective",
    "evaluation.batches=2,evaluation.interval=5,steps=20",
    "optimizer.learningRate=2e-4,optimizer.minLearningRate=2e-5,optimizer.warmupSteps=3,optimizer.decay=linear",
    "optimizer.weightDecay=0.2,optimizer.clipGradient=0.5",
    "wandb.project=gpt,mlflow.experiment=gpt,mlflow.uri=http://mlflow:5000",
)
LORA = ("checkpoint.from=/data/llama", f"{OWN}.loraRank=16")
SQUAD = "nemo_automodel.components.datasets.llm.squad.make_squad_dataset"


def text(*sets: str) -> str:
    """The file that AutoModel reads."""
    found = run(*BASE, *sets)
    assert arguments(found)[:3] == ["-m", "nemo_automodel.cli.app", "/etc/chartgen/automodel.yaml"]
    return str(one("ConfigMap", found)["data"]["automodel.yaml"])


def settings(*sets: str) -> dict[str, Any]:
    return require_map(load(text(*sets), "automodel.yaml"), "settings")


def test_portable_values_reach_their_sections() -> None:
    found = settings(*ALL)
    assert found["distributed"] == {
        "strategy": "fsdp2",
        "tp_size": 4,
        "pp_size": 2,
        "cp_size": 2,
        "ep_size": 1,
        "sequence_parallel": True,
        "activation_checkpointing": "selective",
        # the 8 micro-batches of 2 samples pass the pipeline together
        "pipeline": {"pp_schedule": "1f1b", "pp_microbatch_size": 2, "pp_batch_size": 16, "pp_seq_len": 4096},
    }
    assert found["step_scheduler"] == {
        "global_batch_size": 32,
        "local_batch_size": 16,
        "max_steps": 20,
        "num_epochs": None,
        "ckpt_every_steps": 7,
        "save_checkpoint_every_epoch": False,
        "val_every_steps": 5,
    }
    assert found["optimizer"] | found["lr_scheduler"] | found["clip_grad_norm"] == {
        "_target_": "torch.optim.AdamW",
        "lr": 2e-4,
        "betas": [0.9, 0.95],
        "weight_decay": 0.2,
        "lr_decay_style": "linear",
        "min_lr": 2e-5,
        "lr_warmup_steps": 3,
        "use_checkpoint_opt_param_scheduler": False,
        "override_opt_param_scheduler": True,
        "max_norm": 0.5,
    }
    assert (found["checkpoint"]["enabled"], found["checkpoint"]["checkpoint_dir"]) == (
        True,
        "/outputs/ml/my-run/checkpoints",
    )


def test_megatrons_data_has_weights_and_evaluations_their_share() -> None:
    found = settings(*ALL)
    train, validation = found["dataset"], found["validation_dataset"]
    assert train["paths"] == ["1", "/data/c4/a", "1", "/data/c4/b"]
    assert (train["split"], train["seq_length"], train["splits_to_build"]) == ("90,8,2", 4096, "train")
    assert train["tokenizer"]["pretrained_model_name_or_path"] == "/data/words"
    assert validation == train | {"splits_to_build": "validation", "num_val_samples": 64}
    (single,) = settings(DATA, "data.prefixes={a}")["dataset"]["paths"]
    assert single == "/data/c4/a"


def leaves(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def test_a_run_on_megatrons_data_has_the_keys_of_the_official_example() -> None:
    rates = "optimizer.minLearningRate=1e-5,optimizer.warmupSteps=7"
    ours = dict(leaves(settings(SAVES, DATA, rates, "evaluation.batches=1,steps=20")))
    theirs = load_file(Path(__file__).parents[1] / "data" / "automodel-example.yaml").data
    assert isinstance(theirs, dict)
    assert {key for key, text in theirs.items() if text and key in ours and ours[key] != text} == {"optimizer._target_"}
    assert sorted(set(ours) - set(theirs)) == [
        "clip_grad_norm.max_norm",
        "distributed.activation_checkpointing",
        "distributed.ep_size",
        "distributed.pp_size",
        "lr_scheduler.override_opt_param_scheduler",
        "lr_scheduler.use_checkpoint_opt_param_scheduler",
        "model.torch_dtype",
        "step_scheduler.save_checkpoint_every_epoch",
    ]
    # the rest are options of Transformer Engine's optimizer, and defaults
    left = {key for key in set(theirs) - set(ours) if not key.startswith("optimizer.")}
    assert left == {"dist_env.backend", "distributed.dp_size", "rng._target_", "rng.seed", "rng.ranked"}


def test_mock_data_makes_the_batches_of_a_process() -> None:
    found = settings("nodes=1,batch.micro=2,batch.global=64,sequenceLength=512,evaluation.batches=3")
    assert "nemo_automodel" in found["dataset"].pop("_target_")
    assert found["dataset"] == {"seq_len": 512, "batch_size": 2}
    assert found["dataloader"]["batch_size"] is None
    # four micro-batches are one batch of all GPUs
    assert found["validation_dataset"]["num_samples"] == 3 * 4


def test_weights_and_lora() -> None:
    assert settings()["model"]["config"]["pretrained_model_name_or_path"] == "/data/llama"
    tuned = settings(LORA[0])
    assert tuned["model"]["pretrained_model_name_or_path"] == "/data/llama"
    assert (tuned["model"]["torch_dtype"], "peft" in tuned, "save_consolidated" in tuned["checkpoint"]) == (
        "float32",
        False,
        False,
    )
    lora = settings(*LORA)
    assert (lora["peft"]["dim"], lora["peft"]["target_modules"], "torch_dtype" in lora["model"]) == (
        16,
        "*_proj",
        False,
    )


def test_data_sets_and_options_of_the_user_win() -> None:
    found = settings(
        f"{OWN}.dataset._target_={SQUAD},{OWN}.dataset.split=train,{OWN}.validationDataset.split=validation",
        f"evaluation.batches=1,{OWN}.config.checkpoint.is_async=false,{OWN}.config.model.backend.attn=te",
        f"{OWN}.config.model.torch_dtype=bfloat16,{OWN}.config.distributed.dp_replicate_size=2",
    )
    assert found["dataset"] == {"_target_": SQUAD, "split": "train"}
    assert found["validation_dataset"] == {"split": "validation"}
    assert found["checkpoint"]["is_async"] is False
    assert (found["model"]["backend"], found["model"]["torch_dtype"]) == ({"attn": "te"}, "bfloat16")
    assert (found["distributed"]["dp_replicate_size"], found["distributed"]["strategy"]) == (2, "fsdp2")


def test_a_run_without_steps_or_checkpoints() -> None:
    found = settings("steps=0", "precision=fp32")
    assert {"max_steps", "num_epochs"}.isdisjoint(found["step_scheduler"])
    assert found["checkpoint"]["enabled"] is False
    assert found["checkpoint"]["checkpoint_dir"].startswith("/outputs/ml/my-run/")
    assert found["distributed"]["mp_policy"]["param_dtype"] == "float32"
    assert settings("steps=5,optimizer.warmupSteps=9")["lr_scheduler"]["lr_decay_steps"] == 10
    assert env(run(*BASE))["HF_HUB_OFFLINE"] == "1"


@pytest.mark.parametrize(
    ("latest", "folders", "left"),
    [
        ("link", {0: True, 9: True, 19: False}, {0, 9}),
        ("text", {9: True, 19: True}, {9}),
        ("", {9: True, 19: False}, {9}),
        ("", {9: False}, set()),
        ("link", {99: True, 9: True, 100: True}, {9}),
    ],
)
def test_an_interrupted_save_is_moved_away(
    latest: str, folders: dict[int, bool], left: set[int], tmp_path: Path
) -> None:
    checkpoints = tmp_path / "checkpoints"
    for step, complete in folders.items():
        (checkpoints / f"epoch_0_step_{step}").mkdir(parents=True)
        if complete:
            (checkpoints / f"epoch_0_step_{step}" / "config.yaml").touch()
    if latest == "link":
        (checkpoints / "LATEST").symlink_to("epoch_0_step_9")
    elif latest:
        (checkpoints / "LATEST.txt").write_text("epoch_0_step_9")
    script = one("ConfigMap", run(*BASE, SAVES))["data"]["rank.sh"]
    before, _, _ = script.partition("\nexec ")
    variables = {**os.environ, "RANK": "0", "LOCAL_RANK": "0", "CHARTGEN_PROCESSES": str(tmp_path)}
    for _ in range(2):
        argv = ["bash", "-c", before]
        subprocess.run(argv, env=variables | {"CHECKPOINT_DIRECTORY": str(checkpoints)}, check=True)
        assert {int(each.name.rpartition("_")[2]) for each in checkpoints.glob("epoch_*")} == left
    moved = {int(each.name.rpartition("_")[2]) for each in checkpoints.glob("unfinished/*")}
    assert moved == set(folders) - left


@pytest.mark.threat(19)
@pytest.mark.parametrize("kind", ["pipe", "folder", "large", "digits", "command"])
def test_what_another_tenant_left_beside_the_checkpoints_is_not_followed(kind: str, tmp_path: Path) -> None:
    checkpoints, others = tmp_path / "checkpoints", tmp_path / "others"
    (checkpoints / "epoch_0_step_9").mkdir(parents=True)
    (others / "epoch_0_step_9/theirs").mkdir(parents=True)
    (checkpoints / "unfinished").symlink_to(others)
    (checkpoints / "epoch_0_step_8").mkdir()
    (checkpoints / "epoch_0_step_8/config.yaml").touch()
    latest = checkpoints / "LATEST.txt"
    if kind == "pipe":
        os.mkfifo(latest)
    elif kind == "folder":
        latest.mkdir()
    elif kind == "large":
        latest.touch()
        os.truncate(latest, 10 << 30)
    elif kind == "digits":
        latest.write_text("epoch_0_step_" + "9" * 5000)
    else:
        (checkpoints / "LATEST").symlink_to("epoch_0_step_a[$(touch ran)]")
    before, _, _ = one("ConfigMap", run(*BASE, SAVES))["data"]["rank.sh"].partition("\nexec ")
    variables = {**os.environ, "RANK": "0", "LOCAL_RANK": "0", "CHARTGEN_PROCESSES": str(tmp_path)}
    argv = ["bash", "-c", f"ulimit -v 1000000\n{before}"]
    variables["CHECKPOINT_DIRECTORY"] = str(checkpoints)
    subprocess.run(argv, env=variables, cwd=tmp_path, check=True, timeout=20)
    assert [*others.rglob("theirs")]
    assert [each.name for each in checkpoints.glob("unfinished/*")] == ["epoch_0_step_9"]
    assert not (tmp_path / "ran").exists()


@pytest.fixture(params=("0.5", "0.6", "0.7"))
def program(request: pytest.FixtureRequest) -> Path:
    """The folder of a genuine release."""
    found = Path(PROGRAMS, f"automodel-{request.param}")
    if not PROGRAMS or not found.is_dir():
        pytest.skip(f"CHARTGEN_PROGRAMS has no {found.name}; make parsers installs it")
    return found


def read(program: Path, file: str, folder: Path) -> dict[str, Any]:
    """What the genuine classes make of the settings."""
    (folder / "automodel.yaml").write_text(file)
    argv = [sys.executable, str(PARSER), str(program), str(folder / "automodel.yaml")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("sets", [ALL, ("evaluation.batches=1",), ("precision=fp32", SAVES, LORA[0]), LORA])
def test_automodels_own_classes_read_what_was_meant(program: Path, sets: tuple[str, ...], tmp_path: Path) -> None:
    made = settings(*sets)
    found = read(program, text(*sets), tmp_path)
    assert found["unread"] == []
    expected = {key: value for key, value in made["step_scheduler"].items() if key != "local_batch_size"}
    assert {key: found["step_scheduler"][key] for key in expected} == expected
    assert {key: found["lr_scheduler"][key] for key in made["lr_scheduler"]} == made["lr_scheduler"]
    assert found["optimizer"]["lr"] == made["optimizer"]["lr"]
    for tracker in {"wandb", "mlflow"} & made.keys():
        assert {key: found[tracker][key] for key in made[tracker]} == made[tracker]
    shared = made["distributed"]
    assert found["distributed"]["activation_checkpointing"] == shared["activation_checkpointing"]
    assert found["distributed"]["strategy"]["sequence_parallel"] == shared["sequence_parallel"]
    sizes = found["distributed"]["sizes"]
    assert {key: sizes[key] for key in shared if key.endswith("_size")} == {
        key: size for key, size in shared.items() if key.endswith("_size")
    }
    pipeline = shared.get("pipeline", {})
    assert {key: found["distributed"]["pipeline"][key] for key in pipeline} == pipeline


def test_a_setting_that_a_release_does_not_read_is_found(program: Path, tmp_path: Path) -> None:
    config = f"{OWN}.config.other=1,{OWN}.config.checkpoint.other=1,{OWN}.config.model.other=1"
    found = read(program, text(config, f"{OWN}.dataset._target_={SQUAD},{OWN}.dataset.other=1"), tmp_path)
    unread = [each.split()[0] for each in found["unread"]]
    assert unread == ["other", "model.other", "dataset.other", "checkpoint.other"]


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (f"{OWN}.model=", "launchers.automodel.model download"),
        ("checkpoint.from=/data/other", "checkpoint.from /data/llama"),
        (f"{OWN}.loraRank=8", "checkpoint.from LoRA"),
        ("data.name=c4,storage.data.from=pvc://d", "tokenizer.kind huggingface"),
        ("tokenizer.kind=gpt2,tokenizer.path=/data/gpt2", "tokenizer.kind huggingface"),
        (f"{OWN}.dataset.a=1,{DATA},storage.data.from=pvc://d", "data.prefixes launchers.automodel.dataset"),
        (f"{OWN}.dataset.a=1,evaluation.batches=2", "evaluation.batches launchers.automodel.validationDataset"),
        ("parallelism.pipeline=4,batch.global=4,gpusPerNode=8", "batch.global 8"),
        ("parallelism.pipeline=2,parallelism.virtualPipeline=4,batch.global=64", "parallelism.virtualPipeline 2"),
        ("parallelism.tensor=2,parallelism.expert=2", "parallelism.expertTensor 1"),
        ("optimizer.clipGradient=0", "optimizer.clipGradient"),
        ("profile.enabled=true,profile.startStep=1,profile.endStep=2", "profile.enabled"),
        ("precision=fp8", "precision bf16 fp32"),
        (f"{OWN}.config.checkpoint.restore_from=LATEST", "checkpoint.restore_from checkpoint.enabled"),
        (f"{OWN}.args={{--step_scheduler.max_steps=4}}", "step_scheduler.max_steps steps"),
    ],
)
def test_what_automodel_cannot_run_is_refused(sets: str, expected: str) -> None:
    found = check(lab(), load_values(set_values=[*BASE, sets]))
    (line,) = (str(each.problem) for each in found if each.severity == "error")
    assert missing(expected, line) == []
