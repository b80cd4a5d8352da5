"""The program's own options and variables that stop it at the start, or spoil its numbers, beside portable values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from chartgen.checks.job import TASKS, Job
from chartgen.findings import KeyProblem, rule, rules_in

_CONNECTIONS = "CUDA_DEVICE_MAX_CONNECTIONS"
# PyTorch reads the first one from 2.9 on, and before it the second one.
_ALLOCATORS = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_SHARDED = ("use_torch_fsdp2", "use_megatron_fsdp", "use_custom_fsdp")
_BLACKWELL = 10
_SECRET = 2**20
_ARGUMENTS = "NVIDIA/Megatron-LM core_v0.19.0, megatron/training/arguments.py"


def divisors(number: int, most: int | None = None) -> list[int]:
    """Return the divisors of a number from 1 on, smallest first, up to the largest wanted; None for all."""
    small = [size for size in range(1, math.isqrt(number) + 1) if number % size == 0]
    found = small + [number // size for size in reversed(small) if size * size != number]
    return found if most is None else [size for size in found if size <= most]


# its source, too, is of NVIDIA/Megatron-LM core_v0.19.0
@rule("megatron/core/transformer/transformer_config.py", remedy="`parallelism.tensor`: use …")
def key_value_heads(job: Job) -> Iterator[KeyProblem]:
    """Key and value heads are shared by, or repeated on, tensor parallel GPUs; each serves as many attention heads.

    Only newer versions of Megatron repeat them.
    """
    heads, groups, tensor = job.model("attentionHeads"), job.model("queryGroups"), job.parallel("tensor")
    repeated = groups != heads and groups % tensor and not tensor % groups and not heads % groups
    if repeated and not heads % tensor and job.can("key and value heads repeated on tensor parallel GPUs") is False:
        message = f"{groups} key and value heads are fewer than tensor {tensor}, which {job.image} does not support"
        hint = f"use {divisors(groups, tensor)[-1]}"
        yield KeyProblem("parallelism.tensor", message, hint, ("model.queryGroups",))


@rule(
    "NVIDIA/Megatron-LM core_v0.14.0 and core_v0.19.0, megatron/core/transformer/moe/experts.py, "
    "megatron/core/transformer/transformer_config.py",
    remedy="`parallelism.expertTensor`: use 1, or model.family mixtral",
)
def biases_of_experts(job: Job) -> Iterator[KeyProblem]:
    """Models of family gpt have biases, which Megatron-LM's fast kernel for experts does not support by default."""
    if job.launcher.name != "megatron-lm" or not job.model("experts") or job.values["model"]["family"] != "gpt":
        return
    given, since = job.options, job.can("biases of experts")
    fused = since is False or not given.get("no_bias_dropout_fusion")
    if given.get("moe_grouped_gemm") is not False and fused:
        hint = "use mixtral, or set launchers.megatron-lm.config.moe-grouped-gemm to false"
        message = "gpt has biases, which grouped experts do not support"
        yield KeyProblem("model.family", message, hint, ("model.experts",))
    elif since is not False and job.parallel("expertTensor") > 1:
        message = f"experts of family gpt have biases, which {job.parallel('expertTensor')} GPUs cannot share"
        yield KeyProblem("parallelism.expertTensor", message, "use 1, or model.family mixtral", ("parallelism.tensor",))


PARALLELISM = rules_in(globals())


@rule(f"{_ARGUMENTS}; NVIDIA/NeMo v2.0.0, examples/nlp/language_modeling/conf/megatron_gpt_config.yaml")
def interleaving_of_two_stages(job: Job) -> Iterator[KeyProblem]:
    """Two interleaved stages exchange twice with each other at a time, which only overlapped messages keep apart."""
    if job.parallel("virtualPipeline") < 2 or job.parallel("pipeline") != 2:
        return
    given, config = job.options, job.key("config")
    if job.launcher.name == "nemo-1" and (not given.get("overlap_p2p_comm") or given.get("batch_p2p_comm", True)):
        hint = f"use 1, or {config}.model.overlap_p2p_comm true and batch_p2p_comm false"
    elif given.get("no_overlap_p2p_communication"):
        hint = f"use 1, or remove {config}.no-overlap-p2p-communication"
    else:
        return
    message = f"{job.parallel('virtualPipeline')} with pipeline 2 needs overlapped messages between the stages"
    yield KeyProblem("parallelism.virtualPipeline", message, hint, ("parallelism.pipeline", config))


