"""Learning rate, warm-up, rotary base and initial weights: one meaning on every launcher."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pod_runner import LORA, LORA_IMAGE, megatron, run
from rendered import VALUES, chart, env, overrides

from chartgen.checks import check, job_of
from chartgen.composer.launcher import load_launcher
from chartgen.composer.library import open_library
from chartgen.composer.rule_facts import PORTABLE
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.helm.values import load_values

OPTIMIZER = {
    "learningRate": 2.5e-4,
    "minLearningRate": 0,
    "warmupSteps": 3,
    "decay": "cosine",
    "weightDecay": 0,
    "clipGradient": 0.5,
}
GIVEN = (f"optimizer={json.dumps(OPTIMIZER)}", "model.initStandardDeviation=0.01")
LLAMA = "model.family=llama"


def nemo(*sets: str, json: tuple[str, ...] = ()) -> dict[str, str]:
    """The overrides that NeMo 1's program gets."""
    return overrides(run("launcher=nemo-1", *sets, json=json))


def findings(*sets: str, files: Any = (), made: Chart | None = None) -> list[Finding]:
    found = check(made or chart(), load_values(files, set_values=sets))
    return [each for each in found if each.key.startswith(("optimizer", "model.", "recompute", "precision"))]


def test_one_optimizer_on_megatron_lm() -> None:
    found = megatron(json=GIVEN)
    expected = {
        "lr": ["0.00025"],
        "min-lr": ["0"],
        "lr-warmup-iters": ["3"],
        "lr-decay-style": ["cosine"],
        "weight-decay": ["0"],
        "clip-grad": ["0.5"],
        "init-method-std": ["0.01"],
    }
    assert {name: found[name] for name in expected} == expected


def test_one_optimizer_on_nemo_1() -> None:
    found = nemo(json=GIVEN)
    expected = {
        "model.optim.lr": "0.00025",
        "model.optim.sched.min_lr": "0",
        "model.optim.sched.warmup_steps": "3",
        "model.optim.sched.name": "'CosineAnnealing'",
        "model.optim.weight_decay": "0",
        "trainer.gradient_clip_val": "0.5",
        "model.init_method_std": "0.01",
    }
    assert {name: found[name] for name in expected} == expected


def test_a_number_with_a_point_may_come_from_set() -> None:
    # Helm takes whole numbers, true, false and null for themselves, and all else for text
    given = ("optimizer.learningRate=2.5e-4", "optimizer.minLearningRate=.00001", "optimizer.clipGradient=0.5")
    found, other = megatron(*given), nemo(*given)
    assert (found["lr"], found["min-lr"], found["clip-grad"]) == (["0.00025"], ["0.00001"], ["0.5"])
    names = ("model.optim.lr", "model.optim.sched.min_lr", "trainer.gradient_clip_val")
    assert [other[name] for name in names] == ["0.00025", "0.00001", "0.5"]
    assert findings(*given) == []


def test_the_benchmark_takes_what_it_has_options_for() -> None:
    found = env(run(LORA_IMAGE, "optimizer.learningRate=0.001", "optimizer.warmupSteps=7", files=LORA))
    assert (found["LR"], found["WARMUP_STEPS"]) == ("0.001", "7")


def test_null_leaves_the_launchers_own() -> None:
    found = megatron()
    assert (found["lr"], found["min-lr"], found["lr-decay-style"]) == (["0.00006"], ["0.000006"], ["cosine"])
    assert "lr-warmup-iters" not in found
    assert not [name for name in nemo() if name.startswith("model.optim.") and name != "model.optim.name"]


@pytest.mark.parametrize(
    ("sets", "base"),
    [
        ((LLAMA,), None),
        ((LLAMA, "model.vocabularySize=128256"), 500000),
        ((LLAMA, "model.vocabularySize=128256", "model.rotaryBase=10000"), 10000),
        ((LLAMA, "model.rotaryBase=1000000"), 1000000),
        (("model.vocabularySize=128256",), None),
    ],
)
def test_llama_3_has_its_own_rotary_base(sets: tuple[str, ...], base: int | None) -> None:
    expected = None if base is None else str(base)
    assert megatron(*sets).get("rotary-base", [None]) == [expected]
    assert nemo(*sets).get("model.rotary_base") == expected


@pytest.mark.parametrize("preset", ["llama3-8b", "llama3-70b"])
def test_presets_of_llama_3_say_it(preset: str) -> None:
    job = job_of(chart(), load_values([VALUES / f"{preset}.yaml"]))
    assert job
    assert job.given("model.rotaryBase") == 500000


@pytest.mark.parametrize(
    ("sets", "untied"),
    [
        ((), False),
        ((LLAMA,), True),
        (("model.tiedEmbeddings=false",), True),
        ((LLAMA, "model.tiedEmbeddings=true"), False),
    ],
)
def test_tied_embeddings(sets: tuple[str, ...], untied: bool) -> None:
    assert ("untie-embeddings-and-output-weights" in megatron(*sets)) == untied
    assert nemo(*sets)["model.share_embeddings_and_output_weights"] == str(not untied).lower()


