"""Checks of the program's own options and variables, of experts and of uneven pipelines: what is right, and hints."""

from __future__ import annotations

import json

import pytest
from check_helpers import job, judge, published

from chartgen.checks.program_settings import PARALLELISM, SETTINGS

CHECKS = (*PARALLELISM, *SETTINGS)
OLD, NEW = (f"launchers.megatron-lm.image=nvcr.io/nvidia/nemo:{release}" for release in ("25.09", "26.02"))
CONFIG = "launchers.megatron-lm.config"
TWO_STAGES = ("parallelism.pipeline=2", "parallelism.virtualPipeline=2", "batch.global=16")
OVERLAPPED = f"launchers.nemo-1.config.model={json.dumps({'overlap_p2p_comm': True, 'batch_p2p_comm': False})}"
SHARED = ("parallelism.tensor=4", "parallelism.sequence=true")
EXPERTS = ("model.family=mixtral", "model.experts=8", "batch.global=64")
GPT = ("model.experts=8", "batch.global=64")
MOVED = (*SHARED, *EXPERTS, "parallelism.expertTensor=1", f"{CONFIG}.overlap-moe-expert-parallel-comm=true")
STAGES = ("parallelism.pipeline=4", "batch.global=64")
LAYOUT = "options-of-a-layout"
NEMO_OVERLAPS = "launchers.nemo-1.config.model.overlap_p2p_comm=true"
NEMO_DEFERS = "launchers.nemo-1.config.model.defer_embedding_wgrad_compute"
UNEVEN = ("parallelism.pipeline=4", "batch.global=16", f"{CONFIG}.decoder-first-pipeline-num-layers=2")
UNEVEN_14 = (*UNEVEN, "model.layers=14")
SEGMENTS = "env.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"

RIGHT = [
    # key and value heads: repeated by newer versions, and nobody knows what an image of the user's own holds
    [*SHARED, "model.queryGroups=2", NEW],
    [*SHARED, "model.queryGroups=2", "launchers.megatron-lm.image=registry.example.com/own:1"],
    [*SHARED, "model.queryGroups=2", OLD, "launchers.megatron-lm.program=/own/pretrain_gpt.py"],
    [*SHARED, "model.queryGroups=4", OLD],
    # interleaving
    [*TWO_STAGES],
    ["launcher=nemo-1", *TWO_STAGES[:1], "batch.global=16"],
    ["launcher=nemo-1", "parallelism.pipeline=4", "parallelism.virtualPipeline=3", "batch.global=16"],
    [f"{CONFIG}.no-overlap-p2p-communication=true", "parallelism.pipeline=4", "parallelism.virtualPipeline=3"],
    # connections
    ["env.CUDA_DEVICE_MAX_CONNECTIONS=8"],
    [*SHARED, "env.CUDA_DEVICE_MAX_CONNECTIONS=1"],
    [*MOVED, "parallelism.expert=2", "env.CUDA_DEVICE_MAX_CONNECTIONS=8"],
    # options of a layout
    [*MOVED, *STAGES, "nodes=4", "parallelism.expert=2", "parallelism.virtualPipeline=3"],
    ["launcher=nemo-1", *STAGES, "parallelism.virtualPipeline=3", NEMO_OVERLAPS],
    ["launcher=nemo-1", *STAGES, f"{NEMO_DEFERS}=true"],
    ["launcher=nemo-1", f"{NEMO_DEFERS}=false", NEMO_OVERLAPS],
    [f"{CONFIG}.use-megatron-fsdp=true", "env.CUDA_DEVICE_MAX_CONNECTIONS=32"],
    ["launcher=nemo-1", *SHARED, "env.CUDA_DEVICE_MAX_CONNECTIONS=8"],
    # memory of PyTorch
    [SEGMENTS],
    [SEGMENTS, f"{CONFIG}.cuda-graph-impl=none"],
    [SEGMENTS, f"{CONFIG}.enable-cuda-graph=true", "env.NCCL_GRAPH_REGISTER=0"],
    ["env.PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False", f"{CONFIG}.enable-cuda-graph=true"],
    # overlap
    [f"{CONFIG}.overlap-param-gather=true", f"{CONFIG}.overlap-grad-reduce=true"],
    # positions
    ["launcher=nemo-1", "launchers.nemo-1.config.model.max_position_embeddings=4096"],
    ["launcher=nemo-1", "model.family=llama", "launchers.nemo-1.config.model.max_position_embeddings=1024"],
    # uneven stages
    [*UNEVEN_14],
    [*UNEVEN, "model.layers=16", f"{CONFIG}.decoder-last-pipeline-num-layers=2"],
    [*UNEVEN_14, "parallelism.virtualPipeline=2"],
    # experts
    [*SHARED, *EXPERTS, "parallelism.expertTensor=1", "parallelism.expert=8"],
    [*SHARED, *EXPERTS, "parallelism.expertTensor=4"],
    [*SHARED, *EXPERTS, "parallelism.expertTensor=null", "parallelism.expert=2"],
    [*SHARED, "parallelism.expertTensor=4"],
    ["launcher=nemo-1", *SHARED, *GPT],
    [*GPT, f"{CONFIG}.moe-grouped-gemm=false"],
    [*GPT, NEW, f"{CONFIG}.no-bias-dropout-fusion=true"],
    [*SHARED, *GPT, OLD, f"{CONFIG}.moe-grouped-gemm=false"],
]


