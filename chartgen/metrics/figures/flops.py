"""Floating point operations of a training step: those of the model, without recomputation.

One multiplication and one addition count as two operations, the backward pass as twice the forward pass
(arXiv:2104.04473, appendix). Two conventions exist for the attention scores, and a figure is meaningless without
its convention:

- full: every token attends to all tokens. NVIDIA's NeMo tables up to 25.07 (NVIDIA/NeMo @ 8cfedd7,
  nemo/utils/flops_formulas.py), Megatron-LM up to core_v0.11, Google's gpu-recipes.
- causal: every token attends to earlier tokens, which halves the scores. Megatron-LM from core_v0.12.0 on
  (megatron/training/training.py, num_floating_point_operations), Megatron-Bridge's tables from 25.09 on.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Attention: TypeAlias = Literal["full", "causal"]
CONVENTIONS: tuple[Attention, ...] = ("full", "causal")


class Shape(NamedTuple):
    """The sizes of a transformer."""

    layers: int  # transformer layers
    hidden: int  # hidden size
    feed_forward: int  # size between the two halves of a feed-forward block, or of an expert
    heads: int  # attention heads
    groups: int  # groups of heads that share keys and values; equal to heads without sharing
    head: int  # size of a head
    vocabulary: int  # number of tokens of the output layer
    gated: bool = False  # whether feed-forward blocks have a gate, such as SwiGLU: three matrices instead of two
    routed: int = 1  # experts that each token visits; 1 without experts


def sample_flops(shape: Shape, sequence: int, attention: Attention, *, lora: bool = False) -> float:
    """Count the operations of one sample, forward and backward.

    With LoRA the frozen matrices do not need gradients, which leaves two thirds; the adapters are not counted
    (NVIDIA-NeMo/Megatron-Bridge @ 0494433, src/megatron/bridge/training/utils/flop_utils.py).

    Args:
        sequence: Tokens of a sample.
        lora: Whether only adapters are trained.
    """
    queries, shared = shape.heads * shape.head, shape.groups * shape.head
    projections = 2 * sequence * shape.hidden * (2 * queries + 2 * shared)
    matrices = 3 if shape.gated else 2
    feed_forward = 2 * matrices * sequence * shape.hidden * shape.feed_forward * shape.routed
    output = 2 * sequence * shape.hidden * shape.vocabulary
    scores = 4 * sequence * sequence * queries / (2 if attention == "causal" else 1)
    linear = shape.layers * (projections + feed_forward) + output
    return (2 if lora else 3) * linear + 3 * shape.layers * scores
