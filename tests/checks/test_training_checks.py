"""Checks of what makes no sense as a training run."""

from __future__ import annotations

import pytest
from check_helpers import job, judge, published

from chartgen.checks.training import TRAINING
from chartgen.composer.rules import builtin_rules

# A run on real data that nothing is to be said of.
REAL = (
    "data.name=my-gpt2",
    "tokenizer.kind=gpt2",
    "tokenizer.path=/data/gpt2",
    "storage.data.from=pvc://training",
    "storage.outputs.from=pvc://training/outputs",
    "checkpoint.enabled=true",
    "steps=10000",
)
SAVES = ("checkpoint.enabled=true", "storage.outputs.from=pvc://training/outputs")
LORA = ("launcher=mlperf-llama2-lora", "precision=fp8", "checkpoint.enabled=false")
LLAMA = (
    *("model.hiddenSize=8192", "model.attentionHeads=64", "parallelism.tensor=8", "checkpoint.from=/data/model"),
    "launchers.mlperf-llama2-lora.image=example.com/lora:1",
)
NEMO = ("launcher=nemo-1",)
CONFIG = "launchers.megatron-lm.config"
BIG = ("model.layers=96", "model.hiddenSize=12288", "model.attentionHeads=96", "parallelism.tensor=8", *SAVES)
MEASURED = ("checkpoint.enabled=false",)

# --set flags, id, key, a part of the message
WRONG = [
    # evaluation
    ([*LORA, "steps=800", "batch.global=1"], "benchmark-reaches-an-evaluation", "steps", "after 1152 of 1 samples"),
    ([*LORA, "steps=191", "batch.global=8"], "benchmark-reaches-an-evaluation", "steps", "after 192 of 8 samples"),
    (
        [*LORA, "steps=800", "batch.global=1", "launchers.mlperf-llama2-lora.config.VAL_CHECK_INTERVAL=300"],
        "benchmark-reaches-an-evaluation",
        "steps",
        "after 900",
    ),
    (
        [*REAL, "evaluation.batches=32", "evaluation.interval=20000"],
        "evaluation-before-the-end",
        "evaluation.interval",
        "20000 is more than the run's 10000 steps",
    ),
    (
        [*REAL, *MEASURED, "steps=50", "evaluation.batches=32", "evaluation.interval=10"],
        "evaluation-between-measured-steps",
        "evaluation.batches",
        "32 every 10 steps, in a run of 50",
    ),
    (
        [*MEASURED, "steps=100", "evaluation.batches=1", "evaluation.interval=99"],
        "evaluation-between-measured-steps",
        "evaluation.batches",
        "1 every 99 steps",
    ),
    (["evaluation.batches=40", "data.split=100\\,0\\,0"], "evaluation-has-data", "data.split", "100,0,0 keeps nothing"),
    (["evaluation.batches=40", "data.split=99\\,0.0\\,1"], "evaluation-has-data", "data.split", "99,0.0,1"),
    # steps and samples
    ([f"{CONFIG}.train-samples=1000"], "steps-or-samples", f"{CONFIG}.train-samples", "and steps is 10"),
    ([f"{CONFIG}.lr-warmup-samples=10"], "steps-or-samples", f"{CONFIG}.lr-warmup-samples", "counts samples"),
    (["steps=0"], "steps-or-samples", "steps", "no train-samples"),
    (
        ["steps=0", f"{CONFIG}.train-samples=1000", f"{CONFIG}.lr-decay-iters=9"],
        "steps-or-samples",
        f"{CONFIG}.lr-decay-iters",
        "lr-decay-iters counts steps",
    ),
    # checkpoints
    ([*REAL, "checkpoint.interval=20000"], "checkpoint-before-the-end", "checkpoint.interval", "than the run's 10000"),
    ([*MEASURED, "run.maxRestarts=3"], "restarts-need-checkpoints", "run.maxRestarts", "3 restarts"),
    ([*REAL, "storage.outputs.from=memory://"], "checkpoints-outlive-the-pods", "storage.outputs.from", "lost"),
    ([*SAVES, "storage.outputs.from=memory://"], "checkpoints-outlive-the-pods", "storage.outputs.from", "lost"),
    ([*REAL, "storage.outputs.from=disk://"], "checkpoints-are-shared", "storage.outputs.from", "that machine"),
    ([*REAL, *MEASURED, "steps=101"], "training-on-data-saves", "checkpoint.enabled", "101 steps"),
    ([*BIG, "run.gracePeriodSeconds=30"], "grace-for-a-checkpoint", "run.gracePeriodSeconds", "2.4 TB"),
    ([*SAVES, "run.gracePeriodSeconds=0"], "grace-for-a-checkpoint", "run.gracePeriodSeconds", "assumed"),
    (
        [*BIG, "steps=100000", "checkpoint.interval=5000", "run.gracePeriodSeconds=9999"],
        "interval-within-an-hour",
        "checkpoint.interval",
        "5000 steps take",
    ),
    # profiles
    (["profile.enabled=true"], "profile-within-the-steps", "profile.startStep", "41 is not among the 10 steps"),
    (
        ["profile.enabled=true", "profile.startStep=10", "profile.endStep=12"],
        "profile-within-the-steps",
        "profile.startStep",
        "10 is not among the 10 steps",
    ),
    (
        ["profile.enabled=true", "profile.startStep=5", "profile.endStep=4"],
        "profile-within-the-steps",
        "profile.startStep",
        "5 is behind endStep 4",
    ),
    (
        ["steps=100", "profile.enabled=true", "profile.ranks={0,99}"],
        "profiled-ranks-exist",
        "profile.ranks",
        "99 is beyond the 8 ranks",
    ),
    # data
    (["data.stage=true"], "staging-needs-data", "data.stage", "no data set"),
    (
        [*REAL, "data.stage=true", "storage.scratch.from=memory://", "sharedMemory=1827Gi"],
        "room-for-staged-data",
        "storage.scratch.from",
        "all of 1827Gi",
    ),
    (
        [
            *REAL,
            "data.stage=true",
            "storage.scratch.from=memory://",
            "launchers.megatron-lm.resources.limits.memory=200Gi",
        ],
        "room-for-staged-data",
        "storage.scratch.from",
        "all of 200Gi",
    ),
    ([*REAL, "storage.data.from=memory://"], "data-outlives-its-program", "storage.data.from", "is empty"),
    ([*REAL, "tokenizer.kind=none"], "tokenizer-of-the-data", "tokenizer.kind", "none"),
    ([*REAL, "tokenizer.path="], "tokenizer-has-files", "tokenizer.path", "gpt2 needs a directory"),
    (
        [*REAL, *NEMO, "tokenizer.kind=huggingface", "tokenizer.path="],
        "tokenizer-has-files",
        "tokenizer.path",
        "huggingface",
    ),
]

