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

from chartgen.checks.job import Job, once_for_layouts
from chartgen.estimator.memory import INPUT_BYTES
from chartgen.estimator.run import under_way

GB = 1e9
# Programs that the formulas describe, wherever an image contains them.
PROGRAMS = frozenset(("pretrain_gpt.py", "megatron_gpt_pretraining.py", "run_recipe.py"))
# Parts of the names of options that change a GPU's memory in ways that these formulas do not cover.
_OTHERWISE = ("fsdp", "offload", "precision_aware", "peft", "lora", "recompute_modules")
# Options for a loss whose gradient overwrites the logits (Transformer Engine's cross entropy).
_FUSED_LOSS = ("cross_entropy_loss_fusion", "cross_entropy_fusion_impl")


class Memory(NamedTuple):
    """Memory of the fullest GPU; all but the first field in bytes."""

    # Parameters on it: a pipeline stage's layers and one embedding, shared by its tensor parallel GPUs
    parameters: float
    state: float  # weights, gradients and the optimizer's state of those parameters
    activations: float  # values that the first pipeline stage keeps for the backward pass
    logits: float  # the output layer's results, on the last pipeline stage
    # The fuller of the first and the last stage: logits count only where activations are fewer, except without a
    # pipeline, where one GPU has both
    total: float
    least: float  # the part of the total that the run keeps even if its program saves memory; the rest is the margin

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


@once_for_layouts
def unestimated(job: Job) -> str:
    """Return why the formulas do not describe a job: its program, or options; empty if they do."""
    if not job.describes_model:
        return str(job.own[job.launcher.own_model])
    program = PurePosixPath(job.own.get("program") or job.launcher.program).name
    if program not in PROGRAMS:
        return program or job.launcher.name
    given = job.options.items()
    return ", ".join(name for name, value in given if value and any(part in name for part in _OTHERWISE))


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
    given = job.options
    return str(given.get("grad_sync_dtype")).lower() in ("bf16", "bfloat16") or given.get("grad_reduce_in_bf16") is True


def _logits(job: Job) -> float:
    """Return the number of logits of a micro-batch on one GPU of the last stage."""
    return tokens(job) * job.model("vocabularySize") / job.parallel("tensor")


def _fused_loss(job: Job) -> bool:
    """Report whether the loss is Transformer Engine's, whose gradients overwrite the logits."""
    return all(str(job.options.get(name)).lower() in ("true", "te") for name in _FUSED_LOSS)


# Activations: what the layers of the first and the last pipeline stage keep for the backward pass, in bytes. Sources:
# arXiv:2205.05198, table 2, and NVIDIA/Megatron-LM core_v0.19.0, megatron/training/theoretical_memory_usage.py; for
# what is kept in any case megatron/core/transformer/{attention,mlp,transformer_block}.py of the same version.


class Kept(NamedTuple):
    """Bytes on a GPU."""

    first: float  # what the first stage keeps of all micro-batches under way
    last: float  # the same of the last stage
    once: float  # what exists only once, however many micro-batches there are


def tokens(job: Job) -> float:
    """Return the tokens of a micro-batch that one GPU handles."""
    return int(job.values["sequenceLength"]) / job.parallel("context") * job.micro_batch


def kept_activations(job: Job) -> Kept:
    """Return what Megatron-LM's own report counts; experts count as one feed-forward block.

    With sequence parallelism tensor parallel GPUs share all of a layer: (18 + c x ffn / hidden) bytes for each value of
    a hidden state; without it, each keeps 10 of the 18, and Megatron-LM adds 5 %.
    """
    stages, tensor, vocabulary = job.parallel("pipeline"), job.parallel("tensor"), job.model("vocabularySize")
    narrow = job.values["model"]["family"] == "gpt" or job.values["precision"] in INPUT_BYTES
    layer = _layer_bytes(job, 10, 8 + (4 if narrow else 6) * _inner(job), 1.05)
    values = tokens(job) * job.model("hiddenSize")
    ends = (8 * tokens(job) + values) * stages / tensor
    once = 4 * (values + tokens(job) * vocabulary) / tensor if stages == 1 else 0.0
    return _of_all(job, layer, ends, once)


def kept_at_least(job: Job) -> Kept:
    """Return what a layer keeps in any case.

    The inputs of two norms, in 16 bits; queries, keys and values, and the attention's result; the first linear layer's
    result, which SwiGLU has twice; and the inputs of all linear layers, in the number format that they compute in. In
    16 bits the attention's result is the next layer's input, too.
    """
    entered = INPUT_BYTES.get(job.values["precision"], 2.0)
    groups = job.model("queryGroups") / job.model("attentionHeads")
    attention = 2 * (1 + 2 * groups) + 2 + (entered if entered < 2 else 0)
    feed_forward = (2 if job.values["model"]["family"] == "gpt" else 4) + entered
    layer = _layer_bytes(job, 2 * (2 + entered), attention + feed_forward * _inner(job), 1.0)
    return _of_all(job, layer, 0.0, 0.0)


def _inner(job: Job) -> float:
    return job.model("ffnHiddenSize") / job.model("hiddenSize")


def _shares(job: Job) -> bool:
    """Report whether tensor parallel GPUs share norms and dropout, too."""
    return job.parallel("tensor") == 1 or bool(job.values["parallelism"]["sequence"])


def _layer_bytes(job: Job, outer: float, inner: float, alone: float) -> float:
    """Return the bytes of one layer and micro-batch.

    Args:
        outer: Bytes of each value of a hidden state that only sequence parallelism shares.
        inner: Bytes of each that tensor parallelism shares.
        alone: Factor where nothing but tensor parallelism shares.
    """
    tensor = job.parallel("tensor")
    size = _width(job) * tokens(job) * job.model("hiddenSize")
    return size * ((outer + inner) / tensor if _shares(job) else alone * (outer + inner / tensor))


def _width(job: Job) -> int:
    """Return how many times 16 bits a value has."""
    return 2 if job.values["precision"] == "fp32" else 1


def _of_all(job: Job, layer: float, ends: float, once: float) -> Kept:
    """Return what is kept of all layers and micro-batches, some of which may be computed again."""
    whole, recomputed = _recomputed(job, layer)
    first, last = under_way(job.parallel("pipeline"), job.parallel("virtualPipeline"), job.micro_batches)
    return Kept((whole + ends) * first, (whole + ends) * last, once + recomputed)


def _recomputed(job: Job, layer: float) -> tuple[float, float]:
    """Return the bytes that all layers keep, and those that exist only while layers are computed again.

    A unit of layers that is computed again keeps its input. `uniform` makes units of so many layers of them all;
    `block` makes each of so many layers of a chunk a unit of its own, and leaves the others alone (core_v0.19.0,
    megatron/core/transformer/transformer_block.py).
    """
    layers, recompute = job.model("layers"), job.recompute
    if recompute.granularity != "full":
        return layer * layers, 0.0
    chunk = layers / (job.parallel("pipeline") * job.parallel("virtualPipeline"))
    size = min(recompute.layers, chunk)
    shared = job.parallel("tensor") if _shares(job) else 1
    entered = _width(job) * 2 * tokens(job) * job.model("hiddenSize") / shared
    if recompute.method == "block":
        share = size / chunk
        return layers * (share * entered + (1 - share) * layer), layer
    return layers / size * entered, size * layer
