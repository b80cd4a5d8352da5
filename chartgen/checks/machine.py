"""What a machine type has and a job asks for: memory, processors, adapters, and the network between machines."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from chartgen.checks.claim import Check, Claim
from chartgen.checks.compatibility import fragments
from chartgen.checks.job import Job
from chartgen.kube.quantities import read

_EFA, _GPU = "vpc.amazonaws.com/efa", "nvidia.com/gpu"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def quantity(text: str) -> Fraction | None:
    """Return the number that a Kubernetes quantity stands for, such as 2Ti, 191450m or 1e3; None when it is not one."""
    try:
        return read(text)
    except ValueError:
        return None


def exceeds(asked: str, offered: str) -> bool:
    """Report whether one quantity is more than another; what cannot be read is not."""
    left, right = quantity(asked), quantity(offered)
    return left is not None and right is not None and left > right


def readable_quantities(job: Job) -> Iterator[Claim]:
    """The API server refuses requests and limits that are not quantities such as 64, 500m or 512Gi, or are negative."""
    for kind in ("requests", "limits"):
        for name, text in _asked(job, kind).items():
            size = quantity(text)
            if size is None or size < 0:
                yield Claim(_key(job, kind, name), f"{name} {text!r} is not a quantity", "use one such as 64 or 512Gi")


def requests_within_limits(job: Job) -> Iterator[Claim]:
    """The API server refuses a container that requests more of a resource than its limit."""
    limits = _asked(job, "limits")
    for name, text in _asked(job, "requests").items():
        if exceeds(text, limits.get(name, text)):
            message = f"{name} {text} is more than its limit {limits[name]}"
            yield Claim(_key(job, "requests", name), message, f"use {limits[name]} or less, or raise the limit")


def devices_are_whole(job: Job) -> Iterator[Claim]:
    """Devices come as wholes, and they and huge pages for good: the API server wants a request equal to its limit."""
    requests, limits = _asked(job, "requests"), _asked(job, "limits")
    for name, text in _requested(job).items():
        if name == _GPU or not ("/" in name or name.startswith("hugepages-")):
            continue
        size, key = quantity(text), _key(job, "requests" if name in requests else "limits", name)
        if "/" in name and size is not None and size % 1:
            yield Claim(key, f"{name} {text} is no whole number", "use one")
        elif name not in limits or exceeds(limits[name], text):
            yield Claim(key, f"{name} {text} is not its limit", f"set limits to {name}: {text} too")


def requests_of_the_machine(job: Job) -> Iterator[Claim]:
    """A pod that requests more than a machine of its type has stays pending for ever."""
    for name, text in _requested(job).items():
        offered = job.machine.capacity.get(name, text)
        if name != _GPU and exceeds(text, offered):
            kind = "requests" if name in _asked(job, "requests") else "limits"
            message = f"{name} {text} is more than the {offered} of {job.machine.name}"
            yield Claim(_key(job, kind, name), message, f"use less than {offered}", ("machineType",))


def gpus_are_counted_once(job: Job) -> Iterator[Claim]:
    """The chart asks for the GPUs itself, and what resources say of them is lost."""
    for kind in ("requests", "limits"):
        if _GPU in _asked(job, kind):
            yield Claim(_key(job, kind, _GPU), f"{_GPU} is set by gpusPerNode", "set that, and remove it here")


def shared_memory_of_the_machine(job: Job) -> Iterator[Claim]:
    """Shared memory is a part of the machine's memory, and of the container's memory limit when it has one."""
    size, limit = job.values.get("sharedMemory", "0"), _asked(job, "limits").get("memory")
    offered = job.machine.capacity.get("memory", size)
    if exceeds(size, offered):
        message = f"{size} is more than the {offered} of {job.machine.name}"
        yield Claim("sharedMemory", message, f"use half of {offered} or less", ("machineType",))
    elif limit and exceeds(size, limit):
        key = _key(job, "limits", "memory")
        yield Claim("sharedMemory", f"{size} counts to the memory limit {limit}", f"use less, or raise {key}", (key,))


def programs_without_gpus(job: Job) -> Iterator[Claim]:
    """Programs that only move or prepare data run outside the queue and tolerate no GPU machine: GPUs never come."""
    for kind in ("requests", "limits"):
        for name in _asked(job, kind):
            if name.endswith("/gpu"):
                message = f"{job.launcher.name} uses no GPU, and asks for {name}"
                yield Claim(_key(job, kind, name), message, "remove it", ("launcher",))


def huge_pages_need_cpu_or_memory(job: Job) -> Iterator[Claim]:
    """The API server refuses a pod that asks for huge pages and for neither cpu nor memory."""
    requested = _requested(job)
    own = next((name for name in requested if name.startswith("hugepages-")), "")
    pages = job.launcher.task != "data" and _network(job).get("hugePages")
    if (own or pages) and not requested.keys() & {"cpu", "memory"}:
        kind = "requests" if own in _asked(job, "requests") else "limits"
        key = "network.hugePages" if pages else _key(job, kind, own)
        hint = f"set launchers.{job.launcher.name}.resources.requests.memory"
        yield Claim(key, f"{pages or requested[own]} of huge pages come only with cpu or memory", hint)


def efa_adapters(job: Job) -> Iterator[Claim]:
    """A machine hands out no more EFA adapters than it has, and none is used when the network is said to be TCP."""
    asked, offered = _network(job).get("adapters"), int(job.machine.capacity.get(_EFA, 0))
    if "efa" not in fragments(job) or not asked:
        return
    if asked > offered:
        message = f"{asked} is more than the {offered} EFA adapters of {job.machine.name}"
        yield Claim("network.adapters", message, f"use {offered} or less, or null for all", ("machineType",))
    if _network(job)["interface"] == "tcp":
        yield Claim("network.adapters", f"{asked} adapters with network.interface tcp", "use efa, or null adapters")


def provider_of_libfabric(job: Job) -> Iterator[Claim]:
    """FI_PROVIDER chooses how machines speak: efa needs adapters, and anything else leaves those that there are."""
    provider, has_efa = job.values["env"].get("FI_PROVIDER", ""), "efa" in fragments(job)
    with_adapters = has_efa and _network(job)["interface"] == "efa"
    if provider == "efa" and not with_adapters:
        hint = "use network.interface efa, or remove it" if has_efa else "remove it"
        yield Claim("env.FI_PROVIDER", "efa without EFA adapters falls back to TCP", hint, ("network.interface",))
    elif provider not in ("", "efa") and with_adapters and job.nodes > 1:
        message = f"{provider} leaves the EFA adapters of {job.nodes} machines idle"
        yield Claim("env.FI_PROVIDER", message, "remove it, or use network.interface tcp to say that it is meant")


def infiniband_adapters(job: Job) -> Iterator[Claim]:
    """A machine hands out no more InfiniBand adapters than it has; a run takes one for each GPU if not told else."""
    network = _network(job)
    if "infiniband" in fragments(job) and network["interface"] == "infiniband" and job.nodes > 1:
        count, resource = network.get("resourceCount") or job.gpus_per_node, network["resource"]
        offered = job.machine.capacity.get(resource, str(count))
        if exceeds(str(count), offered):
            message = f"{count} is more than the {offered} {resource} of {job.machine.name}"
            yield Claim("network.resourceCount", message, f"use {offered} or less", ("gpusPerNode", "machineType"))


def virtual_functions(job: Job) -> Iterator[Claim]:
    """Not every shape of OCI has virtual functions of its RDMA adapters."""
    asked = "roce-oke" in fragments(job) and _network(job)["mode"] == "sriov"
    if asked and not job.machine.fabric.get("virtualFunctions"):
        yield Claim("network.mode", f"{job.machine.name} has no virtual functions", "use host", ("machineType",))


def network_between_machines(job: Job) -> Iterator[Claim]:
    """Several machines without a network for their GPUs speak TCP, many times slower, and nobody is told."""
    if job.nodes > 1 and "infiniband" in fragments(job) and _network(job)["interface"] == "none":
        message = f"with none, {job.nodes} machines would use TCP"
        yield Claim("network.interface", message, "use infiniband, or tcp to say that it is meant", ("nodes",))


def fabric_of_the_target(job: Job) -> Iterator[Claim]:
    """A target without a fabric fragment has no network for GPUs, so that several machines speak TCP."""
    if job.nodes > 1 and not any("fabric" in fragment.provides for fragment in job.target.fragments):
        message = f"target {job.target.name} has no fabric: {job.nodes} machines would use TCP"
        yield Claim("nodes", message, "add a fragment that provides one, such as infiniband")


def gpus_of_gpudirect(job: Job) -> Iterator[Claim]:
    """GPUDirect's daemon drives all GPUs of a machine with all its adapters, and NCCL expects the same."""
    if "gpudirect" in fragments(job) and job.gpus_per_node < job.machine.gpus:
        message = f"{job.gpus_per_node} of {job.machine.gpus} GPUs, and GPUDirect drives all of a machine"
        yield Claim("gpusPerNode", message, f"use {job.machine.gpus}, or null")


