"""The memory of a run's fullest GPU, for any model of data/models.yaml: enough to choose among layouts.

It counts what each matrix keeps for the backward pass with fused attention; chartgen/checks/memory.py does the
same for GPT models in more detail. It knows nothing of modules that a recipe computes again or offloads, so NVIDIA's
published runs without FSDP are at up to 1.56 of a GPU by it, and one of Llama 3 70B on GB300 at 2.74.
"""

from __future__ import annotations

from chartgen.estimator.run import Run, under_way
from chartgen.estimator.step import parameters_of

_BYTES = 2
# Bytes of weight and gradient of a parameter, and of the optimizer's state, which data parallel GPUs share; the second
# pair has gradients and moments in 16 bits. Source: NVIDIA/Megatron-LM core_v0.19.0,
# docs/user-guide/features/dist_optimizer.md.
_STATE = ((6, 12), (4, 8))
# Of logits: in 16 bits, and two copies in 32.
_LOGITS = 8


def memory_of(run: Run) -> float:
    """Return the bytes in use on the fullest GPU."""
    own, shared = _STATE[run.light]
    if run.sharded:
        own, shared = 0, own + shared
    common, routed = parameters_of(run)
    state = common * (own + shared / (run.data * run.context)) + routed * (own + shared / max(run.expert_data, 1))
    first, last = under_way(run.pipeline, run.virtual, run.micro_batches)
    logits = _LOGITS * run.tokens * run.model.vocabulary / run.tensor
    return state + max(_kept(run) * first, _kept(run) * last + logits)


def _kept(run: Run) -> float:
    """Return the bytes that all layers keep of one micro-batch for each stage: inputs and results of matrices."""
    model = run.model
    values: float = sum((each.rows + each.columns) * each.layers for each in model.common())
    values += run.expert_tensor * sum((each.rows + each.columns) * each.layers * each.active for each in model.routed())
    inputs = 2 * model.hidden * model.layers  # of layers that are computed again
    values = values * (1 - run.recomputed) + inputs * run.recomputed
    return values * _BYTES * run.tokens / run.tensor
