"""What parallel sizes ask of the image's Megatron; how they divide each other is in rules.yaml of the workloads.

Sources are files of NVIDIA/Megatron-LM at core_v0.19.0 unless another is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from chartgen.checks.claim import KeyProblem
from chartgen.checks.images import can
from chartgen.checks.job import Job
from chartgen.checks.options import options
from chartgen.findings import Rule


def divisors(number: int, most: int | None = None) -> list[int]:
    """Return the divisors of a number, smallest first.

    Args:
        number: The number, from 1 on.
        most: The largest divisor that is wanted; None for all.
    """
    small = [size for size in range(1, math.isqrt(number) + 1) if number % size == 0]
    found = small + [number // size for size in reversed(small) if size * size != number]
    return found if most is None else [size for size in found if size <= most]


def key_value_heads(job: Job) -> Iterator[KeyProblem]:
    """Key and value heads are shared by, or repeated on, tensor parallel GPUs; each serves as many attention heads.

    Only newer versions of Megatron repeat them.
    """
    heads, groups, tensor = job.model("attentionHeads"), job.model("queryGroups"), job.parallel("tensor")
    repeated = groups != heads and groups % tensor and not tensor % groups and not heads % groups
    if repeated and not heads % tensor and can(job, "key and value heads repeated on tensor parallel GPUs") is False:
        message = f"{groups} key and value heads are fewer than tensor {tensor}, which {job.image} does not support"
        hint = f"use {divisors(groups, tensor)[-1]}"
        yield KeyProblem("parallelism.tensor", message, hint, ("model.queryGroups",))


def biases_of_experts(job: Job) -> Iterator[KeyProblem]:
    """Models of family gpt have biases, which Megatron-LM's fast kernel for experts does not support by default."""
    if job.launcher.name != "megatron-lm" or not job.model("experts") or job.values["model"]["family"] != "gpt":
        return
    given, since = dict(options(job)), can(job, "biases of experts")
    fused = since is False or not given.get("no_bias_dropout_fusion")
    if given.get("moe_grouped_gemm") is not False and fused:
        hint = "use mixtral, or set launchers.megatron-lm.config.moe-grouped-gemm to false"
        yield KeyProblem(
            "model.family", "gpt has biases, which grouped experts do not support", hint, ("model.experts",)
        )
    elif since is not False and job.parallel("expertTensor") > 1:
        message = f"experts of family gpt have biases, which {job.parallel('expertTensor')} GPUs cannot share"
        yield KeyProblem("parallelism.expertTensor", message, "use 1, or model.family mixtral", ("parallelism.tensor",))


PARALLELISM = (
    Rule.of(
        key_value_heads,
        "megatron/core/transformer/transformer_config.py",
        remedy="`parallelism.tensor`: use …",
    ),
    Rule.of(
        biases_of_experts,
        "NVIDIA/Megatron-LM core_v0.14.0 and core_v0.19.0, megatron/core/transformer/moe/experts.py, "
        "megatron/core/transformer/transformer_config.py",
        remedy="`parallelism.expertTensor`: use 1, or model.family mixtral",
    ),
)
