"""The estimate of a step: as good as documented on measured runs, and moved by what moves real runs."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from corpus import CORPUS
from fit_speed import covered, error_of, left_out, samples
from judge_speed import judge, main, quantile, run_of

from chartgen.estimator import Estimate, Run, estimate_run
from chartgen.estimator.estimate import fitted_constants, speed_table
from chartgen.estimator.memory import memory_of

MEASURED = CORPUS / "measured-speed.json" if CORPUS else Path("measured-speed.json")
ROW: dict[str, Any] = {
    "container": "26.04",
    "task": "Pre-Training",
    "model": "LLAMA3_70B",
    "system": "DGX-GB300",
    "gpus": 64,
    "precision": "MXFP8",
    "globalBatch": 256,
    "microBatch": 1,
    "sequenceLength": 8192,
    "fsdp": 0,
    "tensor": 1,
    "pipeline": 4,
    "context": 1,
    "virtualPipeline": 5,
    "expert": None,
    "tokensPerSecondPerGpu": 4742,
}


def run(**changes: Any) -> Run:
    found = run_of({**ROW, **changes})
    assert isinstance(found, Run)
    return found


def estimated(one: Run) -> Estimate:
    found = estimate_run(one)
    assert found is not None
    return found


def speed(one: Run) -> float:
    return estimated(one).tokens_per_second_per_gpu.middle


@pytest.mark.skipif(not MEASURED.is_file(), reason="NVIDIA's tables are beside the project, not in it")
def test_measured_runs_are_estimated_as_well_as_documented() -> None:
    found = judge(json.loads(MEASURED.read_text()))
    assert found["judged"] == found["rows"]
    assert found["median"] < 0.05
    assert found["p90"] < 0.13
    assert 0.75 < found["coverage"] < 0.88
    assert found["order"] > 0.95


@pytest.mark.skipif(not MEASURED.is_file(), reason="NVIDIA's tables are beside the project, not in it")
def test_ranges_hold_on_each_gpu_and_not_only_on_average() -> None:
    constants = fitted_constants()
    rows = [(each, error_of(each, constants)) for each in samples(json.loads(MEASURED.read_text()))]
    shares = covered(rows)
    assert [gpu for gpu in speed_table()["measured"]["gpus"] if not 0.75 < shares[gpu] < 0.88] == []


@pytest.mark.full
@pytest.mark.skipif(not MEASURED.is_file(), reason="NVIDIA's tables are beside the project, not in it")
@pytest.mark.parametrize(
    ("key", "median", "most"), [("model", 0.11, 0.235), ("gpu", 0.07, 0.175), ("software", 0.065, 0.18)]
)
def test_what_was_not_fitted_is_estimated_as_well_as_documented(key: str, median: float, most: float) -> None:
    found = left_out(samples(json.loads(MEASURED.read_text())), key, fitted_constants())
    errors = sorted(abs(math.expm1(error)) for _, error in found)
    assert (quantile(errors, 0.5) or 1) < median
    assert (quantile(errors, 0.9) or 1) < most
    assert 0.75 < covered(found, key)["all"] < 0.88


@pytest.mark.parametrize(
    ("model", "system", "gpus", "sequence", "micro", "batch", "speed"),
    [
        ("llama3.2-1b", "DGX-H100", 1, 8192, 2, 16, 56790),
        ("llama3.2-3b", "DGX-H100", 1, 8192, 1, 8, 22899),
        ("llama3.2-1b", "DGX-H200", 1, 8192, 2, 16, 57768),
        ("llama3.2-3b", "DGX-H200", 1, 8192, 1, 8, 23134),
        ("qwen3-4b", "DGX-H200", 1, 4096, 1, 16, 19040),
        ("qwen3-1.7b", "DGX-H200", 2, 4096, 2, 32, 45300),
        ("qwen3-4b", "DGX-H200", 2, 4096, 1, 32, 18954),
        ("llama3.2-3b", "DGX-H200", 2, 4096, 1, 32, 25074),
    ],
)
def test_runs_that_were_predicted_before_they_ran_are_within_a_tenth(
    model: str, system: str, gpus: int, sequence: int, micro: int, batch: int, speed: float
) -> None:
    # tests/gpu/gpt_speed.py with PyTorch 2.11.0 on 2026-11-24 and 26; no row of the fit is of these models, or of one
    # or two GPUs
    single = {"gpus": gpus, "pipeline": 1, "virtualPipeline": 1, "precision": "BF16", "container": "26.06"}
    sizes = {"model": model, "system": system, "sequenceLength": sequence, "microBatch": micro, "globalBatch": batch}
    found = estimated(run(**single, **sizes)).tokens_per_second_per_gpu
    assert found.low < speed < found.high
    assert found.middle == pytest.approx(speed, rel=0.1)


def test_the_parts_of_a_step_add_up_to_it() -> None:
    found = estimated(run())
    assert found.made.seconds == pytest.approx(found.step_seconds.middle)
    assert min(found.made.compute, found.made.exposed_communication, found.made.bubble, found.made.other) > 0
    assert found.tokens_per_second_per_gpu.low < found.tokens_per_second_per_gpu.middle
    assert found.mfu.middle == pytest.approx(found.tflops_per_gpu.middle / 5000)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({}, {"system": "DGX-GB200"}),
        ({}, {"virtualPipeline": 1}),
        ({}, {"globalBatch": 64}),
        ({}, {"precision": "BF16"}),
        ({"tensor": 2}, {"tensor": 2, "system": "DGX-B200"}),
        ({"model": "Qwen3_30B_a3B", "expert": 8, "container": "26.06"}, {"model": "Qwen3_30B_a3B", "expert": 8}),
        ({"model": "Qwen3_30B_a3B", "expert": 8}, {"model": "Qwen3_30B_a3B", "expert": 8, "system": "DGX-B200"}),
    ],
)
def test_what_makes_real_runs_faster_makes_the_estimate_faster(better: dict[str, Any], worse: dict[str, Any]) -> None:
    assert speed(run(**better)) > 1.05 * speed(run(**worse))


@pytest.mark.parametrize(
    ("model", "system", "part", "faster"),
    [
        ("Qwen3_30B_a3B", "DGX-GB200", "attention", True),
        ("DeepSeekV3", "DGX-GB300", "attention", True),
        ("DeepSeekV3", "DGX-GB200", "attention", False),
        ("DeepSeekV3", "DGX-GB200", "head", True),
        ("DeepSeekV3", "DGX-B200", "head", False),
    ],
)
def test_a_recipe_in_mxfp8_calculates_more_in_it_since_26_06(model: str, system: str, part: str, faster: bool) -> None:
    one = run(model=model, system=system, expert=8, container="26.06")
    rest = replace(one.model, fused=[each for each in one.model.fused if each != part])
    assert (speed(one) > 1.005 * speed(replace(one, model=rest))) is faster


def test_recomputation_costs_less_than_a_forward_pass_more() -> None:
    recomputing = speed(replace(run(), recomputed=1.0)) / speed(run())
    assert 3 / 4 < recomputing < 0.9


def test_fsdp_gathers_what_other_gpus_have_and_keeps_less() -> None:
    plain = run(model="Qwen3_30B_a3B", system="DGX-H100", gpus=16, pipeline=1, virtualPipeline=1, expert=8)
    sharded = replace(plain, sharded=True)
    assert memory_of(sharded) < memory_of(plain)
    assert speed(sharded) < speed(plain)
    # experts that no other GPU has are not gathered
    alone = replace(sharded, expert=16)
    gain = speed(replace(alone, sharded=False)) / speed(alone), speed(plain) / speed(sharded)
    assert 1 < gain[0] < gain[1]


def test_experts_beyond_the_nvlink_domain_are_slower() -> None:
    near = run(model="GPT OSS 120B", system="DGX-B200", microBatch=4, pipeline=1, virtualPipeline=1, expert=8)
    assert speed(replace(near, expert=64)) < 0.95 * speed(near)


def test_memory_is_less_with_narrow_inputs_and_with_modules_that_are_computed_again() -> None:
    one = run(model="DeepSeekV3", gpus=256, expert=32, precision="BF16")
    state = memory_of(replace(one, recomputed=1.0))
    kept = {name: memory_of(replace(one, modules=[name])) for name in ("mla_up_proj", "moe_act", "layernorm", "other")}
    assert state < kept["mla_up_proj"] < kept["moe_act"] < kept["layernorm"] < kept["other"] == memory_of(one)
    narrow = [memory_of(replace(one, precision=name)) for name in ("bf16", "mxfp8", "fp8", "nvfp4")]
    assert narrow == sorted(narrow, reverse=True)


@pytest.mark.parametrize(
    "change", [{"model": "Mixtral_8x7B"}, {"system": "DGX-H200"}, {"container": "26.11"}, {"context": 2, "gpus": 128}]
)
def test_what_was_not_measured_widens_the_range(change: dict[str, Any]) -> None:
    known, foreign = estimated(run(precision="FP8")), estimated(run(precision="FP8", **change))
    assert foreign.unmeasured
    assert not known.unmeasured
    width = foreign.step_seconds.high / foreign.step_seconds.low
    assert width > known.step_seconds.high / known.step_seconds.low


def test_a_precision_that_the_gpu_lacks_has_no_figure() -> None:
    assert estimate_run(run(system="DGX-H100", precision="NVFP4")) is None


def test_rows_that_cannot_be_predicted_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd: list[Any] = [{"model": "foo"}, 3, {}, {"model": ["x"]}]
    sizes = ["x", -8, float("nan"), float("inf"), 1e300, {}, True]
    bad = [*odd, *({**ROW, "gpus": size} for size in sizes), {**ROW, "tensor": 128}, {**ROW, "system": "DGX-X1"}]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([ROW, *bad, {**ROW, "tokensPerSecondPerGpu": None}]))
    assert main([str(path), "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["judged"], found["unpredicted"]) == (len(bad) + 2, 1, len(bad))
    assert main([str(path)]) == 0