def one_zone(job: Job) -> Iterator[Claim]:
    """EFA does not leave an Availability Zone; the user's pod affinity replaces the chart's, which keeps to one."""
    affinity = job.values["affinity"]
    terms = (affinity.get("podAffinity") or {}).get(_REQUIRED)
    pinned = "topology.kubernetes.io/zone" in f"{affinity}{job.values['nodeSelector']}"
    uses_efa = "efa" in fragments(job) and _network(job)["interface"] == "efa" and job.nodes > 1
    if uses_efa and terms and not pinned:
        message = "replaces the rule that keeps all machines in one zone, which EFA does not leave"
        yield Claim("affinity", message, "set nodeSelector topology.kubernetes.io/zone, or add a term with that key")


def _asked(job: Job, kind: str) -> dict[str, str]:
    resources = job.values["launchers"][job.launcher.name].get("resources") or {}
    return resources.get(kind) or {}


def _requested(job: Job) -> dict[str, str]:
    """Return what the pod requests: a limit counts as a request where there is none."""
    return {**_asked(job, "limits"), **_asked(job, "requests")}


def _key(job: Job, kind: str, name: str) -> str:
    """Return the key of a resource; names such as nvidia.com/gpu are no part of a dotted key."""
    key = f"launchers.{job.launcher.name}.resources.{kind}"
    return key if "." in name else f"{key}.{name}"


