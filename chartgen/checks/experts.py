"""The sizes of models with experts: which GPUs share them, and what Megatron's experts cannot do.

Sources are files of NVIDIA/Megatron-LM at core_v0.19.0 unless another is named.
"""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.checks.claim import Check, Claim
from chartgen.checks.divisors import divisors
from chartgen.checks.images import can
from chartgen.checks.job import Job
from chartgen.checks.options import options


def experts_need_a_model_with_experts(job: Job) -> Iterator[Claim]:
    """Expert parallel GPUs share a layer's experts evenly, and a token is sent to no more experts than there are."""
    experts, size = job.model("experts"), job.parallel("expert")
    if size > 1 and not experts:
        yield Claim("parallelism.expert", "needs model.experts", "use 1")
    elif experts % size:
        message = f"{size} does not divide {experts} experts"
        yield Claim("parallelism.expert", message, f"use a divisor of {experts}")
    if job.parallel("expertTensor") != job.parallel("tensor") and not experts:
        yield Claim("parallelism.expertTensor", "needs model.experts", "use null")
    if experts and job.model("expertsPerToken") > experts:
        message = f"{job.model('expertsPerToken')} is more than the {experts} experts of a layer"
        yield Claim("model.expertsPerToken", message, f"use {experts} or less")


def expert_groups(job: Job) -> Iterator[Claim]:
    """Experts live on other groups of GPUs than the rest of a layer, and these groups share all GPUs evenly too."""
    tensor, expert, size = job.parallel("expertTensor"), job.parallel("expert"), job.expert_parallel
    special = expert > 1 or tensor != job.parallel("tensor")
    if special and not job.world % job.model_parallel and job.world % size:
        sizes = f"{expert} x expert tensor {tensor} x pipeline {job.parallel('pipeline')} = {size}"
        also = ("parallelism.expertTensor",)
        yield Claim("parallelism.expert", f"{sizes} does not divide {job.world} GPUs", _fewer(job), also)


def _fewer(job: Job) -> str:
    """Say which number of expert parallel GPUs would fit, or how many GPUs are needed where none does."""
    rest = job.parallel("expertTensor") * job.parallel("pipeline")
    sizes = divisors(job.world // rest, job.parallel("expert") - 1) if job.world % rest == 0 else []
    fits = max((size for size in sizes if not job.model("experts") % size), default=0)
    return f"use {fits}" if fits else f"use a multiple of {job.expert_parallel} GPUs"


def expert_tensor_of_the_launcher(job: Job) -> Iterator[Claim]:
    """Experts are shared like the rest of a layer by programs that have no option for another number of GPUs."""
    key = "parallelism.expertTensor"
    if job.parallel("expertTensor") != job.parallel("tensor") and key not in job.launcher.owns:
        yield Claim(key, f"launcher {job.launcher.name} has no option for it", "use null", ("launcher",))


def experts_need_sequence_parallelism(job: Job) -> Iterator[Claim]:
    """With experts, tensor parallel GPUs must share the tokens too; Megatron stops in the first forward pass."""
    if job.model("experts") and job.parallel("tensor") > 1 and not job.values["parallelism"]["sequence"]:
        yield Claim("parallelism.sequence", "a model with experts needs it when tensor is above 1", "use true")


def biases_of_experts(job: Job) -> Iterator[Claim]:
    """Models of family gpt have biases, which Megatron-LM's fast kernel for experts does not take as it is set up."""
    if job.launcher.name != "megatron-lm" or not job.model("experts") or job.values["model"]["family"] != "gpt":
        return
    given, since = dict(options(job)), can(job, "biases of experts")
    fused = since is False or not given.get("no_bias_dropout_fusion")
    if given.get("moe_grouped_gemm") is not False and fused:
        hint = "use mixtral, or set launchers.megatron-lm.config.moe-grouped-gemm to false"
        yield Claim("model.family", "gpt has biases, which grouped experts do not take", hint, ("model.experts",))
    elif since is not False and job.parallel("expertTensor") > 1:
        message = f"experts of family gpt have biases, which {job.parallel('expertTensor')} GPUs cannot share"
        yield Claim("parallelism.expertTensor", message, "use 1, or model.family mixtral", ("parallelism.tensor",))


EXPERTS = (
    Check(
        experts_need_a_model_with_experts,
        "megatron/training/arguments.py, megatron/core/transformer/moe/moe_layer.py",
    ),
    Check(expert_groups, "megatron/core/parallel_state.py"),
    Check(expert_tensor_of_the_launcher, "NVIDIA/NeMo v2.4.0, nemo/collections/nlp/models/language_modeling"),
    Check(experts_need_sequence_parallelism, "megatron/core/transformer/moe/moe_layer.py"),
    Check(
        biases_of_experts,
        "NVIDIA/Megatron-LM core_v0.14.0 and core_v0.19.0, megatron/core/transformer/moe/experts.py, "
        "megatron/core/transformer/transformer_config.py",
    ),
)
