"""The sizes that have to divide each other: the limits of Megatron's and NeMo's own start-up checks.

Megatron finds most of these only when all machines are held, some only in the first step. Sources are files of
NVIDIA/Megatron-LM at core_v0.19.0 unless another is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from chartgen.checks.claim import Check, Claim
from chartgen.checks.divisors import divisors
from chartgen.checks.experts import EXPERTS
from chartgen.checks.images import can
from chartgen.checks.job import Job
from chartgen.checks.pipeline import STAGES, own_stages

_ARGUMENTS = "megatron/training/arguments.py"
_SIZES = ("gpusPerNode", "parallelism.pipeline", "parallelism.tensor", "parallelism.context", "parallelism")
# Precision -> what tokens on a GPU, and hidden sizes, are multiples of (TransformerEngine 2.20.2, pytorch/utils.py and
# common/recipe: blocks of 32 with MXFP8, of 16 with NVFP4).
_BLOCKS = {"fp8": (8, 16), "mxfp8": (32, 32), "nvfp4": (16, 16)}
_CONFIG = "megatron/core/transformer/transformer_config.py"


def gpus_of_the_machine(job: Job) -> Iterator[Claim]:
    """A run uses no more GPUs of a machine than it has; more machines are `nodes`."""
    if job.gpus_per_node > job.machine.gpus:
        asked = f"{job.gpus_per_node} is more than the {job.machine.gpus} GPUs of {job.machine.name}"
        yield Claim("gpusPerNode", asked, "raise nodes instead")


def world_size(job: Job) -> Iterator[Claim]:
    """All GPUs are shared out evenly among tensor, pipeline and context parallel groups."""
    if job.world % job.model_parallel:
        sizes = " x ".join(f"{name} {job.parallel(name)}" for name in ("tensor", "pipeline", "context"))
        said = f"{job.world} GPUs ({job.nodes} machines x {job.gpus_per_node}) cannot be divided by {sizes} = "
        yield Claim("nodes", f"{said}{job.model_parallel}", _more_machines(job), _SIZES)


def _more_machines(job: Job) -> str:
    unit = job.model_parallel // math.gcd(job.model_parallel, job.gpus_per_node)
    below = job.nodes // unit * unit
    return f"use {f'{below} or ' if below else ''}{below + unit} machines"


def global_batch(job: Job) -> Iterator[Claim]:
    """A step's samples are shared out evenly among the copies of the model, at least one micro-batch each."""
    unit = job.micro_batch * job.data_parallel
    if not job.world % job.model_parallel and job.global_batch % unit:
        below = job.global_batch // unit * unit
        shares = f"micro batch {job.micro_batch} x data parallel {job.data_parallel} = {unit}"
        message = f"{job.global_batch} is not divisible by {shares}"
        hint = f"nearest: {f'{below} or ' if below else ''}{below + unit}"
        yield Claim("batch.global", message, hint, ("batch.micro", "nodes", *_SIZES))


def interleaved_batches(job: Job) -> Iterator[Claim]:
    """An interleaved pipeline handles micro-batches in groups of its own size; Megatron finds out in the first step."""
    stages = job.parallel("pipeline")
    whole = job.world % job.model_parallel == 0 and job.global_batch % (job.micro_batch * job.data_parallel) == 0
    if whole and job.parallel("virtualPipeline") > 1 and job.micro_batches % stages:
        message = (
            f"{job.global_batch} gives {job.micro_batches} micro-batches, which pipeline {stages} cannot interleave"
        )
        unit = job.micro_batch * job.data_parallel * stages
        yield Claim("batch.global", message, f"use a multiple of {unit}")