def test_a_warm_up_that_outlasts_the_run() -> None:
    # NVIDIA/Megatron-LM, optimizer_param_scheduler.py: lr_warmup_steps < lr_decay_steps
    found = megatron("steps=10", "optimizer.warmupSteps=2000")
    assert (found["lr-warmup-iters"], found["lr-decay-iters"]) == (["2000"], ["2001"])


RECOMPUTE = {"granularity": "full", "method": "block", "layers": 2}


def test_recomputation_says_its_layers() -> None:
    given = (f"recompute={json.dumps(RECOMPUTE)}",)
    found, other = megatron(json=given), nemo(json=given)
    names = ("granularity", "method", "num-layers")
    assert [found[f"recompute-{name}"] for name in names] == [["full"], ["block"], ["2"]]
    names = ("granularity", "method", "num_layers")
    assert [other[f"model.activations_checkpoint_{name}"] for name in names] == ["'full'", "'block'", "2"]


@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        ("mxfp8", {"bf16": [], "fp8-format": ["e4m3"], "fp8-recipe": ["mxfp8"]}),
        ("nvfp4", {"bf16": [], "fp4-format": ["e2m1"]}),
    ],
)
def test_number_formats_of_blackwell(precision: str, expected: dict[str, list[str]]) -> None:
    found = megatron(f"precision={precision}", "launchers.megatron-lm.image=nvcr.io/nvidia/nemo:26.02")
    assert {name: found[name] for name in expected} == expected
    assert ("fp8-format" in found) == (precision == "mxfp8")


MEGATRON = ("launcher=megatron-lm", "machineType=p6-b200.48xlarge")


@pytest.mark.parametrize(
    ("sets", "rules"),
    [
        (("precision=nvfp4",), {"precision-of-the-image"}),
        (("precision=nvfp4", "launchers.megatron-lm.image=nvcr.io/nvidia/nemo:25.11"), set()),
        (("precision=mxfp8",), set()),
        (("precision=mxfp8", "launchers.megatron-lm.image=nvcr.io/nvidia/nemo:25.02"), {"precision-of-the-image"}),
        (("precision=mxfp8", "launchers.megatron-lm.image=example.com/own:1"), {"precision-of-an-unknown-image"}),
        (("precision=mxfp8", "sequenceLength=2064"), {"shapes-of-fp8"}),
        (("precision=mxfp8", "launcher=nemo-1"), {"precision-of-the-launcher"}),
    ],
)
def test_formats_by_image(sets: tuple[str, ...], rules: set[str]) -> None:
    made = chart(name="eks-p5")
    found = check(made, load_values(set_values=(*MEGATRON, *sets)))
    about = {"precision-of-the-image", "precision-of-an-unknown-image", "precision-of-the-launcher", "shapes-of-fp8"}
    assert {each.rule for each in found} & about == rules


@pytest.mark.parametrize(
    ("sets", "rule", "key"),
    [
        (("optimizer.decay=linear", "launcher=nemo-1"), "decay-of-the-launcher", "optimizer.decay"),
        (("optimizer.learningRate=1e-6",), "learning-rate-above-its-minimum", "optimizer.minLearningRate"),
        (("model.rotaryBase=10000",), "rotary-base-of-the-family", "model.rotaryBase"),
        (
            ("optimizer.warmupSteps=9", "launchers.megatron-lm.config.lr-decay-iters=9"),
            "warmup-of-the-run",
            "optimizer.warmupSteps",
        ),
        (
            ("optimizer.warmupSteps=9", "steps=0", "launchers.megatron-lm.config.train-samples=9"),
            "warmup-of-the-run",
            "optimizer.warmupSteps",
        ),
        (("recompute.granularity=full", "recompute.layers=5"), "layers-computed-again", "recompute.layers"),
    ],
)
def test_what_a_program_would_refuse(sets: tuple[str, ...], rule: str, key: str) -> None:
    found = findings("launcher=megatron-lm", *sets)
    assert [(each.rule, each.key) for each in found] == [(rule, key)]


def test_a_launcher_without_an_option_refuses_the_value() -> None:
    sets = (LORA_IMAGE, "optimizer.weightDecay=0.1", "model.rotaryBase=10000")
    found = findings(*sets, files=LORA, made=chart(name="onprem-p8000"))
    assert {each.key for each in found} == {"optimizer.weightDecay", "model.rotaryBase"}
    assert {each.rule for each in found} == {"settings-of-the-launcher"}


@pytest.mark.parametrize("name", ["megatron-lm", "nemo-1", "mlperf-llama2-lora"])
def test_what_null_means_is_in_the_readme(name: str) -> None:
    launcher = load_launcher(open_library().find("launcher", name))
    readme = chart(name="onprem-p8000").files["README.md"]
    table = readme.partition("## Meaning of null\n\n")[2].partition("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip(" `") for cell in line.split("|")] for line in table)
    named = {row[1]: row[head.index(name)] for row in rows}
    assert {key: value for key, value in named.items() if value} == {k: str(v) for k, v in launcher.defaults.items()}
    assert launcher.defaults
    # what has no default there is decided by the model's family, or has no option
    without = {key for key, usual in PORTABLE.items() if usual is None} & set(launcher.owns) - set(launcher.defaults)
    assert without <= {"model.rotaryBase", "model.tiedEmbeddings", "wandb.project", "mlflow.experiment"}