@pytest.mark.parametrize("sets", RIGHT)
def test_what_is_right_is_left_alone(sets: list[str]) -> None:
    assert judge(CHECKS, job("gke-a3mega", *sets)) == []


def test_overlapped_messages_interleave_two_stages_of_nemo() -> None:
    assert judge(CHECKS, job("gke-a3mega", "launcher=nemo-1", *TWO_STAGES, json=[OVERLAPPED])) == []


def test_blackwell_needs_no_single_connection_and_has_mxfp8() -> None:
    flags = (*SHARED, "machineType=p6-b200.48xlarge", "env.CUDA_DEVICE_MAX_CONNECTIONS=32", "precision=fp8")
    assert judge(CHECKS, job("eks-p5", *flags, f"{CONFIG}.fp8-recipe=mxfp8")) == []


WRONG = [
    ([*SHARED, "model.queryGroups=2", OLD], "key-value-heads", "parallelism.tensor", "use 2"),
    (
        [*UNEVEN, "model.layers=12"],
        "uneven-stages",
        f"{CONFIG}.decoder-first-pipeline-num-layers",
        "give them 3 layers",
    ),
    ([*UNEVEN_14, "parallelism.virtualPipeline=4"], "uneven-stages", "parallelism.virtualPipeline", "use 1"),
    ([*SHARED, *EXPERTS, "parallelism.expert=4"], "expert-groups", "parallelism.expert", "use 2"),
    (
        ["launcher=mlperf-llama2-lora", *SHARED, *EXPERTS, "parallelism.expertTensor=1"],
        "expert-tensor-of-the-launcher",
        "parallelism.expertTensor",
        "leave it out",
    ),
    ([*MOVED], LAYOUT, "parallelism.expert", "use 2 or more"),
    ([*MOVED, *STAGES, "parallelism.expert=2"], LAYOUT, "parallelism.virtualPipeline", "use 2 or more"),
    (
        ["launcher=nemo-1", *STAGES, NEMO_OVERLAPS],
        "options-of-a-layout",
        "parallelism.virtualPipeline",
        "use 2 or more",
    ),
    (["launcher=nemo-1", f"{NEMO_DEFERS}=true"], LAYOUT, "parallelism.pipeline", "use 2 or more"),
    # newer images take biases of experts, older ones never
    ([*GPT, OLD, f"{CONFIG}.no-bias-dropout-fusion=true"], "biases-of-experts", "model.family", "use mixtral"),
    (
        [*SHARED, *GPT, NEW, f"{CONFIG}.moe-grouped-gemm=false"],
        "biases-of-experts",
        "parallelism.expertTensor",
        "use 1, or model.family mixtral",
    ),
]


@pytest.mark.parametrize(("sets", "rule", "key", "hint"), WRONG)
def test_what_is_wrong_gets_a_hint_that_helps(sets: list[str], rule: str, key: str, hint: str) -> None:
    found = [said for said in judge(CHECKS, job("gke-a3mega", *sets)) if said.id == rule]
    assert [(said.key, said.severity) for said in found] == [(key, "error")]
    assert found[0].hint.startswith(hint)


@pytest.mark.parametrize(("kilobytes", "fits"), [(400, True), (1200, False)])
def test_a_configuration_that_no_release_can_hold_is_refused(kilobytes: int, fits: bool) -> None:
    # every number once: text that hardly packs
    text = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(kilobytes * 125))
    flags = [f"launchers.nemo-1.config={json.dumps({'notes': text})}"]
    said = judge(SETTINGS, job("gke-a3mega", "launcher=nemo-1", json=flags))
    assert [each.id for each in said] == ([] if fits else ["configuration-fits-a-release"])
    assert all("Helm keeps 1 MiB at most" in each.message for each in said)


def test_no_published_configuration_is_refused() -> None:
    assert [(name, preset, said) for name, preset, one in published() for said in judge(SETTINGS, one)] == []