def layers_of_a_stage(job: Job) -> Iterator[Claim]:
    """Each pipeline stage, and each of its virtual stages, holds the same number of layers, if nobody says else."""
    layers, stages, chunks = job.pipeline_layers, job.parallel("pipeline"), job.parallel("virtualPipeline")
    message = f"{layers} layers cannot be divided by pipeline {stages} x virtual {chunks}"
    if own_stages(job):
        return
    if layers % stages:
        near = _nearest_divisor(layers // math.gcd(layers, chunks) if layers % chunks == 0 else layers, stages)
        yield Claim("parallelism.pipeline", message, f"pipeline {near} would fit", ("model.layers",))
    elif layers // stages % chunks:
        near = _nearest_divisor(layers // stages, chunks)
        yield Claim("parallelism.virtualPipeline", message, f"{near} would fit", ("parallelism.pipeline",))


def _nearest_divisor(number: int, wanted: int) -> int:
    return min(divisors(number), key=lambda size: abs(size - wanted))


def virtual_needs_pipeline(job: Job) -> Iterator[Claim]:
    """Virtual stages interleave a pipeline: without one there is nothing to interleave."""
    if job.parallel("virtualPipeline") > 1 and job.parallel("pipeline") == 1:
        yield Claim("parallelism.virtualPipeline", "needs pipeline above 1", "use 1")


def heads_of_a_gpu(job: Job) -> Iterator[Claim]:
    """Tensor parallel GPUs share the attention heads evenly."""
    if job.model("attentionHeads") % job.parallel("tensor"):
        message = f"{job.model('attentionHeads')} heads cannot be divided by tensor {job.parallel('tensor')}"
        hint = f"use {_largest_divisor(job.model('attentionHeads'), job)}"
        yield Claim("parallelism.tensor", message, hint, ("model.attentionHeads",))


def _largest_divisor(number: int, job: Job) -> int:
    return divisors(number, job.parallel("tensor"))[-1]


def key_value_heads(job: Job) -> Iterator[Claim]:
    """Key and value heads are shared by, or repeated on, tensor parallel GPUs; each serves as many attention heads.

    Only newer versions of Megatron repeat them.
    """
    groups, tensor = job.model("queryGroups"), job.parallel("tensor")
    repeats = can(job, "key and value heads repeated on tensor parallel GPUs")
    if job.model("attentionHeads") % groups:
        message = f"{groups} key and value heads do not divide {job.model('attentionHeads')} attention heads"
        yield Claim("model.queryGroups", message, "use a divisor")
    elif groups != job.model("attentionHeads") and groups % tensor and tensor % groups:
        message = f"{groups} key and value heads are neither a multiple nor a divisor of tensor {tensor}"
        yield Claim("parallelism.tensor", message, f"use {_largest_divisor(groups, job)}")
    elif groups % tensor and repeats is False and not job.model("attentionHeads") % tensor:
        message = f"{groups} key and value heads are fewer than tensor {tensor}, which {job.image} does not take"
        yield Claim("parallelism.tensor", message, f"use {_largest_divisor(groups, job)}", ("model.queryGroups",))


def size_of_a_head(job: Job) -> Iterator[Claim]:
    """The hidden size is shared evenly among the attention heads."""
    hidden, heads = job.model("hiddenSize"), job.model("attentionHeads")
    if hidden % heads:
        message = f"{hidden} cannot be divided by {heads} attention heads"
        also = ("model.attentionHeads",)
        yield Claim("model.hiddenSize", message, f"{_nearest_divisor(hidden, heads)} heads would fit", also)


def width_of_a_gpu(job: Job) -> Iterator[Claim]:
    """Tensor parallel GPUs share the hidden and the feed-forward size evenly; experts have their own such GPUs."""
    for name, sharing in (("hiddenSize", "tensor"), ("ffnHiddenSize", _feed_forward(job))):
        size, parts = job.model(name), job.parallel(sharing)
        if size % parts:
            fits = divisors(size, parts)[-1]
            message = f"{name} {size} cannot be divided by tensor {parts}"
            yield Claim(f"parallelism.{sharing}", message, f"use {fits}", ("parallelism.tensor",))


def _feed_forward(job: Job) -> str:
    """Name the parallel size whose GPUs share a feed-forward block."""
    return "expertTensor" if job.model("experts") else "tensor"


def sequence_of_a_gpu(job: Job) -> Iterator[Claim]:
    """Context parallel GPUs take two pieces of the sequence each; sequence parallel ones share a piece evenly."""
    length, context, tensor = int(job.values["sequenceLength"]), job.parallel("context"), job.parallel("tensor")
    if context > 1 and length % (2 * context):
        message = f"{length} cannot be divided by 2 x context {context}"
        yield Claim("sequenceLength", message, f"use a multiple of {2 * context}", ("parallelism.context",))
    elif job.values["parallelism"]["sequence"] and length // context % tensor:
        message = f"{length} tokens on context {context} cannot be divided by tensor {tensor}"
        also = ("parallelism.context", "parallelism.tensor")
        yield Claim("sequenceLength", message, f"use a multiple of {context * tensor}", also)


def sequence_parallel_needs_tensor(job: Job) -> Iterator[Claim]:
    """Sequence parallelism shares what tensor parallel GPUs would all hold."""
    if job.values["parallelism"]["sequence"] and job.parallel("tensor") == 1:
        yield Claim("parallelism.sequence", "needs tensor above 1", "use false")


def precision_of_the_launcher(job: Job) -> Iterator[Claim]:
    """A program trains in some number formats only."""
    if job.values["precision"] not in job.launcher.precisions:
        message = f"{job.values['precision']} cannot be trained with launcher {job.launcher.name}"
        yield Claim("precision", message, f"use {', '.join(job.launcher.precisions)}", ("launcher",))


def shapes_of_fp8(job: Job) -> Iterator[Claim]:
    """Kernels of 8 and 4 bits take matrices whose sides are multiples of their blocks: 8 and 16 with FP8."""
    precision = job.values["precision"]
    if precision not in _BLOCKS:
        return
    tall, wide = _BLOCKS[precision]
    shared = job.parallel("context") * (job.parallel("tensor") if job.values["parallelism"]["sequence"] else 1)
    rows = int(job.values["sequenceLength"]) * job.micro_batch
    if rows % shared == 0 and rows // shared % tall:
        message = f"{rows // shared} tokens on a GPU are not a multiple of {tall}, which {precision.upper()} needs"
        yield Claim("sequenceLength", message, f"use a multiple of {tall * shared}", ("batch.micro",))
    for name, parts in (("hiddenSize", 1), ("ffnHiddenSize", job.parallel(_feed_forward(job)))):
        width = job.model(name)
        if width % parts == 0 and width // parts % wide:
            message = f"{width // parts} on a GPU is not a multiple of {wide}, which {precision.upper()} needs"
            yield Claim(f"model.{name}", message, f"use a multiple of {wide * parts}", ("model.hiddenSize",))


def tensor_within_a_machine(job: Job) -> Iterator[Claim]:
    """Tensor parallel GPUs exchange data in every layer; between machines that is many times slower than inside one."""
    if job.parallel("tensor") > job.machine.gpus:
        message = (
            f"{job.parallel('tensor')} spans machines of {job.machine.gpus} GPUs, between which there is no NVLink"
        )
        yield Claim("parallelism.tensor", message, f"use {job.machine.gpus} or less, and more pipeline or context")


ARITHMETIC = (
    Check(gpus_of_the_machine, "Kubernetes, Schedule GPUs", tasks=("train", "test")),
    Check(world_size, f"{_ARGUMENTS}, megatron/core/parallel_state.py"),
    Check(global_batch, "megatron/core/num_microbatches_calculator.py"),
    Check(interleaved_batches, "megatron/core/pipeline_parallel/schedules.py"),
    Check(layers_of_a_stage, f"{_ARGUMENTS}, megatron/core/transformer/transformer_block.py"),
    *STAGES,
    Check(virtual_needs_pipeline, f"{_ARGUMENTS}, megatron/core/parallel_state.py"),
    Check(heads_of_a_gpu, _CONFIG),
    Check(key_value_heads, _CONFIG),
    Check(size_of_a_head, _ARGUMENTS),
    Check(width_of_a_gpu, "megatron/core/tensor_parallel/layers.py"),
    Check(sequence_of_a_gpu, f"{_ARGUMENTS}, megatron/core/pipeline_parallel/schedules.py"),
    Check(sequence_parallel_needs_tensor, "megatron/core/model_parallel_config.py"),
    *EXPERTS,
    Check(precision_of_the_launcher, "chartgen/library/launchers, each launcher's sources"),
    Check(shapes_of_fp8, "NVIDIA/TransformerEngine 2.20, transformer_engine/pytorch/utils.py"),
    Check(tensor_within_a_machine, "NVIDIA-NeMo/Megatron-Bridge, docs/performance-guide.md", "warning"),
)
