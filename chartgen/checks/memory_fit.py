"""Compare a job's memory with that of its GPUs, and find changes of its layout that make it fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeAlias

from chartgen.checks.job import Job, Recompute, once
from chartgen.checks.memory import GB, PROGRAMS, Memory, estimate_memory, unestimated
from chartgen.checks.program_settings import PARALLELISM
from chartgen.checks.rules import miscounts
from chartgen.findings import KeyProblem, rule, rules_in

# Of the memory that CUDA reports. The estimate is within 5 % of logged runs; the rest is for the CUDA context and
# NCCL's buffers. A job is rejected if it does not fit even without the estimate's margin: NVIDIA publishes runs up to
# 1.06 of the estimate and 0.97 of its least (Llama 3.1 405B in fp8 on 256 GB200).
TIGHT, TOO_MUCH = 0.95, 1.05
_CAUSES = ("recompute", "batch", "sequenceLength", "gpusPerNode", "nodes", "machineType", "model")

_OF_A_LAYOUT = ("parallelism.", "batch.micro", "recompute")

# Dotted key -> new value.
Change: TypeAlias = Mapping[str, Any]


_SOURCE = "NVIDIA/Megatron-LM core_v0.19.0, megatron/training/theoretical_memory_usage.py; arXiv:2205.05198"


class Load(NamedTuple):
    """A job's estimated memory on the fullest GPU, and the bytes of that GPU that a program can use."""

    memory: Memory
    capacity: float

    @property
    def share(self) -> float:
        """Return how full the GPU is; above 1 it is too small."""
        return self.memory.total / self.capacity

    @property
    def certain(self) -> float:
        """Return how full the GPU is at least; above 1.05, which leaves 5 % for the unknown, the run fails."""
        return self.memory.least / self.capacity

    @property
    def fits(self) -> bool:
        """Report whether the GPU also has room for memory outside the estimate."""
        return self.share <= TIGHT


@once
def load_of(job: Job) -> Load | None:
    """Estimate how full a job's GPUs are; None if the estimate or the GPU's memory is unknown."""
    gpu, memory = job.machine.model, estimate_memory(job)
    return Load(memory, gpu.memory * GB) if gpu and memory else None


@rule(_SOURCE)
def memory_of_a_gpu(job: Job) -> Iterator[KeyProblem]:
    """A GPU has room for its share of weights, optimizer state and activations; else the first step fails."""
    if (load := _load(job)) and load.certain > TOO_MUCH:
        yield _claim(job, load, "needs about")


@rule(_SOURCE, "warning")
def little_memory_left(job: Job) -> Iterator[KeyProblem]:
    """An estimate near a GPU's memory, or one that exceeds it by no more than its margin, may not fit."""
    if (load := _load(job)) and load.share > TIGHT and load.certain <= TOO_MUCH:
        yield _claim(job, load, "may need" if load.share > 1 else "is nearly full with about")


@rule(_SOURCE, "unchecked")
def memory_is_not_estimated(job: Job) -> Iterator[KeyProblem]:
    """The formulas describe Megatron's pretraining only: not FSDP, offloading, adapters or chosen modules."""
    if what := unestimated(job):
        message = f"not checked whether the run fits into the memory of a GPU: no formula covers {what}"
        hint = "run a few steps: `chartgen metrics` reads the most memory of a GPU from its log"
        pretrains = PurePosixPath(job.launcher.program).name in PROGRAMS
        is_own = pretrains or job.own.get("program")
        yield KeyProblem(f"launchers.{job.launcher.name}" if is_own else "launcher", message, hint)


@once
def _load(job: Job) -> Load | None:
    """Return the load; sizes that do not divide each other are left to the checks of divisors."""
    return None if is_uneven(job) else load_of(job)


def is_uneven(job: Job, *severities: str) -> bool:
    """Report whether sizes of a job do not divide each other, so that nothing can be calculated from them."""
    return miscounts(job, "error", *severities) or any(claim for check in PARALLELISM for claim in check.function(job))


