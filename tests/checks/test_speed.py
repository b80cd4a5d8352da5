"""`chartgen estimate`: the speed, time and cost of the job that values describe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from answers import answer
from rendered import target
from userlib import chartgen

import chartgen as package
from chartgen.checks import effective_values
from chartgen.checks.job import Job
from chartgen.checks.speed import budget_of, run_of_job, speed_on
from chartgen.composer.assembly import compose_interface
from chartgen.errors import ChartgenError
from chartgen.estimator import Run
from chartgen.helm.values import Values, load_values

VALUES = Path(__file__).parents[2] / "values"


def values_of(preset: str, *sets: str, overlay: str = "") -> Values:
    files = [VALUES / f"{preset}.yaml", *([VALUES / overlay / f"{preset}.yaml"] if overlay else [])]
    return load_values(files, set_values=sets)


def run_on(name: str, values: Values) -> Run | str:
    found = target(name)
    return run_of_job(Job(effective_values(compose_interface(found), values), found))


def test_the_run_has_the_sizes_of_the_values() -> None:
    run = run_on("gke-a3mega", values_of("llama3-70b", "nodes=16", "recompute=full"))
    assert isinstance(run, Run)
    assert (run.gpus, run.tensor, run.pipeline, run.virtual, run.context, run.data) == (128, 4, 4, 5, 2, 4)
    assert (run.model.name, run.model.groups, run.sequence, run.precision) == ("llama3-70b", 8, 8192, "bf16")
    assert run.global_batch == 256
    assert run.recomputed == 1
    # 1600 Gb/s of eight adapters, where other H100 machines have 3200
    assert run.hardware.network == 25


def test_a_recipe_has_the_sizes_of_its_model_and_its_own_precision() -> None:
    run = run_on("gke-a4", values_of("qwen3-30b", overlay="gke-a4"))
    assert isinstance(run, Run)
    assert (run.model.name, run.precision, run.sequence) == ("qwen3-30b-a3b", "mxfp8", 4096)


@pytest.mark.parametrize(
    ("name", "preset", "sets"),
    [
        ("gke-a3mega", "llama2-70b-lora", ()),
        ("gke-a3mega", "llama3-8b", ("launcher=torchtitan",)),
        ("oke-h100", "llama3-8b", ("machineType=BM.GPU.RTXPRO.8",)),
        ("gke-a3mega", "nemotron-3-super", ("launchers.megatron-bridge.recipe=mine_config",)),
        ("gke-a3mega", "llama3-8b", ("parallelism.tensor=3",)),
        ("gke-a3mega", "nemotron-3-super", ()),
    ],
)
def test_what_no_formula_covers_has_no_figure(name: str, preset: str, sets: tuple[str, ...]) -> None:
    speed = speed_on(target(name), values_of(preset, *sets))
    assert speed.estimate is None
    assert speed.reason
    with pytest.raises(ChartgenError):
        package.estimate(target(name), values_of(preset, *sets))


def test_training_costs_its_gpu_hours() -> None:
    speed = speed_on(target("oke-h100"), values_of("llama3-70b", overlay="oke-h100"))
    listed, own = budget_of(speed, 1e12), budget_of(speed, 1e12, 2.0)
    assert listed
    assert own
    assert own.cost
    assert own.gpu_hours.middle == pytest.approx(own.days.middle * 24 * speed.gpus)
    assert own.cost.high == pytest.approx(2 * own.gpu_hours.high)
    assert (listed.price, own.price_source) == (10, "")
    assert "2026-04" in listed.price_source


def test_one_target_is_one_answer_and_several_are_a_list() -> None:
    result = chartgen("estimate", "gke-a4", "--preset", "llama3.1-405b", "--output", "json")
    one = answer(result.stdout)
    assert one["stepSeconds"]["low"] < one["stepSeconds"]["middle"] < one["stepSeconds"]["high"]
    assert sum(one["made"].values()) == pytest.approx(one["stepSeconds"]["middle"])
    assert one["unmeasured"]
    words = ("gke-a4", "gke-a3mega", "--preset", "llama2-70b-lora", "--set", "launcher=nemo-1", "--output", "json")
    several = answer(chartgen("estimate", *words).stdout)["estimates"]
    assert [row["target"] for row in several] == ["gke-a4", "gke-a3mega"]


def test_check_explains_the_time_of_a_step() -> None:
    ran = chartgen("check", "gke-a4", "--preset", "llama3.1-405b", "--explain")
    (line,) = (line for line in ran.stderr.splitlines() if line.startswith("step "))
    middle, low, high = map(float, re.findall(r"[0-9.]+", line))
    assert low < middle < high


def test_no_figure_at_all_is_a_failure() -> None:
    result = chartgen("estimate", "gke-a3mega", "--preset", "llama2-70b-lora", "--output", "json")
    assert result.exit_code == 1
    assert answer(result.stdout)["stepSeconds"] is None


@pytest.mark.parametrize(("tokens", "code"), [("1T", 0), ("1.5b", 0), ("300000000", 0), ("0", 2), ("1Q", 2), ("-1", 2)])
def test_tokens_have_a_unit(tokens: str, code: int) -> None:
    words = ("estimate", "gke-a4", "oke-h100", "--preset", "llama3-8b", "--price", "2", "--tokens", tokens)
    assert chartgen(*words).exit_code == code


@pytest.mark.parametrize("command", ["estimate", "fit"])
@pytest.mark.parametrize("given", ["nodes=0", "nodes=abc", "modle.layers=3"])
def test_values_that_do_not_fit_the_schema_have_no_figure(command: str, given: str) -> None:
    ran = chartgen(command, "gke-a3mega", "--preset", "gpt3-175b", "--set", given)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert f"--set {given}: " in ran.stderr
