"""Runs that NVIDIA measured are not refused for their memory, and what really does not fit is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from published_runs import B200, GB200, H100, Run, job_of, memory_of

from chartgen.checks.job import Job
from chartgen.checks.memory import GB
from chartgen.checks.memory_fit import TOO_MUCH, changed, load_of
from chartgen.data.gpus import find_gpu

# beside the project, or beside a work tree of it
_PLACES = [folder / "shared" / "corpus" / "performance.json" for folder in Path(__file__).parents]
CORPUS = next((path for path in _PLACES if path.is_file()), _PLACES[0])
B300, GB300 = "BM.GPU.B300.8", "BM.GPU.GB300.4"
SYSTEMS = {"DGX-H100": H100, "DGX-B200": B200, "DGX-B300": B300, "DGX-GB200": GB200, "DGX-GB300": GB300}
MODELS = {"LLAMA3_8B": "8b", "LLAMA3_70B": "70b", "LLAMA3.1_405B": "405b"}
PRECISIONS = {
    "BF16": "bf16",
    "FP8": "fp8",
    "FP8-CS": "fp8",
    "FP8-CS (FP8-MX)": "fp8",
    "MXFP8": "mxfp8",
    "NVFP4": "nvfp4",
}
# Lines of NVIDIA-NeMo/Megatron-Bridge @ 067f987, docs/performance-summary-archive.md. FSDP has a column of its own
# there, which the rows lack; those of 25.11 lack the machine, which the headings say (first line of each).
SHARDED = {201, 204, 306, 307, 403, 404, 487, 488, 553, 564, 589}
HEADINGS = {548: GB300, 561: GB200, 574: B200, 585: H100, 600: ""}
# Two rows of 26.02.01 whose recipe is another: 4 stages of 5 chunks, one sample (v0.3.1,
# scripts/performance/configs/llama/llama3_workload_base_configs.py). As written, their weights alone need 296 GB.
MISPRINTED = {399, 401}

# Megatron-Bridge @ 067f987, perf_recipes/llama/{gb200,b200}; the first two have been refused although they ran.
TIGHT = [
    Run("405b", GB200, 256, "fp8", 4, 16, 1, 4, 1, 1, 1536, 8192),
    Run("405b", GB200, 256, "nvfp4", 4, 16, 1, 4, 1, 1, 1536, 8192),
    Run("405b", GB200, 256, "mxfp8", 4, 16, 1, 8, 1, 1, 1536, 8192),
    Run("8b", GB200, 8, "nvfp4", 1, 1, 1, 1, 1, 4, 128, 8192),
    Run("8b", B200, 8, "nvfp4", 1, 1, 1, 1, 1, 4, 128, 8192),
]


def too_much(job: Job) -> float:
    """How many times a GPU's memory the run needs at least, where that is refused; 0 where it is not."""
    load = load_of(job)
    assert load
    return load.certain if load.certain > TOO_MUCH else 0


def row_of(data: dict[str, Any]) -> Run | None:
    """A row as a run; None for models that values do not describe, and for runs that shard or tune."""
    line = data["line"]
    old = data["system"] in MODELS
    model = MODELS.get(data["system"] if old else data["model"])
    machine = [name for first, name in HEADINGS.items() if first < line][-1] if old else SYSTEMS.get(data["system"])
    precision = PRECISIONS.get(data["precision"])
    if not model or not machine or not precision or data["task"] == "LoRA" or line in SHARDED | MISPRINTED:
        return None
    sizes = (int(data[name] or 1) for name in ("tensor", "pipeline", "context", "virtualPipeline"))
    batch = (int(data[name]) for name in ("microBatch", "globalBatch", "sequenceLength"))
    return Run(model, machine, int(data["gpus"]), precision, *sizes, 1, *batch)  # type: ignore[call-arg]


@pytest.mark.parametrize("run", TIGHT, ids=lambda run: "-".join(map(str, run)))
def test_a_run_that_fits_tightly_is_not_refused(run: Run) -> None:
    job = job_of(run)
    memory, gpu = memory_of(job), find_gpu(job.machine.gpu)
    assert not too_much(job)
    assert gpu
    assert memory.least < gpu.memory * GB
    assert memory.least < memory.total


def test_no_measured_run_is_refused(record_property: Any) -> None:
    if not CORPUS.is_file():
        pytest.skip(f"{CORPUS.name} is not here: NVIDIA's tables are beside the project, not in it")
    rows = json.loads(CORPUS.read_text())
    runs = {row["line"]: run for row in rows if (run := row_of(row))}
    refused = {line: found for line, run in runs.items() if (found := too_much(job_of(run)))}
    print(f"{len(runs)} of {len(rows)} published rows compared")  # noqa: T201
    record_property("compared", len(runs))
    assert refused == {}
    assert len(runs) >= 20


@pytest.mark.parametrize(
    "run",
    [
        # twice the samples, half the stages, no context parallelism, half the machines: each needs more than there is
        TIGHT[3]._replace(mbs=8),
        TIGHT[0]._replace(pp=8),
        TIGHT[0]._replace(mbs=2),
        Run("8b", H100, 8, "bf16", 1, 1, 1, 1, 1, 2, 128, 8192),
    ],
    ids=lambda run: "-".join(map(str, run)),
)
def test_what_does_not_fit_without_the_margin_is_refused(run: Run) -> None:
    assert too_much(job_of(run))


def test_the_margin_is_what_the_program_may_spare() -> None:
    margins = {}
    for precision in ("bf16", "fp8", "mxfp8", "nvfp4"):
        memory = memory_of(job_of(TIGHT[0]._replace(precision=precision)))
        margins[precision] = memory.least
    # inputs of linear layers in 16, 8 and 4 bits; MXFP8 has a scale for 32 values
    assert margins["bf16"] > margins["mxfp8"] > margins["fp8"] > margins["nvfp4"]


def test_a_fused_loss_keeps_the_logits_once() -> None:
    job = job_of(TIGHT[3])
    own = job.values["launchers"]["nemo-1"]
    fused = changed(
        job,
        {
            "launchers.nemo-1": {
                **own,
                "args": ["++model.cross_entropy_loss_fusion=true", "++model.cross_entropy_fusion_impl=te"],
            }
        },
    )
    # 4 bytes of each of 32,768 x 128,256 logits
    assert memory_of(job).least - memory_of(fused).least == pytest.approx(4 * 32768 * 128256)


def test_recomputing_some_layers_keeps_the_others() -> None:
    job = job_of(TIGHT[0])
    kept = {
        name: memory_of(changed(job, {"recompute": value})).activations
        for name, value in {
            "none": "none",
            "word": "full",
            "uniform": {"granularity": "full"},
            "units": {"granularity": "full", "method": "uniform", "layers": 2},
            "block": {"granularity": "full", "method": "block", "layers": 1},
            "all": {"granularity": "full", "method": "block", "layers": 2},
        }.items()
    }
    assert kept["word"] == kept["uniform"]
    assert kept["units"] < kept["word"] < kept["block"] < kept["none"]
    # one of the two layers of a chunk: half of the layers, and one whole layer while it is computed again
    assert kept["block"] == pytest.approx((kept["none"] + kept["all"]) / 2, rel=0.03)
