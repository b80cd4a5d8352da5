"""No false alarm: configurations that NVIDIA has published, with the speed they ran at, pass the checks."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from pairs import chart_of, layers

from chartgen.checks import check
from chartgen.helm.values import load_values

MODELS: dict[str, dict[str, Any]] = {
    "gpt3-175b": {"family": "gpt", "layers": 96, "hiddenSize": 12288, "attentionHeads": 96, "vocabularySize": 51200},
    "llama2-7b": {"family": "llama", "layers": 32, "hiddenSize": 4096, "ffnHiddenSize": 11008, "attentionHeads": 32},
    "llama2-70b": {"family": "llama", "layers": 80, "hiddenSize": 8192, "ffnHiddenSize": 28672, "attentionHeads": 64}
    | {"queryGroups": 8, "vocabularySize": 32000},
    "llama3-8b": {"family": "llama", "layers": 32, "hiddenSize": 4096, "ffnHiddenSize": 14336, "attentionHeads": 32}
    | {"queryGroups": 8, "vocabularySize": 128256},
    "llama3-70b": {"family": "llama", "layers": 80, "hiddenSize": 8192, "ffnHiddenSize": 28672, "attentionHeads": 64}
    | {"queryGroups": 8, "vocabularySize": 128256},
    "llama3.1-405b": {"family": "llama", "layers": 126, "hiddenSize": 16384, "ffnHiddenSize": 53248}
    | {"attentionHeads": 128, "queryGroups": 8, "vocabularySize": 128256},
    "mixtral-8x7b": {"family": "mixtral", "layers": 32, "hiddenSize": 4096, "ffnHiddenSize": 14336}
    | {"attentionHeads": 32, "queryGroups": 8, "vocabularySize": 32000, "experts": 8, "expertsPerToken": 2},
}
MACHINES = {"H100": ("gke-a3mega", "a3-megagpu-8g", 8), "B200": ("eks-p5", "p6-b200.48xlarge", 8)} | {
    "GB200": ("oke-h100", "BM.GPU.GB200.4", 4)
}
# Megatron counts embedding and loss as layers of the 405B model, so that 126 + 2 can be shared by its stages.
SPLIT = {"account_for_embedding_in_pipeline_split": True, "account_for_loss_in_pipeline_split": True}


class Published(NamedTuple):
    """A row of NVIDIA's tables: model, GPU, number, precision; TP, PP, CP, VP, EP; micro and global batch, sequence."""

    model: str
    gpu: str
    gpus: int
    precision: str
    sizes: tuple[int, int, int, int, int]
    batch: tuple[int, int, int]


# NVIDIA NeMo Framework performance summaries 24.07 to 25.07, NVIDIA-NeMo/Megatron-Bridge docs/performance-summary.md
# 25.11 to 26.06, and AI-Hypercomputer/gpu-recipes @ 2e1fd5e, src/frameworks/a3mega/nemo-configs.
ROWS = [
    Published("gpt3-175b", "H100", 128, "fp8", (4, 8, 1, 6, 1), (1, 256, 2048)),
    Published("gpt3-175b", "H100", 256, "fp8", (4, 8, 1, 2, 1), (1, 2048, 2048)),
    Published("gpt3-175b", "H100", 512, "fp8", (4, 8, 1, 6, 1), (2, 2048, 2048)),
    Published("gpt3-175b", "B200", 512, "fp8", (4, 4, 1, 6, 1), (2, 2048, 2048)),
    Published("llama2-70b", "H100", 64, "fp8", (4, 4, 1, 20, 1), (1, 128, 4096)),
    Published("llama2-70b", "H100", 128, "bf16", (4, 4, 1, 20, 1), (1, 256, 4096)),
    Published("llama2-7b", "H100", 16, "bf16", (1, 1, 1, 1, 1), (1, 2048, 4096)),
    Published("llama3-8b", "H100", 8, "fp8", (1, 1, 2, 1, 1), (1, 128, 8192)),
    Published("llama3-8b", "H100", 8, "bf16", (1, 1, 2, 1, 1), (1, 128, 8192)),
    Published("llama3-8b", "B200", 8, "fp8", (1, 1, 1, 1, 1), (2, 128, 8192)),
    Published("llama3-70b", "H100", 64, "fp8", (4, 4, 2, 5, 1), (1, 128, 8192)),
    Published("llama3-70b", "H100", 64, "fp8", (4, 8, 1, 5, 1), (1, 128, 8192)),
    Published("llama3-70b", "H100", 64, "bf16", (4, 4, 2, 5, 1), (1, 128, 8192)),
    Published("llama3-70b", "GB200", 64, "fp8", (2, 4, 1, 5, 1), (1, 256, 8192)),
    Published("llama3.1-405b", "H100", 1024, "fp8", (8, 8, 2, 8, 1), (1, 512, 8192)),
    Published("llama3.1-405b", "H100", 1024, "fp8", (8, 8, 2, 8, 1), (1, 1536, 8192)),
    Published("llama3.1-405b", "B200", 128, "fp8", (4, 8, 2, 8, 1), (1, 64, 8192)),
    Published("mixtral-8x7b", "H100", 64, "bf16", (1, 4, 1, 8, 8), (1, 256, 4096)),
    Published("mixtral-8x7b", "B200", 64, "fp8", (1, 1, 1, 1, 8), (2, 256, 4096)),
]


NEWER = {"image": "nvcr.io/nvidia/nemo:25.07"}  # for Blackwell, and the first release for Arm machines, too


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.model} on {row.gpus} {row.gpu} {row.precision} {row.sizes}"
)
def test_a_published_configuration_passes(row: Published) -> None:
    target, machine, gpus = MACHINES[row.gpu]
    tensor, pipeline, context, virtual, expert = row.sizes
    config: dict[str, Any] = {"optim": {"grad_sync_dtype": "bf16"}}
    if row.model == "llama3.1-405b":
        config |= SPLIT
    found: dict[str, Any] = {
        "launcher": "nemo-1",
        "machineType": machine,
        "nodes": row.gpus // gpus,
        "model": {"name": row.model, "experts": 0, "ffnHiddenSize": None, "queryGroups": None, **MODELS[row.model]},
        "sequenceLength": row.batch[2],
        "precision": row.precision,
        "recompute": "none",
        "parallelism": {"tensor": tensor, "pipeline": pipeline, "context": context, "virtualPipeline": virtual}
        | {"expert": expert, "sequence": tensor > 1},
        "batch": {"micro": row.batch[0], "global": row.batch[1]},
        "launchers": {"nemo-1": {"config": {"model": config}, **(NEWER if row.gpu.lstrip("G")[0] == "B" else {})}},
    }
    flags = [f"{key}={json.dumps(value)}" for key, value in found.items()]
    values = load_values(layers(target, "llama3-70b"), set_json=flags)
    # The published runs were NeMo 2's, which has options that the list of NeMo 1 lacks.
    newer = {("options-of-the-program", name) for name in SPLIT}
    told = [each for each in check(chart_of(target), values) if (each.rule, each.key.split(".")[-1]) not in newer]
    assert [str(each) for each in told] == []
