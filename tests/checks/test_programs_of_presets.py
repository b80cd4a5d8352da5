"""Every preset with every program that is said to train its model, and with none that is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from userlib import chartgen

from chartgen.checks import checked
from chartgen.composer.composed import composed_chart
from chartgen.composer.library import open_library
from chartgen.composer.presets import for_values, preset_layers, presets, programs, site_example
from chartgen.composer.target import load_target
from chartgen.helm.values import load_values

TARGET = "gke-a3ultra"
SITE = Path("values/site.gke-a3ultra.example.yaml")
IMAGES = tuple(f"launchers.{each}.image=registry.example.com/x:1" for each in ("torchtitan", "mlperf-llama2-lora"))
# 126 layers cannot be divided by the 8 stages of the preset's own program, which counts embedding and loss as layers.
# The GPU of the target has no NVFP4.
MORE = {
    ("llama3.1-405b", "megatron-lm"): ("parallelism.pipeline=9",),
    ("llama3.1-405b", "nemo-1"): ("parallelism.pipeline=9",),
    ("nemotron-3-super", "megatron-bridge"): ("launchers.megatron-bridge.config.mixed_precision=bf16_mixed",),
}


def errors(preset: str, launcher: str, nodes: int) -> list[str]:
    library = open_library()
    site = site_example(TARGET, library)
    assert site
    files = [*preset_layers(preset, TARGET, library, launcher), site]
    more = MORE.get((preset, launcher), ())
    values = load_values(files, set_values=[f"launcher={launcher}", f"nodes={nodes}", *IMAGES, *more])
    chart = composed_chart("compose", for_values(load_target(TARGET, library), values.data))
    return [str(each) for each in checked(chart, values)[0] if each.severity == "error"]


@pytest.mark.full
@pytest.mark.parametrize("preset", sorted({*presets(open_library())} - {"benchmark", "nccl-test"}))
def test_each_program_of_the_table_trains_the_model(preset: str) -> None:
    for launcher in programs(preset, open_library()):
        assert any(not errors(preset, launcher, nodes) for nodes in (16, 9, 18, 64, 1)), errors(preset, launcher, 16)


def test_an_overlay_of_the_program_takes_the_place_of_the_targets() -> None:
    assert errors("llama3-8b", "torchtitan", 2) == []
    assert errors("qwen3-30b", "automodel", 2) == []


def test_what_does_not_reach_another_program_is_one_list() -> None:
    ran = chartgen("check", TARGET, "--preset", "llama3-8b", "-f", SITE, "--set", "launcher=megatron-lm")
    (line,) = [line for line in ran.stderr.splitlines() if "do not reach" in line]
    assert line.startswith("> the settings of llama3-8b for nemo-1 do not reach megatron-lm: ")
    assert "config.model.hidden_dropout, " in line
    for other in ("nemo-1", "download"):
        ran = chartgen("check", TARGET, "--preset", "llama3-8b", "-f", SITE, "--set", f"launcher={other}")
        assert "do not reach" not in ran.stderr


def test_a_program_does_not_train_the_default_model_instead_of_a_recipes() -> None:
    ran = chartgen("check", TARGET, "--preset", "qwen3-30b", "-f", SITE, "--set", "launcher=megatron-lm")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: preset qwen3-30b has no sizes of its model for megatron-lm: a recipe of megatron-bridge has them; "
        "use megatron-bridge or automodel or torchtitan, or write a values file with the sizes\n"
    )
