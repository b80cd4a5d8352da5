"""What a machine type has and a job asks for: memory, processors, adapters, and the network between machines."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from chartgen.checks.job import RUNS, TASKS, Job
from chartgen.data.compatibility import version
from chartgen.findings import KeyProblem, rule, rules_in
from chartgen.kube.quantities import read_quantity

_GPU = "nvidia.com/gpu"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# Recipes of Megatron-Bridge v0.4.0 to v0.6.0 that end with DeepEP, each with one GPU for an expert; and those that do
# so before v0.6.0, of 26.08, alone.
_READ = ("26.04", "26.08")
_DEEPEP = (
    *("exaone_moe_", "glm52_", "nemotron_3_nano_peft_", "nemotron_3_nano_sft_", "qwen3_235b_a22b_", "step35_"),
    *("qwen3_30b_a3b_peft_", "qwen3_30b_a3b_pretrain_8gpu_", "qwen3_30b_a3b_sft_8gpu_", "qwen3_next_80b_a3b_"),
)
_DEEPEP_BEFORE = ("nemotron_3_nano_", "qwen3_30b_a3b_")
_RESOURCES = "kubernetes.io, Resource Management for Pods and Containers"


def quantity(text: str) -> Fraction | None:
    """Return the number of a Kubernetes quantity, such as 2Ti, 191450m or 1e3; None when it is not one."""
    try:
        return read_quantity(text)
    except ValueError:
        return None


def exceeds(requested: str, offered: str) -> bool:
    """Report whether one quantity is more than another; what cannot be read is not."""
    left, right = quantity(requested), quantity(offered)
    return left is not None and right is not None and left > right


@rule("kubernetes/apimachinery, pkg/api/resource/quantity.go", tasks=TASKS, remedy="use one such as 64 or 512Gi")
def readable_quantities(job: Job) -> Iterator[KeyProblem]:
    """The API server refuses requests and limits that are not quantities such as 64, 500m or 512Gi, or are negative."""
    for kind in ("requests", "limits"):
        for name, text in job.resources(kind).items():
            size = quantity(text)
            if size is None or size < 0:
                yield KeyProblem(_key(job, kind, name), f"{name} {text!r} is not a quantity")


@rule(_RESOURCES, tasks=TASKS, remedy="use … or less, or raise the limit")
def requests_within_limits(job: Job) -> Iterator[KeyProblem]:
    """The API server refuses a container that requests more of a resource than its limit."""
    limits = job.resources("limits")
    for name, text in job.resources("requests").items():
        if exceeds(text, limits.get(name, text)):
            message = f"{name} {text} is more than its limit {limits[name]}"
            yield KeyProblem(_key(job, "requests", name), message, f"use {limits[name]} or less, or raise the limit")


@rule(f"{_RESOURCES}, extended resources", tasks=TASKS, remedy="use a whole number; set limits to …: … too")
def devices_are_whole(job: Job) -> Iterator[KeyProblem]:
    """Devices come as wholes, and they and huge pages for good: the API server wants a request equal to its limit."""
    requests, limits = job.resources("requests"), job.resources("limits")
    for name, text in job.requested.items():
        if name == _GPU or not ("/" in name or name.startswith("hugepages-")):
            continue
        size, key = quantity(text), _key(job, "requests" if name in requests else "limits", name)
        if "/" in name and size is not None and size % 1:
            yield KeyProblem(key, f"{name} {text} is not a whole number", "use a whole number")
        elif name not in limits or exceeds(limits[name], text):
            yield KeyProblem(key, f"{name} {text} is not its limit", f"set limits to {name}: {text} too")


@rule(_RESOURCES, tasks=RUNS, remedy="use less than …")
def requests_of_the_machine(job: Job) -> Iterator[KeyProblem]:
    """A pod that requests more than a machine of its type has stays pending for ever."""
    for name, text in job.requested.items():
        offered = job.machine.capacity.get(name, text)
        if name != _GPU and exceeds(text, offered):
            kind = "requests" if name in job.resources("requests") else "limits"
            message = f"{name} {text} is more than the {offered} of {job.machine.name}"
            yield KeyProblem(_key(job, kind, name), message, f"use less than {offered}", ("machineType",))


@rule("kubernetes.io, Schedule GPUs", "warning", tasks=RUNS, remedy="set that, and remove it here")
def gpus_are_counted_once(job: Job) -> Iterator[KeyProblem]:
    """The chart asks for the GPUs itself, and their entries in resources are lost."""
    for kind in ("requests", "limits"):
        if _GPU in job.resources(kind):
            yield KeyProblem(_key(job, kind, _GPU), f"{_GPU} is set by gpusPerNode")


@rule(
    "Kubernetes API, core/v1 EmptyDirVolumeSource",
    tasks=RUNS,
    remedy="`sharedMemory`: use half of … or less; `sharedMemory`: use less, or raise …",
)
def shared_memory_of_the_machine(job: Job) -> Iterator[KeyProblem]:
    """Shared memory is a part of the machine's memory, and of the container's memory limit when it has one."""
    size, limit = job.values.get("sharedMemory", "0"), job.resources("limits").get("memory")
    offered = job.machine.capacity.get("memory", size)
    if exceeds(size, offered):
        message = f"{size} is more than the {offered} of {job.machine.name}"
        yield KeyProblem("sharedMemory", message, f"use half of {offered} or less", ("machineType",))
    elif limit and exceeds(size, limit):
        key = _key(job, "limits", "memory")
        message = f"{size} counts to the memory limit {limit}"
        yield KeyProblem("sharedMemory", message, f"use less, or raise {key}", (key,))


@rule("kubernetes.io, Schedule GPUs", tasks=("data",), remedy="remove it")
def programs_without_gpus(job: Job) -> Iterator[KeyProblem]:
    """Programs that only move or prepare data run outside the queue and tolerate no GPU machine: GPUs never come."""
    for kind in ("requests", "limits"):
        for name in job.resources(kind):
            if name.endswith("/gpu"):
                message = f"{job.launcher.name} uses no GPU, and asks for {name}"
                yield KeyProblem(_key(job, kind, name), message, also=("launcher",))


@rule("kubernetes.io, Manage HugePages", tasks=TASKS, remedy="set launchers.….resources.requests.memory")
def huge_pages_need_cpu_or_memory(job: Job) -> Iterator[KeyProblem]:
    """The API server refuses a pod that asks for huge pages and for neither cpu nor memory."""
    requested = job.requested
    own = next((name for name in requested if name.startswith("hugepages-")), "")
    if own and not requested.keys() & {"cpu", "memory"}:
        kind = "requests" if own in job.resources("requests") else "limits"
        hint = f"set {job.key('resources.requests.memory')}"
        yield KeyProblem(_key(job, kind, own), f"{requested[own]} of huge pages come only with cpu or memory", hint)


@rule(
    "awslabs/ai-on-sagemaker-hyperpod, issue 134",
    tasks=RUNS,
    remedy="`env.FI_PROVIDER`: remove it, or set network.interface to tcp if you want TCP",
)
def provider_of_libfabric(job: Job) -> Iterator[KeyProblem]:
    """FI_PROVIDER chooses how machines speak: efa needs adapters, and anything else leaves those that there are."""
    provider, with_adapters = job.values["env"].get("FI_PROVIDER", ""), _has_adapters(job)
    if provider == "efa" and not with_adapters:
        hint = "use network.interface efa, or remove it" if "efa" in job.fragments else "remove it"
        yield KeyProblem("env.FI_PROVIDER", "efa without EFA adapters falls back to TCP", hint, ("network.interface",))
    elif provider not in ("", "efa") and with_adapters and job.nodes > 1:
        message = f"{provider} leaves the EFA adapters of {job.nodes} machines idle"
        yield KeyProblem("env.FI_PROVIDER", message, "remove it, or set network.interface to tcp if you want TCP")


@rule(
    "awslabs/awsome-distributed-ai @ 95b939c, 3.test_cases/megatron/megatron-bridge/README.md (DeepEP on EFA); "
    "NVIDIA-NeMo/Megatron-Bridge v0.4.0 to v0.6.0, src/megatron/bridge/recipes and docker",
    "warning",
    remedy="`parallelism.expert`: use … or less, launchers.….config.model.moe_token_dispatcher_type alltoall, "
    "or an image of your own",
)
def deepep_on_efa(job: Job) -> Iterator[KeyProblem]:
    """The DeepEP of NVIDIA's images connects machines by InfiniBand alone, so that experts on EFA share one machine."""
    release, recipe = job.release("nvidia/nemo"), str(job.own.get("recipe") or "")
    if "efa" not in job.fragments or not release or not version(_READ[0]) <= version(release) <= version(_READ[1]):
        return
    shared = int(job.values["parallelism"].get("expertTensor") or 1) if recipe else job.parallel("expertTensor")
    fits, grace = job.gpus_per_node // shared, job.machine.gpu.startswith("gb")
    if job.parallel("expert") > fits and _uses_deepep(job, recipe, release) and not grace:
        own = f"launchers.{job.launcher.name}"
        message = f"{job.parallel('expert')} spreads experts over machines, and the DeepEP of {job.image} has no EFA"
        hint = f"use {fits} or less, {own}.config.model.moe_token_dispatcher_type alltoall, or an image of your own"
        yield KeyProblem("parallelism.expert", message, hint, (f"{own}.recipe", f"{own}.config", "gpusPerNode"))


