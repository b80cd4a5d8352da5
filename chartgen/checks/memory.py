"""Memory of the fullest GPU of a run: model state, activations and logits, estimated before a GPU is held.

The formulas are those of Megatron-LM's own report (megatron/training/theoretical_memory_usage.py at core_v0.19.0),
which follows table 2 of arXiv:2205.05198, with four corrections: context parallel GPUs share a sequence, SwiGLU keeps
6 bytes of each feed-forward value instead of 4 unless it computes in 8 bits, gradients may be reduced in 16 bits, and
the output layer makes two copies of the logits in 32 bits. A Llama 3 8B run that NVIDIA has logged takes 70.8 GB,
where this says 71.5 (NVIDIA/dgxc-benchmarking, Llama 3.1 README).

They hold where Megatron pretrains a GPT model with fused attention. Other programs, sharded data parallelism (FSDP),
offloading and adapters are not estimated.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from chartgen.checks.job import Job
from chartgen.checks.options import options

GB = 1e9
# Programs whose memory the formulas describe, wherever an image keeps them.
PROGRAMS = frozenset(("pretrain_gpt.py", "megatron_gpt_pretraining.py"))
# Parts of the names of options that change what a GPU holds in ways that no formula here covers.
_OTHERWISE = ("fsdp", "offload", "precision_aware", "peft", "lora")
_EIGHT_BITS = frozenset(("fp8", "mxfp8", "nvfp4"))


@dataclass(frozen=True)
class Memory:
    """What the fullest GPU holds; all but the first in bytes.

    Args:
        parameters: Parameters on it: a pipeline stage's layers and one embedding, shared by its tensor parallel GPUs.
        state: Weights, gradients and the optimizer's state of those parameters.
        activations: What the first pipeline stage keeps for the backward pass.
        logits: The output layer's results, on the last pipeline stage.
        total: The fuller of the first and the last stage: logits count only where activations are fewer, except
            without a pipeline, where one GPU has both.
    """

    parameters: float
    state: float
    activations: float
    logits: float
    total: float

    def __str__(self) -> str:
        parts = f"{self.state / GB:.0f} state, {self.activations / GB:.0f} activations, {self.logits / GB:.0f} logits"
        return f"{self.total / GB:.0f} GB ({parts})"


def estimate(job: Job) -> Memory | None:
    """Estimate the memory of a job's fullest GPU; None where the formulas do not hold."""
    if not _holds(job):
        return None
    dense, experts = _parameters(job)
    copies = max(job.world // job.expert_parallel, 1)
    state = dense * _bytes(job, job.data_parallel * job.parallel("context")) + experts * _bytes(job, copies)
    first, last = _in_flight(job)
    kept, once = _activations(job)
    logits = 8 * _tokens(job) * job.model("vocabularySize") / job.parallel("tensor")
    fullest = max(kept * first, kept * last + logits)
    return Memory(dense + experts, state, kept * first + once, logits, state + fullest + once)


def model_parameters(job: Job) -> float:
    """Count the parameters of the whole model, embeddings and norms included, as Megatron-LM's report does."""
    gpt = job.values["model"]["family"] == "gpt"
    attention, feed_forward = _layer(job)
    layers = job.model("layers") * (attention + feed_forward * max(job.model("experts"), 1))
    final_norm = job.model("hiddenSize") * (2 if gpt else 1)
    return layers + final_norm + _embedding(job) * (1 if gpt else 2)


def _holds(job: Job) -> bool:
    """Tell whether the formulas describe the job: Megatron pretrains, and nothing moves or shards memory otherwise."""
    program = job.values["launchers"][job.launcher.name].get("program") or job.launcher.program
    changed = (name for name, value in options(job) if value and any(part in name for part in _OTHERWISE))
    return PurePosixPath(program).name in PROGRAMS and not any(changed)


def _layer(job: Job) -> tuple[float, float]:
    """Count the parameters of a layer: attention and norms, and one feed-forward block (of which experts are more)."""
    hidden, gpt = job.model("hiddenSize"), job.values["model"]["family"] == "gpt"
    attention = 2 * hidden * hidden * (1 + job.model("queryGroups") / job.model("attentionHeads"))
    norms = 2 * hidden * (2 if gpt else 1)
    return attention + norms, 2 * hidden * job.model("ffnHiddenSize") * (1 if gpt else 1.5)


def _embedding(job: Job) -> int:
    return job.model("hiddenSize") * job.model("vocabularySize")


def _parameters(job: Job) -> tuple[float, float]:
    """Count the parameters on the fullest GPU: those that all have, and those of its experts.

    The layers are divided as a fraction: where embedding and output layer count as layers, as with the 126 of Llama
    3.1 405B in 8 stages, the first stage has fewer layers and an embedding, which comes to the same within 3 %.
    """
    tensor, stages, experts = job.parallel("tensor"), job.parallel("pipeline"), job.model("experts")
    attention, feed_forward = _layer(job)
    layers = job.model("layers") / stages
    untied = job.values["model"]["family"] != "gpt"
    embeddings = _embedding(job) * (2 if untied and stages == 1 else 1)
    if not experts:
        return (layers * (attention + feed_forward) + embeddings) / tensor, 0.0
    sharing = job.parallel("expertTensor") * job.parallel("expert")
    return (layers * attention + embeddings) / tensor, layers * feed_forward * experts / sharing


def _bytes(job: Job, shards: int) -> float:
    """Give the bytes of one parameter: weight and gradient, and the optimizer's share of it.

    Source: NVIDIA/Megatron-LM, docs/user-guide/features/dist_optimizer.md; the distributed optimizer's shards span data
    and context parallel GPUs (NVIDIA-NeMo/Megatron-Bridge, docs/performance-guide.md).
    """
    own, shared = {"fp16": (4, 16), "fp32": (8, 8)}.get(job.values["precision"], (6, 12))
    if own == 6 and _short_gradients(job):
        own = 4
    return own + shared / (shards if job.values["parallelism"]["distributedOptimizer"] else 1)


def _short_gradients(job: Job) -> bool:
    """Tell whether gradients are kept in 16 bits: by NeMo's grad_sync_dtype or Megatron-LM's grad-reduce-in-bf16."""
    return any(
        (name == "grad_sync_dtype" and str(value).lower() in ("bf16", "bfloat16"))
        or (name == "grad_reduce_in_bf16" and value is True)
        for name, value in options(job)
    )


def _tokens(job: Job) -> float:
    """Give the tokens of a micro-batch that one GPU handles."""
    return int(job.values["sequenceLength"]) / job.parallel("context") * job.micro_batch


def _activations(job: Job) -> tuple[float, float]:
    """Give the bytes that all layers keep of one micro-batch on a GPU, and those that exist only once.

    With sequence parallelism tensor parallel GPUs share all of a layer: (18 + c x ffn / hidden) bytes for each value of
    a hidden state; without it, they all hold 10 of the 18, and Megatron-LM adds 5 %. Full recomputation keeps a layer's
    input, and one whole layer while it is computed again. Experts count as one feed-forward block.
    """
    tensor, hidden, tokens = job.parallel("tensor"), job.model("hiddenSize"), _tokens(job)
    values = tokens * hidden
    shares = tensor == 1 or bool(job.values["parallelism"]["sequence"])
    width = 2 if job.values["precision"] == "fp32" else 1
    narrow = job.values["model"]["family"] == "gpt" or job.values["precision"] in _EIGHT_BITS
    inner = (8 + (4 if narrow else 6) * job.model("ffnHiddenSize") / hidden) / tensor
    layer = width * values * (10 / tensor + inner if shares else 1.05 * (10 + inner))
    ends = (8 * tokens + values) * job.parallel("pipeline") / tensor
    once = 4 * tokens * (hidden + job.model("vocabularySize")) / tensor if job.parallel("pipeline") == 1 else 0.0
    if job.values["recompute"] == "full":
        kept = width * 2 * values / (tensor if shares else 1)
        return kept * job.model("layers") + ends, once + layer
    return layer * job.model("layers") + ends, once


def _in_flight(job: Job) -> tuple[float, float]:
    """Give how many whole models' activations the first and the last pipeline stage keep at the same time.

    The first stage starts 2 (p - 1) + (v - 1) p + 1 of its v chunks before the first backward pass, the last one
    (v - 1) p + 1; without interleaving it is a micro-batch for each stage behind, as far as there are so many
    (megatron/core/pipeline_parallel/schedules.py).
    """
    stages, chunks = job.parallel("pipeline"), job.parallel("virtualPipeline")
    more = (stages - 1) / (stages * chunks)
    if chunks > 1:
        return 1 + more, 1 - more
    return min(1.0, max(job.micro_batches, 1) / stages), 1 - more
