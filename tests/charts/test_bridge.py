"""Launcher megatron-bridge: portable values and named recipes become overrides that each release of Bridge knows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from facts import missing
from pod_runner import lab, run
from rendered import arguments, env

from chartgen.checks import check
from chartgen.data.program_options import options_of
from chartgen.errors import ChartgenError
from chartgen.helm.values import Values

IMAGE = "launchers.megatron-bridge.image=nvcr.io/nvidia/nemo"
LLAMA = (
    "model.family=llama,model.layers=32,model.hiddenSize=4096,model.ffnHiddenSize=14336,model.attentionHeads=32,"
    "model.queryGroups=8,model.vocabularySize=128256,sequenceLength=8192,batch.global=128"
)
SAVES = "checkpoint.enabled=true,storage.outputs.from=pvc://results,storage.data.from=pvc://data"


def bridge(*sets: str) -> tuple[list[str], dict[str, str]]:
    """The options, and the overrides by key, of a run."""
    words = arguments(run("launcher=megatron-bridge", *sets))[1:]
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    return [word for word in words if "=" not in word], pairs


@pytest.mark.parametrize(
    ("release", "length"), [("26.04", "sequence_length"), ("26.06", "sequence_length"), ("26.08", "seq_length")]
)
def test_portable_values_fill_the_empty_recipe(release: str, length: str) -> None:
    told = "data.prefixes={a,/data/b},tokenizer.kind=huggingface,tokenizer.path=/data/t,evaluation.batches=2"
    parallel = "nodes=2,parallelism.tensor=4,parallelism.sequence=true,parallelism.pipeline=2,parallelism.context=2"
    trackers = "wandb.project=gpt,mlflow.experiment=gpt,mlflow.uri=http://mlflow:5000"
    options, found = bridge(f"{IMAGE}:{release}", LLAMA, SAVES, told, parallel, trackers)
    assert options == ["--recipe", "vanilla_gpt_pretrain_config", *(["--mode", "pretrain"] * (release == "26.08"))]
    expected = {
        "model.num_layers": "32",
        "model.num_query_groups": "8",
        "model.activation_func": "'silu'",
        "model.gated_linear_unit": "true",
        "model.normalization": "'RMSNorm'",
        "model.rotary_base": "500000",
        "model.share_embeddings_and_output_weights": "false",
        "model.tensor_model_parallel_size": "4",
        "model.virtual_pipeline_model_parallel_size": "null",
        "model.sequence_parallel": "true",
        f"dataset.{length}": "8192",
        "dataset.blend": "[['/data/a','/data/b'],[1,1]]",
        "train.global_batch_size": "128",
        "validation.eval_iters": "2",
        "mixed_precision": "'bf16_mixed'",
        "tokenizer.tokenizer_model": "'/data/t'",
        "checkpoint.save": "'/outputs/ml/my-run/checkpoints'",
        "checkpoint.load": "'/outputs/ml/my-run/checkpoints'",
        "train.exit_signal_handler": "true",
        "logger.log_interval": "1",
        # both: the schedule's hides the optimizer's
        "optimizer.weight_decay": "0.1",
        "scheduler.start_weight_decay": "0.1",
    }
    assert {name: found.get(name) for name in expected} == expected
    known = options_of("megatron-bridge")
    assert known
    assert {step for path in found for step in path.split(".")} <= known.for_release(release) | {"optimizer"}
    assert env(run("launcher=megatron-bridge", parallel, LLAMA))["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"


def test_without_checkpoints_nothing_is_resumed_from_the_working_directory() -> None:
    _, found = bridge()
    assert (found["checkpoint.save"], found["checkpoint.load"]) == ("null", "null")
    assert "train.exit_signal_handler" not in found


@pytest.mark.parametrize(
    ("release", "mode", "options"),
    [
        ("26.02", "pretrain", []),
        ("26.04", "lora", ["--peft_scheme", "lora", "--dataset", "llm-finetune"]),
        ("26.08", "sft", ["--mode", "sft", "--dataset", "squad"]),
    ],
)
def test_a_recipe_keeps_its_model(release: str, mode: str, options: list[str]) -> None:
    own = "launchers.megatron-bridge"
    name = f"llama3_8b_{'pretrain' if mode == 'pretrain' else 'sft'}_config"
    sets = [f"{own}.recipe={name},{own}.mode={mode},parallelism.tensor=8"]
    if mode != "pretrain":
        sets.append(f"checkpoint.from=/data/w,{own}.dataset={options[-1]}")
    given, found = bridge(f"{IMAGE}:{release}", SAVES, *sets)
    assert given == ["--recipe", name, *options]
    changed = f"{own}.config.dataset.sequence_length=4096,{own}.config.mixed_precision=bf16_with_mxfp8_mixed"
    switched = f"{own}.config.model.recompute_granularity=selective"
    _, more = bridge(f"{IMAGE}:{release}", SAVES, *sets, changed, switched)
    assert more["model.recompute_granularity"] == "'selective'"
    assert more["dataset.sequence_length"] == "4096"
    assert more["mixed_precision"] == "'bf16_with_mxfp8_mixed'"
    assert found["model.tensor_model_parallel_size"] == "8", "8 does not divide the 12 heads that the values have"
    assert {"model.num_layers", "model.seq_length", "mixed_precision", "optimizer.lr"}.isdisjoint(found)
    assert ("validation.eval_iters" in found, "train.eval_iters" in found) == (release > "26.02", release == "26.02")
    assert {"checkpoint.save", "checkpoint.load", "train.train_iters", "logger.log_throughput"} <= set(found)
    # an empty section of the values would take away the recipe's
    assert {"optimizer", "scheduler", "dataset"}.isdisjoint(found)
    values: Any = {"launcher": "megatron-bridge", "launchers": {"megatron-bridge": {"recipe": name}}}
    assert [each.rule for each in check(lab(), Values(values))] == ["memory-is-not-estimated"]


def test_experts_and_numbers_of_8_bits() -> None:
    experts = (
        "model.family=mixtral,model.experts=8,parallelism.expert=8,parallelism.expertTensor=1,model.hiddenSize=1024"
    )
    own = "launchers.megatron-bridge.fp8Scaling=current"
    _, found = bridge(experts, "precision=fp8,recompute=full,model.attentionHeads=16", own)
    expected = {
        "model.num_moe_experts": "8",
        "model.moe_token_dispatcher_type": "'alltoall'",
        "model.expert_model_parallel_size": "8",
        "model.expert_tensor_parallel_size": "1",
        "model.recompute_granularity": "'full'",
        "mixed_precision": "'bf16_with_fp8_current_scaling_mixed'",
    }
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (f"{IMAGE}:26.02", "launchers.megatron-bridge.image nvcr.io/nvidia/nemo:26.04"),
        (f"{IMAGE}:25.11", "launchers.megatron-bridge.image nvcr.io/nvidia/nemo:26.04"),
        ("launchers.megatron-bridge.image=example.com/own:1", "launchers.megatron-bridge.release example.com/own:1"),
        ("steps=0", "steps 0"),
        ("precision=fp32", "precision fp32"),
        ("launchers.megatron-bridge.dataset=squad", "launchers.megatron-bridge.dataset squad"),
        ("launchers.megatron-bridge.config.model.num_layers=3", "model.num_layers model.layers"),
    ],
)
def test_what_bridge_cannot_run_is_refused(sets: str, expected: str) -> None:
    with pytest.raises(ChartgenError) as caught:
        bridge(sets)
    (line,) = str(caught.value).removeprefix("\n").splitlines()
    assert missing(expected, line) == []


def test_check_knows_the_configuration_of_each_release() -> None:
    config: dict[str, Any] = {"model": {"moe_token_dispatcher_type": "flex", "num_leyers": 3}}
    own: Any = {"config": config, "image": "nvcr.io/nvidia/nemo:26.06"}
    found = check(lab(), Values({"launcher": "megatron-bridge", "launchers": {"megatron-bridge": own}}))
    (one,) = (each for each in found if each.rule == "options-of-the-program")
    assert missing("num_leyers model.layers", str(one.problem)) == [], json.dumps(str(one.problem))
