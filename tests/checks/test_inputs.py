"""Paths outside every mount, names of data with their endings, variables of the start, levels that no topology has."""

from __future__ import annotations

import pytest
from check_helpers import job, judge, published
from pairs import TARGETS
from rendered import target

from chartgen.checks.inputs import INPUTS, reserved
from chartgen.composer.library import BUILTIN

GPT2 = ("tokenizer.kind=gpt2", "tokenizer.path=/data/tokenizer")
NAMED = ("data.name=my-gpt2", *GPT2)
DOWNLOAD = ("launcher=download", "tokenizer.kind=gpt2", "tokenizer.source=hf://gpt2")
PLACED = ("queue.name=a", "topology.mode=preferred")

# --set flags, id, key
WRONG = [
    ([*NAMED, "data.directory=/dta"], "paths-are-mounted", "data.directory"),
    ([*NAMED, "data.directory=/database"], "paths-are-mounted", "data.directory"),
    (["tokenizer.kind=gpt2", "tokenizer.path=/home/me/gpt2"], "paths-are-mounted", "tokenizer.path"),
    (["checkpoint.from=/models/llama"], "paths-are-mounted", "checkpoint.from"),
    ([*DOWNLOAD, "tokenizer.path=/models/gpt2"], "written-paths-are-mounted", "tokenizer.path"),
    (
        [*DOWNLOAD, "tokenizer.path=/data/a", "checkpoint.from=/m", "checkpoint.source=hf://a/b"],
        "written-paths-are-mounted",
        "checkpoint.from",
    ),
    ([*GPT2, "data.name=gpt2_text_document"], "names-of-data-sets", "data.name"),
    ([*GPT2, "data.name=gpt2_text_document.bin"], "names-of-data-sets", "data.name"),
    ([*GPT2, "data.name=gpt2.idx"], "names-of-data-sets", "data.name"),
    (["env.NODE_RANK=0"], "variables-of-the-start", "env.NODE_RANK"),
    (["launcher=nccl-test", "env.MASTER_PORT=6003"], "variables-of-the-start", "env.MASTER_PORT"),
    ([*DOWNLOAD, "tokenizer.path=/data/a", "env.NNODES=2"], "variables-of-the-start", "env.NNODES"),
    (["secretEnv.RANK.secretName=a", "secretEnv.RANK.key=b"], "variables-of-the-start", "secretEnv.RANK"),
    ([*PLACED, "topology.level=cloud.google.com/gce-topology-blok"], "levels-of-the-topology", "topology.level"),
    (
        ["nodes=2", "queue.name=a", "topology.sliceSize=2", "topology.sliceLevel=cloud.google.com/gce-topology-rack"],
        "levels-of-the-topology",
        "topology.sliceLevel",
    ),
    (
        ["setup.quota.resources.a3-megagpu-8.adapters=8"],
        "machine-types-of-the-quota",
        "setup.quota.resources.a3-megagpu-8",
    ),
]
RIGHT = [
    [*NAMED],
    [*NAMED, "data.directory=/outputs/data"],
    ["data.directory=/nowhere"],  # mock data
    ["tokenizer.path=/home/me/gpt2"],  # of no kind
    ["checkpoint.from=/data/llama"],
    [
        *NAMED,
        "data.directory=/models/a",
        "extraVolumes[0].name=m",
        "extraVolumes[0].emptyDir.medium=Memory",
        "extraVolumeMounts[0].name=m",
        "extraVolumeMounts[0].mountPath=/models",
    ],
    [*GPT2, "data.name=text_document_of_gpt2"],
    ["env.NCCL_DEBUG=INFO", "env.PATH=/opt/bin:/usr/bin", "env.WANDB_MODE=offline"],
    ["topology.level=anything"],  # without a mode
    ["topology.sliceLevel=anything"],  # without slices
    [*PLACED],
    ["setup.quota.resources.a3-megagpu-8g.adapters=8", "setup.quota.resources.channels=1"],
]


@pytest.mark.parametrize(("sets", "rule", "key"), WRONG)
def test_what_cannot_be_meant_is_found(sets: list[str], rule: str, key: str) -> None:
    assert [(said.id, said.key) for said in judge(INPUTS, job("gke-a3mega", *sets))] == [(rule, key)]


@pytest.mark.parametrize("sets", RIGHT)
def test_what_can_be_meant_is_left_alone(sets: list[str]) -> None:
    assert judge(INPUTS, job("gke-a3mega", *sets)) == []


def test_a_near_level_is_named() -> None:
    (said,) = judge(INPUTS, job("gke-a3mega", *PLACED, "topology.level=cloud.google.com/gce-topology-blok"))
    assert "gce-topology-block" in said.hint


@pytest.mark.parametrize("name", TARGETS)
def test_the_variables_of_the_start_are_those_of_the_templates(name: str) -> None:
    own = reserved(BUILTIN / "workloads" / target(name).workload)
    assert own >= {"NNODES", "NODE_RANK", "GPUS_PER_NODE", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"}
    assert own >= {"LOCAL_RANK", "RUN_DIRECTORY", "CHECKPOINT_DIRECTORY", "STAGED_DATA", "WORKERS"}
    assert not own & {"PATH", "NCCL_DEBUG", "CUDA_DEVICE_MAX_CONNECTIONS"}


def test_no_published_configuration_has_such_inputs() -> None:
    assert [(name, preset, each) for name, preset, one in published() for each in judge(INPUTS, one)] == []