RIGHT = [
    [],
    [*REAL],
    [*LORA, *LLAMA, "steps=1152", "batch.global=1"],
    [*LORA, *LLAMA, "steps=192", "batch.global=8"],
    [*REAL, "evaluation.batches=32", "evaluation.interval=10000"],
    # mock data: nothing is learned, and nothing is lost
    ["evaluation.batches=20", "evaluation.interval=100", "steps=50"],
    ["checkpoint.interval=1000", "steps=10"],
    # the published benchmarks evaluate after the last step
    [*REAL, *MEASURED, "steps=100", "evaluation.batches=32", "evaluation.interval=100"],
    [*REAL, *MEASURED, "steps=100"],
    [*SAVES, "steps=50", "evaluation.batches=32", "evaluation.interval=10"],
    ["data.split=100\\,0\\,0"],
    ["evaluation.batches=40", "data.split=99\\,0.5\\,0.5"],
    [*NEMO, "steps=0"],
    ["steps=0", f"{CONFIG}.train-samples=1000", f"{CONFIG}.lr-decay-samples=900"],
    [f"{CONFIG}.lr-decay-iters=9", f"{CONFIG}.train-samples=null"],
    [*REAL, "checkpoint.interval=10000"],
    [*REAL, "steps=0", f"{CONFIG}.train-samples=100", "checkpoint.interval=20000"],
    [*SAVES, "run.maxRestarts=3"],
    [*REAL, *MEASURED, "steps=100", "storage.outputs.from=memory://"],
    ["run.gracePeriodSeconds=10"],
    [*BIG, "steps=100000", "checkpoint.interval=1", "run.gracePeriodSeconds=9999"],
    [*BIG, "nodes=32", "run.gracePeriodSeconds=30"],
    [*BIG, *MEASURED, "run.gracePeriodSeconds=0"],
    ["steps=100", "profile.enabled=true"],
    ["steps=0", f"{CONFIG}.train-samples=1", "profile.enabled=true"],
    ["steps=42", "profile.enabled=true", "nodes=2", "profile.ranks={0,15}"],
    ["profile.ranks={99}", "profile.startStep=99"],
    [*REAL, "data.stage=true"],
    [*REAL, "data.stage=true", "storage.scratch.from=memory://"],
    [*REAL, "data.directory=/outputs/data", "storage.data.from=memory://"],
    [*NEMO, "tokenizer.kind=gpt2"],
]


