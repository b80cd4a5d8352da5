"""Activations: what the layers of the first and the last pipeline stage keep for the backward pass, in bytes.

Sources: arXiv:2205.05198, table 2, and NVIDIA/Megatron-LM core_v0.19.0, megatron/training/theoretical_memory_usage.py;
for what is kept in any case megatron/core/transformer/{attention,mlp,transformer_block}.py of the same version.
"""

from __future__ import annotations

from typing import NamedTuple

from chartgen.checks.job import Job

_EIGHT_BITS = frozenset(("fp8", "mxfp8", "nvfp4"))
# Bytes of a value that a linear layer keeps of its input. NVFP4 has one 8-bit scale for 16 values of 4 bits, MXFP8 one
# for 32 values (nvidia.github.io/TransformerEngine, FP8 and FP4 primer).
_INPUT = {"fp8": 1.0, "mxfp8": 1 + 1 / 32, "nvfp4": 1 / 2 + 1 / 16}


class Kept(NamedTuple):
    """Bytes on a GPU.

    Args:
        first: What the first stage keeps of all micro-batches under way.
        last: The same of the last stage.
        once: What exists only once, however many micro-batches there are.
    """

    first: float
    last: float
    once: float


def tokens(job: Job) -> float:
    """Return the tokens of a micro-batch that one GPU handles."""
    return int(job.values["sequenceLength"]) / job.parallel("context") * job.micro_batch


def kept_activations(job: Job) -> Kept:
    """Return what Megatron-LM's own report counts; experts count as one feed-forward block.

    With sequence parallelism tensor parallel GPUs share all of a layer: (18 + c x ffn / hidden) bytes for each value of
    a hidden state; without it, each keeps 10 of the 18, and Megatron-LM adds 5 %.
    """
    stages, tensor, vocabulary = job.parallel("pipeline"), job.parallel("tensor"), job.model("vocabularySize")
    narrow = job.values["model"]["family"] == "gpt" or job.values["precision"] in _EIGHT_BITS
    layer = _layer(job, 10, 8 + (4 if narrow else 6) * _inner(job), 1.05)
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
    entered = _INPUT.get(job.values["precision"], 2.0)
    groups = job.model("queryGroups") / job.model("attentionHeads")
    attention = 2 * (1 + 2 * groups) + 2 + (entered if entered < 2 else 0)
    feed_forward = (2 if job.values["model"]["family"] == "gpt" else 4) + entered
    layer = _layer(job, 2 * (2 + entered), attention + feed_forward * _inner(job), 1.0)
    return _of_all(job, layer, 0.0, 0.0)


def _inner(job: Job) -> float:
    return job.model("ffnHiddenSize") / job.model("hiddenSize")


def _shares(job: Job) -> bool:
    """Report whether tensor parallel GPUs share norms and dropout, too."""
    return job.parallel("tensor") == 1 or bool(job.values["parallelism"]["sequence"])


def _layer(job: Job, outer: float, inner: float, alone: float) -> float:
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
    first, last = _in_flight(job)
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


def _in_flight(job: Job) -> tuple[float, float]:
    """Return how many whole models' activations the first and the last pipeline stage keep at the same time.

    The first stage starts 2 (p - 1) + (v - 1) p + 1 of its v chunks before the first backward pass, the last one
    (v - 1) p + 1; without interleaving it is a micro-batch for each stage behind, as far as there are so many
    (megatron/core/pipeline_parallel/schedules.py).
    """
    stages, chunks = job.parallel("pipeline"), job.parallel("virtualPipeline")
    more = (stages - 1) / (stages * chunks)
    if chunks > 1:
        return 1 + more, 1 - more
    return min(1.0, max(job.micro_batches, 1) / stages), 1 - more
