"""`chartgen estimate`: the speed, time and cost of the job that values describe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from answers import answer
from rendered import target
from trainlogs import megatron, steps
from userlib import chartgen

import chartgen as package
from chartgen.checks import effective_values
from chartgen.checks.automatic import speed_on
from chartgen.checks.job import Job
from chartgen.checks.speed import budget_of, run_of_job, speed_of, why_slow
from chartgen.composer.assembly import compose_interface
from chartgen.composer.library import open_library
from chartgen.data.gpus import list_price, why_unpriced
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


def test_each_machine_type_has_a_dated_price_or_a_reason_for_none() -> None:
    machines = {machine for name in open_library().names("target") for machine in target(name).machines}
    for machine in machines:
        assert bool(list_price(machine)) != bool(why_unpriced(machine)), machine
    dates = [price.date for machine in machines if (price := list_price(machine))]
    assert all(re.fullmatch(r"202\d-\d\d", date) for date in dates)


def test_one_target_is_one_answer_and_several_are_a_list() -> None:
    result = chartgen("estimate", "gke-a4", "--preset", "llama3.1-405b", "--output", "json")
    one = answer(result.stdout)
    assert one["stepSeconds"]["low"] < one["stepSeconds"]["middle"] < one["stepSeconds"]["high"]
    assert sum(one["made"].values()) == pytest.approx(one["stepSeconds"]["middle"])
    assert one["unmeasured"]
    words = (
        "gke-a4",
        "gke-a3mega",
        "--preset",
        "llama2-70b-lora",
        "--set",
        "launcher=nemo-1,nodes=4",
        "--output",
        "json",
    )
    several = answer(chartgen("estimate", *words).stdout)["estimates"]
    assert [row["target"] for row in several] == ["gke-a4", "gke-a3mega"]


def test_json_has_what_was_chosen_and_why() -> None:
    words = ("estimate", "gke-a4", "--preset", "llama3-70b", "--output", "json", "--set")
    one = answer(chartgen(*words, "parallelism=auto,checkpoint.enabled=true").stdout)
    assert one["why"] == "parallelism: auto"
    assert {"parallelism.tensor", "parallelism.pipeline", "checkpoint.interval"} <= set(one["chosen"])
    assert answer(chartgen(*words, "precision=fp8").stdout)["why"].startswith("layout of the preset (")
    assert answer(chartgen(*words, "precision=fp8,parallelism.tensor=4").stdout)["chosen"] == {}


@pytest.mark.parametrize(
    ("name", "preset", "sets", "tokens", "layout"),
    [
        ("oke-h100", "llama3-70b", "precision=fp8", 1602, {"tensor": 4, "pipeline": 8}),
        ("gke-a4", "gpt-oss-120b", "nodes=8", 13568, {"expert": 8, "micro": 4}),
    ],
)
def test_a_published_run_is_beside_the_estimate_and_the_list(
    name: str, preset: str, sets: str, tokens: int, layout: dict[str, int]
) -> None:
    words = (name, "--preset", preset, "--set", sets)
    for command in ("estimate", "fit"):
        found = answer(chartgen(command, *words, "--output", "json").stdout)["published"]
        assert (found["tokens"], found["layout"] | layout) == (tokens, found["layout"])
        assert f"{tokens:,} tokens/s" in chartgen(command, *words).output


def test_a_model_without_a_published_run_has_none() -> None:
    words = ("estimate", "oke-h100", "--preset", "megatron-gpt-1.7b", "--output", "json")
    assert answer(chartgen(*words).stdout)["published"] is None


def test_a_job_without_errors_has_its_time_and_cost_in_one_line(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("storage: {data: {from: 'pvc://data'}, outputs: {from: 'pvc://results'}}\nsteps: 1000\n")
    words = ("check", "oke-h100", "--preset", "llama3-70b", "-f", str(site), "--set", "nodes=8")
    line, published = (
        line for line in chartgen(*words).stderr.splitlines() if line.startswith(("  estimate ", "  published "))
    )
    assert "1,602 tokens/s for each of 64 GPUs" in published
    figures = [float(each.replace(",", "")) for each in re.findall(r"[\d,.]*\d", line)]
    assert figures[1] < figures[0] < figures[2]
    assert 1000 in figures
    assert 10 in figures  # dollars of an H100 and hour
    assert "  estimate " not in chartgen(*words, "--set", "launcher=torchtitan").stderr


def job_on(name: str, *sets: str) -> Job:
    found = target(name)
    return Job(effective_values(compose_interface(found), values_of("llama3-8b", *sets)), found)


def test_prices_of_the_values_win_over_list_prices() -> None:
    job = job_on("oke-h100", "estimate.BM\\.GPU\\.H100\\.8.price=3", "estimate.other.price=9")
    own = budget_of(speed_of(job), 1e12)
    assert own
    assert (own.price, own.price_source) == (3, "")


def test_a_machine_that_was_measured_has_its_own_speed_and_a_narrower_range() -> None:
    key = "estimate.a3-ultragpu-8g"
    usual = speed_of(job_on("gke-a3ultra")).estimate
    slow = speed_of(job_on("gke-a3ultra", f"{key}.bf16=540", f"{key}.memory=3450", f"{key}.launches=77")).estimate
    assert usual
    assert slow
    assert 1.15 < slow.step_seconds.middle / usual.step_seconds.middle < 1.35
    assert slow.step_seconds.high / slow.step_seconds.low < usual.step_seconds.high / usual.step_seconds.low
    narrow = speed_of(job_on("gke-a3ultra", f"{key}.nvlink=150")).estimate
    assert narrow
    assert narrow.step_seconds.middle > 1.01 * usual.step_seconds.middle
    # a share of the data sheet's peak
    assert slow.mfu.middle < 0.9 * usual.mfu.middle
    assert [what for what in usual.unmeasured if what not in slow.unmeasured] == ["GPU h200-141gb"]


@pytest.mark.parametrize(
    ("times", "sets", "slow"),
    [
        (1.0, (), False),
        (1.4, (), False),
        (3.0, (), True),
        (3.0, ("profile.enabled=true",), False),
        (3.0, ("launcher=torchtitan",), False),
    ],
)
def test_a_run_is_slow_only_below_the_range_and_70_percent_of_its_estimate(
    times: float, sets: tuple[str, ...], slow: bool
) -> None:
    figure = speed_of(job_on("gke-a3mega")).estimate
    assert figure
    assert (why_slow(job_on("gke-a3mega", *sets), figure.step_seconds.middle * times) is not None) is slow


@pytest.mark.parametrize(
    ("sets", "reason"),
    [
        (("nodes=2", "network.transportCheck=warn"), "network.transportCheck"),
        (("launchers.nemo-1.image=nvcr.io/nvidia/nemo:24.07", "launcher=nemo-1"), "image"),
        (
            ("data.name=pile", "launcher=megatron-lm", "launchers.megatron-lm.image=nvcr.io/nvidia/nemo:26.06"),
            "data.stage",
        ),
        (("data.name=", "launcher=megatron-lm", "launchers.megatron-lm.image=nvcr.io/nvidia/nemo:26.06"), "nccl-test"),
    ],
)
def test_the_likeliest_reason_is_what_nothing_else_has_checked(sets: tuple[str, ...], reason: str) -> None:
    found = why_slow(job_on("gke-a3mega", *sets), 1e6)
    assert found
    assert reason in found.hint


@pytest.mark.parametrize(("seconds", "count", "slow"), [(900.0, 40, True), (900.0, 12, False), (0.01, 40, False)])
def test_metrics_reports_a_run_that_is_far_slower_than_estimated(
    tmp_path: Path, seconds: float, count: int, slow: bool
) -> None:
    log = tmp_path / "training.log"
    log.write_text(megatron(steps([seconds] * count)))
    words = ("metrics", str(log), "--target", "gke-a3mega", "-f", str(VALUES / "llama3-8b.yaml"))
    ran = chartgen(*words, "--set", "batch.global=256")
    assert ("of that speed" in ran.stderr) is slow, ran.stderr


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
