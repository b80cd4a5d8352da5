"""The memory of a run's fullest GPU, for any model of data/models.yaml: enough to choose among layouts.

It counts what each matrix keeps for the backward pass with fused attention; chartgen/checks/memory.py does the
same for GPT models in more detail. It knows nothing of what a recipe offloads, nor of modules that it computes again
without a word in the values, so NVIDIA's published runs without FSDP are at up to 1.56 of a GPU by it.
"""

from __future__ import annotations

from chartgen.estimator.run import Run, under_way
from chartgen.estimator.step import parameters_of

_BYTES = 2
# Bytes of a value that a linear layer keeps of its input. NVFP4 has one 8-bit scale for 16 values of 4 bits, MXFP8 one
# for 32 values (nvidia.github.io/TransformerEngine, FP8 and FP4 primer).
INPUT_BYTES = {"fp8": 1.0, "mxfp8": 1 + 1 / 32, "nvfp4": 1 / 2 + 1 / 16}
# Bytes of weight and gradient of a parameter, and of the optimizer's state, which data parallel GPUs share; the second
# pair has gradients and moments in 16 bits. Source: NVIDIA/Megatron-LM core_v0.19.0,
# docs/user-guide/features/dist_optimizer.md.
_STATE = ((6, 12), (4, 8))
# Of weight and gradient where FSDP has gathered them: in 16 and 32 bits.
_GATHERED = 6
# Of logits: in 16 bits, and two copies in 32.
_LOGITS = 8


def memory_of(run: Run) -> float:
    """Return the bytes in use on the fullest GPU."""
    own, shared = _STATE[run.light]
    common, routed = parameters_of(run)
    gathered = 0.0
    if run.sharded:  # the next layer is gathered while one computes
        own, shared = 0, own + shared
        tables = 2 * run.model.hidden * run.model.vocabulary / run.tensor
        gathered = _GATHERED * (tables + 2 * (common + routed - tables) / run.model.layers)
    state = common * (own + shared / (run.data * run.context)) + routed * (own + shared / max(run.expert_data, 1))
    first, last = under_way(run.pipeline, run.virtual, run.micro_batches)
    logits = _LOGITS * run.tokens * run.model.vocabulary / run.tensor
    return state + gathered + max(_kept(run) * first, _kept(run) * last + logits)


def _kept(run: Run) -> float:
    """Return the bytes that all layers keep of one micro-batch for each stage: inputs and results of matrices."""
    model, size = run.model, INPUT_BYTES.get(run.precision, _BYTES)
    kept: float = sum((size * each.rows + _BYTES * each.columns) * each.layers for each in model.common)
    routed = ((size * each.rows + _BYTES * each.columns) * each.layers * each.active for each in model.routed)
    kept += run.expert_tensor * sum(routed) - _spared(run, size)
    inputs = 2 * _BYTES * model.hidden * model.layers  # of layers that are computed again
    return (kept * (1 - run.recomputed) + inputs * run.recomputed) * run.tokens / run.tensor


def _spared(run: Run, size: float) -> float:
    """Return the bytes of a token that modules do not keep which are computed again, by Megatron's names."""
    model, latent, experts = run.model, run.model.latent, run.model.experts
    head = 2 * latent.get("plain", 0) + latent.get("rotary", 0) + latent.get("value", 0)
    blocks = model.attention_layers + model.dense_layers + model.mamba_layers + model.expert_layers
    spared = {
        "mla_up_proj": _BYTES * model.heads * head * model.attention_layers,
        "moe_act": size * run.expert_tensor * experts["ffn"] * experts["active"] * experts["layers"] if experts else 0,
        "layernorm": size * model.hidden * blocks,
    }
    return sum(spared.get(name, 0) for name in run.modules)