def _uses_deepep(job: Job, recipe: str, release: str) -> bool:
    """Report whether DeepEP moves the tokens; the user's options win over the recipe's, and DeepEP is the default."""
    older = _DEEPEP_BEFORE if version(release) < version(_READ[1]) else ()
    given, listed = job.options, recipe.startswith((*_DEEPEP, *older))
    flexible = given.get("moe_token_dispatcher_type", "flex" if listed else "") == "flex"
    return bool(flexible and given.get("moe_flex_dispatcher_backend", "deepep") == "deepep")


@rule(
    "NCCL documentation, Environment Variables (NCCL_NET)",
    "warning",
    tasks=RUNS,
    remedy="`nodes`: add a fragment that provides one, such as infiniband",
)
def fabric_of_the_target(job: Job) -> Iterator[KeyProblem]:
    """A target without a fabric fragment has no network for GPUs, so that several machines speak TCP."""
    if job.nodes > 1 and not any("fabric" in fragment.provides for fragment in job.target.fragments):
        message = f"target {job.target.name} has no fabric: {job.nodes} machines would use TCP"
        yield KeyProblem("nodes", message, "add a fragment that provides one, such as infiniband")


@rule(
    "docs.aws.amazon.com, EC2, Elastic Fabric Adapter, limitations",
    tasks=RUNS,
    remedy="`affinity`: set nodeSelector topology.kubernetes.io/zone, or add a term with that key",
)
def one_zone(job: Job) -> Iterator[KeyProblem]:
    """EFA does not leave an Availability Zone; the user's pod affinity replaces the chart's, which keeps to one."""
    affinity = job.values["affinity"]
    terms = (affinity.get("podAffinity") or {}).get(_REQUIRED)
    pinned = "topology.kubernetes.io/zone" in f"{affinity}{job.values['nodeSelector']}"
    if _has_adapters(job) and job.nodes > 1 and terms and not pinned:
        message = "replaces the rule that keeps all machines in one zone, which EFA does not leave"
        hint = "set nodeSelector topology.kubernetes.io/zone, or add a term with that key"
        yield KeyProblem("affinity", message, hint)


def _key(job: Job, kind: str, name: str) -> str:
    """Return the key of a resource; names such as nvidia.com/gpu are not part of a dotted key."""
    key = job.key(f"resources.{kind}")
    return key if "." in name else f"{key}.{name}"


def _has_adapters(job: Job) -> bool:
    """Report whether the run uses the adapters of EFA."""
    return "efa" in job.fragments and bool(job.network["interface"] == "efa")


MACHINE = rules_in(globals())
