"""Memory of the fullest GPU of a run: model state, activations and logits, estimated before a GPU is occupied.

The formulas are those of Megatron-LM's own report (megatron/training/theoretical_memory_usage.py at core_v0.19.0),
which follows table 2 of arXiv:2205.05198, with four corrections: context parallel GPUs share a sequence, SwiGLU keeps
6 bytes of each feed-forward value instead of 4 unless it computes in 8 bits, gradients may be reduced in 16 bits, and
the output layer makes two copies of the logits in 32 bits. A Llama 3 8B run that NVIDIA has logged takes 70.8 GB;
the estimate is 71.5, and 66 at least (NVIDIA/dgxc-benchmarking, Llama 3.1 README).

Every estimate has a margin, down to the memory that the run always keeps: the report counts query, key and value heads
as equally many, dropout masks that Llama does not use, inputs of linear layers in 16 bits even if they are kept in
8 or 4, and a loss that is not fused. A run is rejected only if it does not fit even without all of that.

The formulas apply if Megatron pretrains a GPT model with fused attention. Other programs, sharded data parallelism
(FSDP), offloading, adapters and recomputation of chosen modules are not estimated, which `check` reports.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

from chartgen.checks.activations import kept_activations, kept_at_least, tokens
from chartgen.checks.job import Job
from chartgen.checks.options import options

GB = 1e9
# Programs that the formulas describe, wherever an image contains them.
PROGRAMS = frozenset(("pretrain_gpt.py", "megatron_gpt_pretraining.py", "run_recipe.py"))
# Parts of the names of options that change a GPU's memory in ways that these formulas do not cover.
_OTHERWISE = ("fsdp", "offload", "precision_aware", "peft", "lora", "recompute_modules")
# Options for a loss whose gradient overwrites the logits (Transformer Engine's cross entropy).
_FUSED_LOSS = ("cross_entropy_loss_fusion", "cross_entropy_fusion_impl")


class Memory(NamedTuple):
    """Memory of the fullest GPU; all but the first field in bytes.

    Args:
        parameters: Parameters on it: a pipeline stage's layers and one embedding, shared by its tensor parallel GPUs.
        state: Weights, gradients and the optimizer's state of those parameters.
        activations: Values that the first pipeline stage keeps for the backward pass.
        logits: The output layer's results, on the last pipeline stage.
        total: The fuller of the first and the last stage: logits count only where activations are fewer, except
            without a pipeline, where one GPU has both.
        least: The part of the total that the run keeps even if its program saves memory; the rest is the margin.
    """

    parameters: float
    state: float
    activations: float
    logits: float
    total: float
    least: float

    def __str__(self) -> str:
        parts = f"{self.state / GB:.0f} state, {self.activations / GB:.0f} activations, {self.logits / GB:.0f} logits"
        return f"{self.total / GB:.0f} GB ({parts}), at least {self.least / GB:.0f} GB,"


def estimate_memory(job: Job) -> Memory | None:
    """Estimate the memory of a job's fullest GPU; None if the formulas do not apply."""
    if unestimated(job):
        return None
    dense, experts = _parameters(job)
    copies = max(job.world // job.expert_parallel, 1)
    state = dense * _bytes(job, job.data_parallel * job.parallel("context")) + experts * _bytes(job, copies)
    most = kept_activations(job)
    logits = 8 * _logits(job)
    total = state + max(most.first, most.last + logits) + most.once
    least = kept_at_least(job)
    # the fused loss keeps 16 bits of each logit, the other one also 32 bits
    loss = (2 if _fused_loss(job) else 6) * _logits(job)
    lower = state + max(least.first, least.last + loss) + least.once
    return Memory(dense + experts, state, most.first + most.once, logits, total, min(lower, total))


def model_parameters(job: Job) -> float:
    """Return the number of parameters of the whole model with embeddings and norms, as in Megatron-LM's report."""
    gpt = job.values["model"]["family"] == "gpt"
    attention, feed_forward = _layer(job)
    layers = job.model("layers") * (attention + feed_forward * max(job.model("experts"), 1))
    final_norm = job.model("hiddenSize") * (2 if gpt else 1)
    return layers + final_norm + _embedding(job) * (1 if job.ties_embeddings else 2)


def unestimated(job: Job) -> str:
    """Return why the formulas do not describe a job: its program, or options; empty if they do."""
    if not job.describes_model:
        return str(job.own[job.launcher.own_model])
    program = PurePosixPath(job.own.get("program") or job.launcher.program).name
    if program not in PROGRAMS:
        return program or job.launcher.name
    found = (name for name, value in options(job) if value and any(part in name for part in _OTHERWISE))
    return ", ".join(dict.fromkeys(found))


def _layer(job: Job) -> tuple[float, float]:
    """Count the parameters of a layer: attention and norms, and one feed-forward block (with experts, of several)."""
    hidden, gpt = job.model("hiddenSize"), job.values["model"]["family"] == "gpt"
    attention = 2 * hidden * hidden * (1 + job.model("queryGroups") / job.model("attentionHeads"))
    norms = 2 * hidden * (2 if gpt else 1)
    return attention + norms, 2 * hidden * job.model("ffnHiddenSize") * (1 if gpt else 1.5)


def _embedding(job: Job) -> int:
    return job.model("hiddenSize") * job.model("vocabularySize")


def _parameters(job: Job) -> tuple[float, float]:
    """Count the parameters on the fullest GPU: those that all GPUs have, and those of its experts.

    The layers are divided as a fraction: if embedding and output layer count as layers, as with the 126 of Llama 3.1
    405B in 8 stages, the first stage has fewer layers and an embedding, which is equal within 3 %.
    """
    tensor, stages, experts = job.parallel("tensor"), job.parallel("pipeline"), job.model("experts")
    attention, feed_forward = _layer(job)
    layers = job.model("layers") / stages
    embeddings = _embedding(job) * (2 if stages == 1 and not job.ties_embeddings else 1)
    if not experts:
        return (layers * (attention + feed_forward) + embeddings) / tensor, 0.0
    sharing = job.parallel("expertTensor") * job.parallel("expert")
    return (layers * attention + embeddings) / tensor, layers * feed_forward * experts / sharing


def _bytes(job: Job, shards: int) -> float:
    """Return the bytes of one parameter: weight and gradient, and the optimizer's share of it.

    Source: NVIDIA/Megatron-LM, docs/user-guide/features/dist_optimizer.md; the distributed optimizer's shards span data
    and context parallel GPUs (NVIDIA-NeMo/Megatron-Bridge, docs/performance-guide.md).
    """
    own, shared = {"fp16": (4, 16), "fp32": (8, 8)}.get(job.values["precision"], (6, 12))
    if own == 6 and _short_gradients(job):
        own = 4
    return own + shared / (shards if job.values["parallelism"]["distributedOptimizer"] else 1)


def _short_gradients(job: Job) -> bool:
    """Report whether gradients are kept in 16 bits: by NeMo's grad_sync_dtype or Megatron-LM's grad-reduce-in-bf16."""
    return any(
        (name == "grad_sync_dtype" and str(value).lower() in ("bf16", "bfloat16"))
        or (name == "grad_reduce_in_bf16" and value is True)
        for name, value in options(job)
    )


def _logits(job: Job) -> float:
    """Return the number of logits of a micro-batch on one GPU of the last stage."""
    return tokens(job) * job.model("vocabularySize") / job.parallel("tensor")


def _fused_loss(job: Job) -> bool:
    """Report whether the loss is Transformer Engine's, whose gradients overwrite the logits."""
    given = dict(options(job))
    return all(str(given.get(name)).lower() in ("true", "te") for name in _FUSED_LOSS)