@rule(
    "NVIDIA/Megatron-LM core_v0.8.0 and core_v0.19.0, megatron/core/model_parallel_config.py, "
    "megatron/core/transformer/transformer_config.py, megatron/core/pipeline_parallel/schedules.py",
    remedy="`parallelism.…`: use 2 or more, or set … in … to false",
)
def options_of_a_layout(job: Job) -> Iterator[KeyProblem]:
    """Options that overlap transfers with other work stop Megatron at the start in a layout without these transfers."""
    staged, given, config = job.parallel("pipeline") > 1, job.options, job.key("config")
    for option, size, applies in (
        ("defer_embedding_wgrad_compute", "pipeline", True),
        ("overlap_moe_expert_parallel_comm", "expert", True),
        ("overlap_moe_expert_parallel_comm", "virtualPipeline", staged),
        # other programs leave it out themselves
        ("overlap_p2p_comm", "virtualPipeline", staged and job.launcher.name == "nemo-1"),
    ):
        if applies and job.parallel(size) == 1 and given.get(option):
            hint, also = f"use 2 or more, or set {option} in {config} to false", ("parallelism.pipeline", config)
            yield KeyProblem(f"parallelism.{size}", f"1, and {option} needs more", hint, also)


@rule(_ARGUMENTS, remedy='`env.…`: use env.…: "32"; `env.…`: remove it, which gives 1')
def connections_of_a_gpu(job: Job) -> Iterator[KeyProblem]:
    """Before Blackwell, tensor and context parallelism need the order of one connection, and FSDP needs several."""
    if job.launcher.name != "megatron-lm":
        return
    given, value = job.options, str(job.values["env"].get(_CONNECTIONS, "1"))
    sharded = next((name for name in _SHARDED if given.get(name)), "")
    several = sharded or given.get("overlap_moe_expert_parallel_comm")
    sizes = [f"{name} {job.parallel(name)}" for name in ("tensor", "context") if job.parallel(name) > 1]
    if sharded and value == "1":
        config = "launchers.megatron-lm.config"
        message = f"{_option(sharded)} needs more than 1, the default of Megatron-LM"
        yield KeyProblem(f"env.{_CONNECTIONS}", message, f'use env.{_CONNECTIONS}: "32"', (config,))
    elif sizes and not several and value != "1" and _generation(job) < _BLACKWELL:
        message = f"{value or 'nothing'} with {' and '.join(sizes)} stops Megatron-LM on {job.machine.gpu}"
        also = tuple(f"parallelism.{name}" for name in ("tensor", "context"))
        yield KeyProblem(f"env.{_CONNECTIONS}", message, "remove it, which gives 1", also)


# Checks that layouts of one job differ in.
OF_A_LAYOUT = rules_in(globals())


def _generation(job: Job) -> float:
    """Return the compute capability of the job's GPUs; a GPU that is not known counts as new."""
    gpu = job.machine.model
    return float(gpu.compute_capability) if gpu else _BLACKWELL


def _option(name: str) -> str:
    return name.replace("_", "-")


@rule(
    f"{_ARGUMENTS}, megatron/core/distributed/distributed_data_parallel_config.py",
    remedy='`env.…`: remove one of the two; `env.…`: set env.NCCL_GRAPH_REGISTER: "0", or remove it',
)
def expandable_segments(job: Job) -> Iterator[KeyProblem]:
    """PyTorch moves expandable segments, which NCCL must not register for CUDA graphs, or as its user buffers."""
    env: dict[str, str] = job.values["env"]
    name = next((each for each in _ALLOCATORS if "expandable_segments:true" in env.get(each, "").lower()), "")
    given = job.options
    if name and (given.get("use_nccl_ub") or given.get("nccl_ub")):
        message = "expandable_segments with NCCL user buffers (use-nccl-ub)"
        yield KeyProblem(f"env.{name}", message, "remove one of the two")
    elif name and (graphs := _graphs(given)) and env.get("NCCL_GRAPH_REGISTER") != "0":
        message = f"expandable_segments with CUDA graphs ({graphs}) ends in illegal memory accesses"
        yield KeyProblem(f"env.{name}", message, 'set env.NCCL_GRAPH_REGISTER: "0", or remove it')