@pytest.mark.parametrize(("sets", "rule", "key", "part"), WRONG)
def test_what_makes_no_sense_is_found(sets: list[str], rule: str, key: str, part: str) -> None:
    every = judge(TRAINING, job("gke-a3mega", *sets))
    found = [said for said in every if (said.id, said.key) == (rule, key)]
    assert len(found) == 1, every
    assert part in found[0].message
    assert found[0].hint


@pytest.mark.parametrize("sets", RIGHT)
def test_what_makes_sense_is_left_alone(sets: list[str]) -> None:
    assert judge(TRAINING, job("gke-a3mega", *sets)) == []


def test_no_published_configuration_is_refused() -> None:
    assert [(name, preset, each) for name, preset, one in published() for each in judge(TRAINING, one)] == []


def test_programs_without_gpus_are_not_training() -> None:
    said = judge(TRAINING, job("gke-a3mega", "launcher=download", "data.stage=true", "profile.enabled=true"))
    assert {each.id for each in said} == {"sources-to-fetch"}


def test_a_mount_of_the_users_own_may_hold_the_data() -> None:
    mount = 'extraVolumeMounts=[{"name": "own", "mountPath": "/data/gpt2"}]'
    flags = [*REAL, "storage.data.from=memory://", "data.directory=/data/gpt2"]
    assert judge(TRAINING, job("gke-a3mega", *flags, json=[mount])) == []


def test_the_grace_period_that_is_hinted_at_is_enough() -> None:
    (said,) = judge(TRAINING, job("oke-h100", *BIG, "run.gracePeriodSeconds=30"))
    seconds = said.hint.removeprefix("use ").removesuffix(" or more")
    assert judge(TRAINING, job("oke-h100", *BIG, f"run.gracePeriodSeconds={seconds}")) == []


def test_the_whole_grace_period_counts_with_torchrun_too() -> None:
    (said,) = judge(TRAINING, job("gke-a3mega", *BIG))
    assert (said.id, said.key) == ("grace-for-a-checkpoint", "run.gracePeriodSeconds")
    assert judge(TRAINING, job("gke-a3mega", *BIG, "run.gracePeriodSeconds=9999")) == []


@pytest.mark.parametrize(
    ("prefix", "directory", "count"),
    [("/outputs/set", "/data", 0), ("set", "/data", 1), ("set", "/database", 0), ("/data/set", "/scratch", 1)],
)
def test_only_data_sets_below_the_store_are_in_its_memory(prefix: str, directory: str, count: int) -> None:
    flags = ("storage.data.from=memory://", f"data.prefixes={{{prefix}}}", f"data.directory={directory}", "data.name=")
    said = judge(TRAINING, job("gke-a3mega", *REAL, *flags))
    assert [each.id for each in said].count("data-outlives-its-program") == count


def test_only_what_stops_a_run_is_an_error() -> None:
    told = {each.id: each.severity for each in TRAINING} | {each.id: each.severity for each in builtin_rules()}
    assert {rule for rule, severity in told.items() if severity == "warning"} == {
        "tensor-within-a-machine",
        "evaluation-before-the-end",
        "evaluation-between-measured-steps",
        "checkpoint-before-the-end",
        "restarts-need-checkpoints",
        "checkpoints-are-shared",
        "training-on-data-saves",
        "interval-within-an-hour",
        "queue-of-the-setup",
        "tokenizer-of-the-data",
        "checkpoints-and-mlflow",
        "wandb-has-a-key",
        "network-of-ray",
        "racks-of-spares",
    }