def _network(job: Job) -> dict[str, Any]:
    network: dict[str, Any] = job.values.get("network", {})
    return network


_RUNS, _ALL = ("train", "test"), ("train", "data", "test")
_RESOURCES = "kubernetes.io, Resource Management for Pods and Containers"
MACHINE = (
    Check(readable_quantities, "kubernetes/apimachinery, pkg/api/resource/quantity.go", tasks=_ALL),
    Check(requests_within_limits, _RESOURCES, tasks=_ALL),
    Check(devices_are_whole, f"{_RESOURCES}, extended resources", tasks=_ALL),
    Check(requests_of_the_machine, _RESOURCES, tasks=_RUNS),
    Check(gpus_are_counted_once, "kubernetes.io, Schedule GPUs", "warning", _RUNS),
    Check(shared_memory_of_the_machine, "Kubernetes API, core/v1 EmptyDirVolumeSource", tasks=_RUNS),
    Check(programs_without_gpus, "kubernetes.io, Schedule GPUs", tasks=("data",)),
    Check(huge_pages_need_cpu_or_memory, "kubernetes.io, Manage HugePages", tasks=_ALL),
    Check(efa_adapters, "aws/karpenter-provider-aws @ 1d92708, docs/reference/instance-types.md", tasks=_RUNS),
    Check(provider_of_libfabric, "awslabs/ai-on-sagemaker-hyperpod, issue 134", tasks=_RUNS),
    Check(infiniband_adapters, "NVIDIA Network Operator documentation", tasks=_RUNS),
    Check(virtual_functions, "oracle-quickstart/oci-hpc-oke @ 61d210a, manifests/nccl-tests/kueue", tasks=_RUNS),
    Check(network_between_machines, "NCCL documentation, Environment Variables (NCCL_NET)", tasks=_RUNS),
    Check(fabric_of_the_target, "NCCL documentation, Environment Variables (NCCL_NET)", "warning", _RUNS),
    Check(gpus_of_gpudirect, "AI-Hypercomputer/gpu-recipes @ 2e1fd5e, src/helm-charts/a3mega/jobset", tasks=_RUNS),
    Check(one_zone, "docs.aws.amazon.com, EC2, Elastic Fabric Adapter, limitations", tasks=_RUNS),
)