def _graphs(given: dict[str, Any]) -> str:
    """Name the option that turns CUDA graphs on; nothing where none does."""
    if given.get("cuda_graph_impl") not in (None, False, "none"):
        return f"cuda-graph-impl {given['cuda_graph_impl']}"
    return next((_option(name) for name in ("enable_cuda_graph", "external_cuda_graph") if given.get(name)), "")


@rule(_ARGUMENTS, remedy="set launchers.megatron-lm.config.overlap-grad-reduce to true")
def gathering_of_parameters(job: Job) -> Iterator[KeyProblem]:
    """Gathering parameters behind computation needs a shared optimizer, and gradients that are reduced likewise."""
    given, key = job.options, "launchers.megatron-lm.config.overlap-param-gather"
    if job.launcher.name != "megatron-lm" or not given.get("overlap_param_gather"):
        return
    shared = job.values["parallelism"]["distributedOptimizer"] or given.get("optimizer") == "dist_muon"
    sharded = any(given.get(name) for name in _SHARDED)
    if not shared and not sharded:
        hint = "use true, or remove overlap-param-gather"
        message = "false, and overlap-param-gather needs a shared optimizer"
        yield KeyProblem("parallelism.distributedOptimizer", message, hint, (key,))
    if not given.get("overlap_grad_reduce") and not given.get("data_parallel_sharding_strategy"):
        yield KeyProblem(key, "needs overlap-grad-reduce")


@rule(_ARGUMENTS, remedy="remove it, or raise it")
def positions_of_the_sequence(job: Job) -> Iterator[KeyProblem]:
    """A model that learns a position for each token has no more tokens in a sample than positions."""
    length, given = int(job.values["sequenceLength"]), job.options.get("max_position_embeddings")
    if job.values["model"]["family"] == "gpt" and isinstance(given, int) and given < length:
        key, message = job.key("config.model.max_position_embeddings"), f"{given} is less than sequenceLength {length}"
        yield KeyProblem(key, message, also=("sequenceLength",))


@rule(
    "nvidia.github.io/TransformerEngine, Datatype and hardware support matrix",
    remedy="remove it, or use another machineType",
)
def recipe_of_fp8(job: Job) -> Iterator[KeyProblem]:
    """The blocks of 32 values with a scale of their own, mxfp8, came with Blackwell; so did 4 bits."""
    gpu, given = job.machine.model, job.options
    for name, wanted, format_ in (("fp8_recipe", "mxfp8", "mxfp8"), ("fp4_format", "e2m1", "nvfp4")):
        if gpu and given.get(name) == wanted and format_ not in gpu.precisions:
            message = f"{wanted} is not a format of {gpu.model}, the GPU of {job.machine.name}"
            yield KeyProblem(job.key(f"config.{_option(name)}"), message, also=("machineType",))


@rule(
    "kubernetes.io, Secrets, size limit; helm.sh, Storage backends",
    tasks=TASKS,
    remedy="`….config`: keep large files in storage, and name their paths",
)
def configuration_fits_a_release(job: Job) -> Iterator[KeyProblem]:
    """Helm keeps a release, values and manifests with them, packed in one Secret, which takes 1 MiB at most."""
    own, every = (json.dumps(each, default=str) for each in (job.own, job.values))
    # packing takes longer than all other checks, and never adds
    if len(own) + len(every) < _SECRET:
        return
    import gzip

    # base64; what the program gets stands in the manifest once more
    packed = sum(len(gzip.compress(text.encode())) for text in (own, every)) * 4 // 3
    if packed > _SECRET:
        message = f"a release of at least {packed / 2**20:.1f} MiB, and Helm keeps 1 MiB at most"
        hint = "keep large files in storage, and name their paths"
        yield KeyProblem(job.key("config"), message, hint, (job.key("args"),))


SETTINGS = rules_in(globals())[len(PARALLELISM) :]