def _claim(job: Job, load: Load, words: str) -> KeyProblem:
    message = f"a GPU {words} {load.memory} but its {job.machine.gpu} has {load.capacity / GB:.0f} GB"
    ways = remedies(job)
    key = next(iter(ways[0]), "nodes") if ways else "nodes"
    fitting = ", or ".join(_words(job, way) for way in ways)
    hint = f"would fit: {fitting}" if ways else "use more machines, or larger GPUs"
    names = ("tensor", "pipeline", "context", "virtualPipeline", "expert", "expertTensor")
    sizes = [f"parallelism.{name}" for name in names]
    return KeyProblem(key, message, hint, (*sizes, *_CAUSES))


def _words(job: Job, change: Change) -> str:
    load = load_of(changed(job, change))
    size = f" ({load.memory.total / GB:.0f} GB)" if load else ""
    return " and ".join(f"{key} {str(value).lower()}" for key, value in change.items()) + size


def remedies(job: Job, most: int = 3) -> list[Change]:
    """Return changes that make a job fit and keep all sizes divisible, the least of each kind, at most `most`."""
    changes: list[Change] = []
    for change in _changes(job):
        if any(set(other) <= set(change) for other in changes):
            continue
        altered = changed(job, change)
        load = load_of(altered)
        if load and load.fits and not is_uneven(altered, "warning"):
            changes.append(change)
        if len(changes) == most:
            break
    return changes


def changed(job: Job, change: Change) -> Job:
    """Return the job with other values; if only its layout is another one, nothing else is read again."""
    altered = replace(job, values=nested_values(change, job.values))
    if all(key.startswith(_OF_A_LAYOUT) for key in change):
        vars(altered).update({name: each for name, each in vars(job).items() if name not in ("values", "known")})
    return altered


def nested_values(change: Change, below: dict[str, Any]) -> dict[str, Any]:
    """Return values in which dotted keys have other values."""
    values = dict(below)
    for key, value in change.items():
        head, _, rest = key.partition(".")
        values[head] = nested_values({rest: value}, values.get(head) or {}) if rest else value
    return values


def _changes(job: Job) -> Iterator[Change]:
    """Yield changes, cheapest first: more sharding, smaller pieces, recomputation, more machines."""
    shared = [*_sharing(job), *_layouts(job)]
    if job.recompute != Recompute("full"):
        shared += [{**change, "recompute": "full"} for change in ({}, *shared)]
    yield from shared
    if job.gpus_per_node < job.machine.gpus:
        yield from ({**change, "gpusPerNode": job.machine.gpus} for change in ({}, *shared))
    yield from ({"nodes": job.nodes * times} for times in (2, 4, 8, 16))


def _sharing(job: Job) -> Iterator[Change]:
    if not job.values["parallelism"]["distributedOptimizer"]:
        yield {"parallelism.distributedOptimizer": True}
    if job.parallel("tensor") > 1 and not job.values["parallelism"]["sequence"]:
        yield {"parallelism.sequence": True}
    yield from ({"batch.micro": size} for size in (8, 4, 2, 1) if size < job.micro_batch)


def _layouts(job: Job) -> Iterator[Change]:
    tensor, stages = job.parallel("tensor"), job.parallel("pipeline")
    wide: list[Change] = [
        {"parallelism.tensor": tensor * times, "parallelism.sequence": True}
        for times in (2, 4, 8)
        if tensor * times <= job.machine.gpus
    ]
    deep: list[Change] = [
        {"parallelism.pipeline": stages * times} for times in (2, 4, 8) if stages * times <= job.model("layers")
    ]
    yield from wide
    yield from deep
    yield from ({"parallelism.context": size * job.parallel("context")} for size in (2, 4))
    yield from ({**one, **other} for one in wide for other in deep)


CAPACITY = rules_in(globals())
