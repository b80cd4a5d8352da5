"""The estimate of a GPU's memory against published numbers, and the checks that are made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from published_runs import B200, GB200, H100, H200, Run, job_of, memory_of
from rendered import chart, target

from chartgen.checks import effective_values
from chartgen.checks.job import Job
from chartgen.checks.memory import GB, estimate_memory, model_parameters
from chartgen.checks.memory_fit import CAPACITY, changed, load_of, remedies
from chartgen.checks.program_settings import PARALLELISM
from chartgen.composer.library import open_library
from chartgen.composer.target import load_target
from chartgen.data.gpus import all_gpus, find_gpu
from chartgen.findings import KeyProblem
from chartgen.helm.values import load_values

VALUES = Path(__file__).parents[2] / "values"
TARGETS = open_library().names("target")


def claims_of(job: Job) -> list[KeyProblem]:
    return [claim for check in CAPACITY for claim in check.function(job)]


def ids_of(job: Job) -> list[str]:
    return [check.id for check in CAPACITY for _ in check.function(job)]


LLAMA_8B = Run("8b", H100, 8, "bf16", 1, 1, 2, 1, 1, 1, 128, 8192)
LLAMA_70B = Run("70b", H100, 64, "bf16", 4, 4, 2, 5, 1, 1, 128, 8192)
LLAMA_70B_FP8 = Run("70b", H100, 64, "fp8", 4, 8, 1, 5, 1, 1, 128, 8192)
LLAMA_405B = Run("405b", H100, 1024, "bf16", 8, 8, 2, 8, 1, 1, 512, 8192)
LLAMA_405B_B200 = Run("405b", B200, 128, "bf16", 4, 8, 2, 8, 1, 1, 64, 8192)
GPT3 = Run("gpt3", H100, 512, "fp8", 4, 8, 1, 6, 1, 2, 2048, 2048)
MIXTRAL = Run("mixtral", H100, 64, "bf16", 1, 4, 1, 8, 8, 1, 256, 4096)

# run, GB of state, GB of activations: NVIDIA's NeMo 2 performance recipes and the NeMo 24.07 summary, computed with
# Megatron-LM's own formulas; in 8 bits SwiGLU keeps 4 bytes of a feed-forward value, in 16 bits 6.
PUBLISHED = [
    (LLAMA_8B, 44.2, 23.1),
    (LLAMA_8B._replace(precision="fp8"), 44.2, 19.4),
    (LLAMA_70B, 31.8, 30.1),
    (LLAMA_70B._replace(precision="fp8"), 31.8, 24.7),
    (LLAMA_70B_FP8, 24.0, 50.6),
    (LLAMA_70B_FP8._replace(precision="bf16"), 24.0, 61.7),
    (LLAMA_405B, 31.1, 44.0),
    (LLAMA_405B._replace(precision="fp8"), 31.1, 36.4),
    (LLAMA_405B_B200, 91.5, 88.1),
    (LLAMA_405B_B200._replace(precision="fp8"), 91.5, 72.8),
    (GPT3, 26.6, 47.2),
    (MIXTRAL, 16.3, 23.0),
    (MIXTRAL._replace(precision="fp8"), 16.3, 18.9),
]


@pytest.mark.parametrize(("run", "state", "activations"), PUBLISHED)
def test_published_runs_are_reproduced(run: Run, state: float, activations: float) -> None:
    memory = memory_of(job_of(run))
    assert memory.state / GB == pytest.approx(state, abs=0.06)
    assert memory.activations / GB == pytest.approx(activations, abs=0.06)


def test_experts_are_shared_by_their_own_tensor_parallel_gpus() -> None:
    same, own = (
        memory_of(job_of(MIXTRAL._replace(tp=2, pp=1, vp=1), **{"parallelism.expertTensor": size})).parameters
        for size in ("null", "1")
    )
    # 8 experts on 8 GPUs: one whole expert of each of the 32 layers, or half of it
    assert own - same == pytest.approx(32 * 3 * 4096 * 14336 / 2)


def test_a_logged_run_took_what_is_estimated() -> None:
    # NVIDIA/dgxc-benchmarking, Llama 3.1 README: allocated 44.27 GB after the start, 70.83 GB at most
    memory = memory_of(job_of(LLAMA_8B))
    assert memory.state / GB == pytest.approx(44.27, rel=0.004)
    assert memory.total / GB == pytest.approx(70.83, rel=0.02)
    assert 0.9 * 70.83 < memory.least / GB < 70.83


@pytest.mark.parametrize(
    ("model", "billions"), [("8b", 8.030), ("70b", 70.554), ("405b", 405.853), ("gpt3", 174.58), ("mixtral", 46.70)]
)
def test_all_parameters_of_a_model(model: str, billions: float) -> None:
    digits = len(str(billions).partition(".")[2].ljust(2, "0"))
    assert round(model_parameters(job_of(LLAMA_8B._replace(model=model))) / 1e9, digits) == billions


@pytest.mark.parametrize(
    ("precision", "distributed", "size"),
    [
        ("bf16", False, 18),
        ("fp16", False, 20),
        ("fp32", False, 16),
        ("bf16", True, 6 + 12 / 8),
        ("fp16", True, 4 + 16 / 8),
        ("fp32", True, 8 + 8 / 8),
        ("fp8", True, 6 + 12 / 8),
    ],
)
def test_bytes_of_a_parameter(precision: str, distributed: bool, size: float) -> None:
    job = changed(
        job_of(LLAMA_8B._replace(precision=precision), gradients="fp32"),
        {"parallelism.distributedOptimizer": distributed},
    )
    memory = memory_of(job)
    assert memory.state / memory.parameters == pytest.approx(size)


def test_what_saves_activations() -> None:
    job = job_of(LLAMA_70B)
    before = memory_of(job).activations
    alone = memory_of(changed(job, {"parallelism.sequence": False})).activations
    again = memory_of(changed(job, {"recompute": "full"})).activations
    # arXiv:2205.05198, table 2: 2 of 18 + 6 x 28672 / 8192 bytes stay of each layer, with one whole layer
    assert again / before == pytest.approx(2 / 39, rel=0.3)
    assert alone > 1.5 * before
    assert memory_of(changed(job, {"recompute": "selective"})).activations == before


def test_a_plain_pipeline_keeps_no_more_micro_batches_than_there_are() -> None:
    # 64 GPUs, 2 copies: 2 samples are 1 micro-batch of each of 8 stages
    plain = job_of(LLAMA_70B_FP8._replace(vp=1))
    few = changed(plain, {"batch.global": 2})
    assert memory_of(few).activations == pytest.approx(memory_of(plain).activations / 8)


def test_logits_count_where_activations_are_few() -> None:
    deep, flat = memory_of(job_of(LLAMA_70B)), memory_of(job_of(LLAMA_8B))
    assert deep.total == deep.state + deep.activations
    assert flat.total == flat.state + flat.activations + flat.logits
    assert flat.logits == 8 * 4096 * 128256


# Published configurations with the GPUs that they ran on: NVIDIA-NeMo/Megatron-Bridge docs/performance-summary.md and
# its archive, NVIDIA/NeMo v2.0.0 docs/source/performance, AI-Hypercomputer/gpu-recipes @ 2e1fd5e src/frameworks.
RAN = [
    *(run for run, _, _ in PUBLISHED if run != LLAMA_70B_FP8._replace(precision="bf16")),
    Run("gpt3", H100, 128, "fp8", 4, 8, 1, 6, 1, 1, 256, 2048),
    Run("llama2-70b", H100, 64, "fp8", 4, 4, 1, 20, 1, 1, 128, 4096),
    Run("gpt3", B200, 512, "fp8", 4, 4, 1, 6, 1, 2, 2048, 2048),
    Run("8b", B200, 8, "fp8", 1, 1, 1, 1, 1, 2, 128, 8192),
    Run("mixtral", B200, 64, "fp8", 1, 1, 1, 1, 8, 2, 256, 4096),
    Run("405b", H100, 1024, "fp8", 8, 8, 2, 8, 1, 1, 1536, 8192),
    Run("70b", GB200, 64, "mxfp8", 2, 4, 1, 5, 1, 1, 256, 8192),
    Run("70b", H200, 256, "fp8", 2, 4, 1, 20, 1, 1, 1024, 8192),
    Run("405b", GB200, 128, "bf16", 4, 8, 2, 8, 1, 1, 64, 8192),
]
NEMO_1 = [
    Run("gpt3", H100, 256, "fp8", 4, 8, 1, 2, 1, 1, 2048, 2048),
    Run("gpt3-5b", H100, 16, "bf16", 1, 1, 1, 1, 1, 4, 2048, 2048),
    Run("gpt3-5b", H100, 16, "fp8", 1, 1, 1, 1, 1, 4, 2048, 2048),
    Run("70b", H100, 128, "fp8", 4, 4, 2, 5, 1, 1, 1024, 8192),
    Run("70b", H100, 256, "bf16", 4, 4, 2, 4, 1, 1, 2048, 8192),
    Run("mixtral", H100, 256, "bf16", 1, 4, 1, 8, 8, 1, 1024, 4096),
    Run("405b", H200, 576, "bf16", 8, 9, 1, 14, 1, 1, 2016, 8192),
    Run("mixtral", H200, 256, "bf16", 1, 1, 1, 1, 8, 2, 1024, 4096),
    *(Run("70b", B200, gpus, "bf16", 2, 4, 1, 20, 1, 1, 2048, 8192) for gpus in (256, 512, 1024)),
    *(Run("405b", B200, gpus, "bf16", 4, 14, 2, 9, 1, 1, 2016, 8192) for gpus in (224, 448, 896)),
    *(Run("mixtral", B200, gpus, "bf16", 1, 1, 1, 1, 8, 2, 1024, 4096) for gpus in (16, 32, 256, 512, 1024)),
]


@pytest.mark.parametrize("run", RAN)
def test_no_alarm_on_a_published_configuration(run: Run) -> None:
    assert claims_of(job_of(run)) == []


@pytest.mark.parametrize("run", NEMO_1)
def test_no_alarm_on_a_published_nemo_1_configuration_even_with_long_gradients(run: Run) -> None:
    assert claims_of(job_of(run, gradients="fp32")) == []


def preset(name: str, overlay: Path, *sets: str) -> Job:
    files = [VALUES / overlay.name, overlay, VALUES / f"site.{name}.example.yaml"]
    return Job(effective_values(chart(name=name), load_values(files, set_values=sets)), target(name))


OVERFULL = [
    job_of(LLAMA_8B._replace(cp=1)),
    job_of(LLAMA_8B._replace(gpus=1, cp=1)),
    job_of(LLAMA_70B._replace(gpus=32), gradients="fp32"),
    job_of(LLAMA_70B._replace(tp=1, cp=1)),
    job_of(GPT3._replace(gpus=32, mbs=1)),
    job_of(LLAMA_70B_FP8._replace(precision="bf16", mbs=4)),
    changed(job_of(LLAMA_70B_FP8, gradients="fp32"), {"parallelism.distributedOptimizer": False}),
    preset("eks-p5", VALUES / "eks-p5" / "megatron-gpt-310.1b.yaml", "parallelism.sequence=false"),
]


@pytest.mark.parametrize("job", OVERFULL)
def test_a_hint_really_fits(job: Job) -> None:
    load = load_of(job)
    ways = remedies(job)
    assert load
    assert not load.fits
    assert ways
    for way in ways:
        better = changed(job, way)
        lighter = load_of(better)
        assert lighter
        assert lighter.fits
        assert claims_of(better) == []
        assert not [claim for check in PARALLELISM for claim in check.function(better)]


def test_the_message_has_the_numbers_and_a_way_out() -> None:
    job = preset("eks-p5", VALUES / "eks-p5" / "megatron-gpt-310.1b.yaml", "parallelism.sequence=false")
    (claim,) = claims_of(job)
    assert claim.key == "parallelism.sequence"
    assert claim.message == (
        "a GPU may need 94 GB (50 state, 44 activations, 0 logits), at least 86 GB, but its h100-80gb has 85 GB"
    )
    assert claim.hint.startswith("would fit: parallelism.sequence true (64 GB), or recompute full (57 GB)")


def test_too_much_is_an_error_and_what_the_margin_decides_a_warning() -> None:
    severities = {check.id: check.severity for check in CAPACITY}
    assert severities == {
        "memory-is-not-estimated": "unchecked",
        "memory-of-a-gpu": "error",
        "little-memory-left": "warning",
    }
    job = job_of(LLAMA_8B)
    seen = set()
    for vocabulary in range(128_000, 2_000_000, 8_000):
        larger = changed(job, {"model.vocabularySize": vocabulary})
        load = load_of(larger)
        assert load
        ids = ids_of(larger)
        refused, tight = load.certain > 1.05, load.share > 0.95
        assert ids == (["memory-of-a-gpu"] if refused else ["little-memory-left"] if tight else [])
        seen |= {(refused, tight, load.share > 1.05)}
    # fits, nearly full, within the margin, too much
    assert seen == {(False, False, False), (False, True, False), (False, True, True), (True, True, True)}


def test_no_way_out_is_said_too() -> None:
    job = changed(job_of(LLAMA_405B._replace(gpus=8, tp=8, pp=1, cp=1, vp=1)), {"recompute": "full"})
    (claim,) = claims_of(job)
    assert remedies(job) == []
    assert (claim.key, claim.hint) == ("nodes", "use more machines, or larger GPUs")


@pytest.mark.parametrize(
    "launchers",
    [
        {"config": {"model": {"fsdp": True}}},
        {"config": {"model": {"peft": {"peft_scheme": "lora"}}}},
        {"args": ["++model.cpu_offloading=true"]},
        {"program": "/opt/NeMo/examples/nlp/language_modeling/tuning/megatron_gpt_finetuning.py"},
    ],
)
def test_what_the_formulas_do_not_describe_is_not_estimated(launchers: dict[str, Any]) -> None:
    job = job_of(LLAMA_8B._replace(gpus=1, cp=1))
    assert claims_of(job)
    own = {**job.values["launchers"]["nemo-1"], **launchers}
    other = changed(job, {"launchers.nemo-1": own})
    assert estimate_memory(other) is None
    assert ids_of(other) == ["memory-is-not-estimated"]


def test_adapters_and_unknown_gpus_are_not_estimated() -> None:
    lora = preset("onprem-p8000", VALUES / "onprem-p8000" / "llama2-70b-lora.yaml")
    assert estimate_memory(lora) is None
    assert find_gpu("h300-500gb") is None


def test_gradients_of_megatron_lm() -> None:
    job = preset("eks-p5", VALUES / "eks-p5" / "megatron-gpt-7.5b.yaml", "precision=bf16", "parallelism.tensor=1")
    sizes = []
    options: list[dict[str, Any]] = [
        {"config": {}},
        {"config": {"grad-reduce-in-bf16": True}},
        {"args": ["--grad-reduce-in-bf16"]},
    ]
    for given in options:
        memory = memory_of(changed(job, {"launchers.megatron-lm": {**job.values["launchers"]["megatron-lm"], **given}}))
        sizes.append(memory.state / memory.parameters)
    assert sizes == pytest.approx([6 + 12 / 16, 4 + 12 / 16, 4 + 12 / 16])


@pytest.mark.parametrize("name", TARGETS)
def test_every_gpu_of_a_target_is_known(name: str) -> None:
    assert {machine.gpu for machine in load_target(name).machines.values()} <= set(all_gpus())


@pytest.mark.parametrize("gpu", all_gpus().values(), ids=lambda gpu: gpu.model)
def test_rows_of_gpus_make_sense(gpu: Any) -> None:
    nominal = int(gpu.model.rpartition("-")[2].removesuffix("gb"))
    capability = tuple(map(int, gpu.compute_capability.split(".")))
    assert len(gpu.sources) >= 2
    assert nominal * 0.98 < gpu.memory < nominal * 1.08
    speeds = [gpu.tflops[name] for name in ("bf16", "fp8", "fp4") if name in gpu.tflops]
    assert speeds == sorted(speeds)
    assert ("fp8" in gpu.precisions) == ("fp8" in gpu.tflops) == (capability >= (8, 9))
    assert ("mxfp8" in gpu.precisions) == ("nvfp4" in gpu.precisions) == (capability[0] == 10)
