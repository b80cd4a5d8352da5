"""Options of a program by image: genuine ones pass, others are told with the nearest, and what is not known is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rendered import chart

from chartgen.checks import check
from chartgen.data.program_options import options_of
from chartgen.findings import Finding
from chartgen.helm.values import load_values

# What the parsers of core_v0.12.1 and core_v0.19.2 both had when they ran; read here from their sources.
MEASURED = {
    each.removeprefix("--")
    for each in (Path(__file__).parents[1] / "data" / "megatron-options.txt").read_text().split()
}
CONFIG, ARGS = "launchers.megatron-lm.config", "launchers.megatron-lm.args"
IMAGE = "launchers.megatron-lm.image"
NEMO = "launchers.nemo-1.config"


def told(*sets: str, files: Any = (), name: str = "eks-p5") -> list[Finding]:
    found = check(chart(name=name), load_values(files, set_values=sets))
    return [each for each in found if each.rule.startswith("options-of-")]


def test_options_were_read_as_the_program_makes_them() -> None:
    known = options_of("megatron-lm")
    assert known
    for release in ("25.04", "25.07", "25.11", "26.02", "26.06", "26.08"):
        assert known.for_release(release) >= MEASURED
    assert known.for_release("26.10") == frozenset()
    assert known.always < known.for_release("25.07") < known.ever


@pytest.mark.parametrize(
    ("sets", "key", "near"),
    [
        ((f"{CONFIG}.learning-rate=1",), f"{CONFIG}.learning-rate", "optimizer.learningRate"),
        ((f"{CONFIG}.lr_warmup_iters=1",), f"{CONFIG}.lr_warmup_iters", "optimizer.warmupSteps"),
        ((f"{CONFIG}.moe-aux-loss-coef-f=1",), f"{CONFIG}.moe-aux-loss-coef-f", "moe-aux-loss-coeff"),
        ((f"{ARGS}={{--use-torch-fdsp2}}",), ARGS, "use-torch-fsdp2"),
        ((f"{CONFIG}.lr_warmup_iters=1", f"{IMAGE}=example.com/own:1"), f"{CONFIG}.lr_warmup_iters", "warmupSteps"),
        (("launcher=nemo-1", f"{NEMO}.optim.learnrate=1"), f"{NEMO}.optim.learnrate", "optimizer.learningRate"),
        (("launcher=nemo-1", f"{NEMO}.model.optim.learnrate=1"), f"{NEMO}.model.optim.learnrate", "learningRate"),
        (
            ("launcher=nemo-1", "launchers.nemo-1.args={++model.optim.learnrate=1}"),
            "launchers.nemo-1.args",
            "learningRate",
        ),
    ],
)
def test_an_option_that_does_not_exist(sets: tuple[str, ...], key: str, near: str) -> None:
    (found,) = told(*sets)
    assert (found.rule, found.severity, found.key) == ("options-of-the-program", "warning", key)
    assert near in found.problem.hint


@pytest.mark.parametrize(
    "sets",
    [
        (f"{CONFIG}.use-torch-fsdp2=true", f"{ARGS}={{--no-gradient-accumulation-fusion,--seed=7}}"),
        # argparse takes the beginning of a name
        (f"{ARGS}={{--log-params}}",),
        (f"{CONFIG}.seed=7", f"{IMAGE}=example.com/own:1"),
        (
            "launcher=nemo-1",
            f"{NEMO}.model.optim.sched.constant_steps=5",
            f"{NEMO}.exp_manager.wandb_logger_kwargs.own=1",
        ),
    ],
)
def test_genuine_options_pass(sets: tuple[str, ...]) -> None:
    assert told(*sets) == []


@pytest.mark.parametrize(
    ("image", "rule"),
    [
        ("nvcr.io/nvidia/nemo:25.04", None),
        ("nvcr.io/nvidia/nemo:25.02", "options-of-the-program"),
        ("nvcr.io/nvidia/nemo:26.10", "options-of-an-unknown-image"),
        ("example.com/own:1", "options-of-an-unknown-image"),
    ],
)
def test_options_by_image(image: str, rule: str | None) -> None:
    # fp8-recipe came with the Megatron of 25.04
    found = told(f"{CONFIG}.fp8-recipe=delayed", f"{IMAGE}={image}")
    assert [each.rule for each in found] == [rule] * bool(rule)
    expected = {"options-of-the-program": "warning", "options-of-an-unknown-image": "unchecked"}
    assert all(each.severity == expected[each.rule] for each in found)


def test_a_program_of_ones_own_is_not_checked_and_that_is_said() -> None:
    own = "launchers.megatron-lm.program=/opt/own/train.py"
    assert [each.rule for each in told(own, f"{CONFIG}.anything=1")] == ["options-of-an-unknown-image"]
    assert told(own) == []
    elsewhere = "launchers.megatron-lm.program=/workspace/megatron/pretrain_gpt.py"
    assert [each.rule for each in told(elsewhere, f"{CONFIG}.anything=1")] == ["options-of-the-program"]


@pytest.mark.parametrize(("sets", "count"), [((), 0), (("config.FP8_ACT=1",), 1), (("config.A=1", "config.B=1"), 1)])
def test_variables_of_the_benchmark_are_unchecked_once(sets: tuple[str, ...], count: int) -> None:
    lora = "launchers.mlperf-llama2-lora"
    found = told("launcher=mlperf-llama2-lora", *(f"{lora}.{each}" for each in sets), name="onprem-p8000")
    said = [(each.rule, each.severity, each.key) for each in found]
    assert said == [("options-of-an-unknown-image", "unchecked", f"{lora}.config")] * count
