"""Published runs on Oracle's machines, as jobs whose memory is estimated."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from rendered import chart, target

from chartgen.checks import effective_values
from chartgen.checks.job import Job
from chartgen.checks.memory import Memory, estimate_memory
from chartgen.helm.values import load_values

H100, H200, B200, GB200 = "BM.GPU.H100.8", "BM.GPU.H200.8", "BM.GPU.B200.8", "BM.GPU.GB200.4"
MODELS: dict[str, dict[str, Any]] = {
    "8b": {"layers": 32, "hiddenSize": 4096, "ffnHiddenSize": 14336, "attentionHeads": 32, "vocabularySize": 128256},
    "70b": {"layers": 80, "hiddenSize": 8192, "ffnHiddenSize": 28672, "attentionHeads": 64, "vocabularySize": 128256},
    "405b": {
        "layers": 126,
        "hiddenSize": 16384,
        "ffnHiddenSize": 53248,
        "attentionHeads": 128,
        "vocabularySize": 128256,
    },
    "llama2-70b": {
        "layers": 80,
        "hiddenSize": 8192,
        "ffnHiddenSize": 28672,
        "attentionHeads": 64,
        "vocabularySize": 32000,
    },
    "gpt3": {
        "family": "gpt",
        "layers": 96,
        "hiddenSize": 12288,
        "attentionHeads": 96,
        "queryGroups": 96,
        "vocabularySize": 51200,
    },
    "gpt3-5b": {
        "family": "gpt",
        "layers": 24,
        "hiddenSize": 4096,
        "attentionHeads": 32,
        "queryGroups": 32,
        "vocabularySize": 51200,
    },
    "mixtral": {
        "family": "mixtral",
        "layers": 32,
        "hiddenSize": 4096,
        "ffnHiddenSize": 14336,
        "attentionHeads": 32,
        "vocabularySize": 32000,
        "experts": 8,
    },
}


class Run(NamedTuple):
    """One published run: tensor, pipeline, context, virtual and expert parallel sizes, batches, sequence."""

    model: str
    machine: str
    gpus: int
    precision: str
    tp: int
    pp: int
    cp: int
    vp: int
    ep: int
    mbs: int
    gbs: int
    seq: int


def job_of(run: Run, *, gradients: str = "bf16", **values: Any) -> Job:
    """A NeMo 1 job on Oracle's machines; performance recipes reduce gradients in bf16."""
    on = target("oke-h100")
    size = on.machines[run.machine].gpus
    data = {
        "launcher": "nemo-1",
        "machineType": run.machine,
        "nodes": max(run.gpus // size, 1),
        "gpusPerNode": min(run.gpus, size),
        "model": {"family": "llama", "queryGroups": 8, **MODELS[run.model]},
        "sequenceLength": run.seq,
        "parallelism": {
            "tensor": run.tp,
            "pipeline": run.pp,
            "context": run.cp,
            "virtualPipeline": run.vp,
            "expert": run.ep,
            "sequence": run.tp > 1,
        },
        "batch": {"micro": run.mbs, "global": run.gbs},
        "precision": run.precision,
        "launchers": {"nemo-1": {"config": {"model": {"optim": {"grad_sync_dtype": gradients}}}}},
    }
    return Job(
        effective_values(
            chart(name="oke-h100"), load_values(set_json=[json.dumps(data), *(f"{k}={v}" for k, v in values.items())])
        ),
        on,
    )


def memory_of(job: Job) -> Memory:
    found = estimate_memory(job)
    assert found
    return found
