"""Parallel layouts that a model can train in on a number of GPUs: all that pass every check, the best guess first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chartgen.checks import CHECKS, readable_job
from chartgen.checks.divisors import divisors
from chartgen.checks.job import Job
from chartgen.checks.memory import Memory, model_parameters, unestimated
from chartgen.checks.memory_fit import CAPACITY, Change, changed, load_of
from chartgen.checks.parallelism import PARALLELISM
from chartgen.checks.program_settings import connections_of_a_gpu, interleaving_of_two_stages
from chartgen.checks.rules import broken, rules_for
from chartgen.checks.speed import speed_of
from chartgen.composer.rules import ValuesRule
from chartgen.composer.target import Target
from chartgen.errors import ChartgenError, Problem
from chartgen.findings import Rule
from chartgen.helm.values import Values

# What a layout decides or depends on: claims about other keys, such as an image, are not the layout's to answer for.
_ITS_KEYS = ("nodes", "gpusPerNode", "model", "sequenceLength", "parallelism", "batch", "recompute")
# What layouts of one job differ in: they answer for every claim in which one of these plays a part.
_CHOSEN = ("parallelism.", "batch.micro")
# Checks that layouts of one job differ in; a layout whose memory has room passes those of CAPACITY.
_SETTINGS = (interleaving_of_two_stages, connections_of_a_gpu)
_OF_A_LAYOUT = (*PARALLELISM, *(check for check in CHECKS if check.function in _SETTINGS))
_OF_THE_JOB = tuple(check for check in CHECKS if check not in (*_OF_A_LAYOUT, *CAPACITY))
_MICRO_BATCHES = (1, 2, 4, 8)
# Parameters up to -> least and most tensor, pipeline and context parallel size to start from. Source: NVIDIA's sizing
# hints, NVIDIA/skills @ 14a98ae, skills/nemo-mbridge-perf-parallelism-strategies/SKILL.md.
_HINTS = (
    (1e9, (1, 1), (1, 1), (1, 1)),
    (10e9, (2, 4), (1, 1), (1, 1)),
    (70e9, (4, 8), (2, 4), (1, 1)),
    (175e9, (8, 8), (4, 8), (1, 1)),
    (math.inf, (8, 8), (8, 16), (2, 2)),
)
_EXPERT_TENSOR = (1, 2)
# Fuller layouts are listed, but behind the others.
_ROOMY = 0.9
# Below this difference of predicted step times the hints decide: the estimate is rarely surer (prediction.md).
_ALIKE = 0.1


@dataclass(frozen=True)
class Layout:
    """One way to share a model and its batch among GPUs; all sizes as in the values.

    Args:
        tensor: Tensor parallel size.
        pipeline: Pipeline parallel size.
        virtual_pipeline: Chunks of layers of each stage.
        context: Context parallel size.
        sequence: Whether tensor parallel GPUs share the sequence too.
        micro_batch: Samples that one GPU handles at a time.
        data_parallel: Copies of the model that train side by side.
        micro_batches: Micro-batches that a pipeline handles in one step.
        memory: Bytes in use on the fullest GPU.
        share: That, as a share of what the GPU has.
        step_seconds: Estimated time of a step; None for GPUs whose speeds are not known.
        own: Whether it is the layout of the values.
    """

    tensor: int
    pipeline: int
    virtual_pipeline: int
    context: int
    sequence: bool
    micro_batch: int
    data_parallel: int
    micro_batches: int
    memory: Memory
    share: float
    step_seconds: float | None
    own: bool = False

    @property
    def bubble(self) -> float:
        """Time that a pipeline's stages wait, as a share of the time they work (arXiv:2104.04473, section 2.2)."""
        return (self.pipeline - 1) / (self.virtual_pipeline * self.micro_batches)

    @property
    def values(self) -> Change:
        """The values that choose it, by dotted key."""
        sizes = _change(self.tensor, self.pipeline, self.virtual_pipeline, self.context, self.micro_batch)
        return {**sizes, "parallelism.sequence": self.sequence}


def fitting_layouts(target: Target, values: Values, gpus: int | None = None) -> list[Layout]:
    """List the layouts of a model that pass every check and fit into memory, best guess first.

    Expert parallel size, precision, recomputation and the global batch stay as the values have them. The values' own
    layout is one of the list when it passes.

    Args:
        target: The target.
        values: The user's layers: a model, and a machine type where it is not the target's first.
        gpus: GPUs of the run; None = those of the values.

    Raises:
        ChartgenError: A value does not fit the schema, the GPUs are not whole machines, or the memory of the program or
            the GPU is not known.
    """
    job = readable_job(target, values)
    job = job if gpus is None else _on(job, gpus)
    if load_of(job) is None:
        what = unestimated(job) or job.machine.gpu
        message = f"cannot estimate the memory of {job.launcher.name}: no formula covers {what}"
        raise ChartgenError(Problem(message, hint="fit works where Megatron-LM or NeMo pretrain a model"))
    found = list(_layouts(job))
    fastest = min((layout.step_seconds for layout in found if layout.step_seconds), default=1.0)
    return sorted(found, key=lambda layout: (_slowness(layout, fastest), *_rank(layout, job)))


def _on(job: Job, gpus: int) -> Job:
    """Return the job on a number of GPUs: whole machines, or a part of one."""
    size = job.machine.gpus
    if gpus < 1 or (gpus > size and gpus % size):
        near = [number for number in (gpus // size * size, (gpus // size + 1) * size) if number > 0] or [size]
        message = f"{gpus} GPUs are not whole machines of {size}"
        raise ChartgenError(Problem(message, hint=f"nearest: {' or '.join(map(str, near))}"))
    return changed(job, {"nodes": max(gpus // size, 1), "gpusPerNode": min(gpus, size)})


def _layouts(job: Job) -> Iterator[Layout]:
    rules = rules_for(job)
    # a key that is an expression is no size: these rules say the same of every layout
    if not (_passes(_OF_THE_JOB, job) and _follows([rule for rule in rules if rule.key.startswith("{")], job)):
        return
    rules = [rule for rule in rules if _concerns(rule.key, rule.also)]
    own = _own(job)
    for change in (own, *(candidate for candidate in _candidates(job) if candidate != own)):
        candidate = changed(job, change)
        # sizes that do not divide each other are the most, and cost least
        load = load_of(candidate) if _follows(rules, candidate) and _passes(_OF_A_LAYOUT, candidate) else None
        if load and load.fits:
            speed = speed_of(candidate).estimate
            yield Layout(
                candidate.parallel("tensor"),
                candidate.parallel("pipeline"),
                candidate.parallel("virtualPipeline"),
                candidate.parallel("context"),
                bool(change["parallelism.sequence"]),
                candidate.micro_batch,
                candidate.data_parallel,
                candidate.micro_batches,
                load.memory,
                load.share,
                speed.step_seconds.middle if speed else None,
                own=change == own,
            )


def _own(job: Job) -> Change:
    tensor, pipeline, chunks, context = map(job.parallel, ("tensor", "pipeline", "virtualPipeline", "context"))
    sizes = _change(tensor, pipeline, chunks, context, job.micro_batch)
    return {**sizes, "parallelism.sequence": job.values["parallelism"]["sequence"]}


def _candidates(job: Job) -> Iterator[Change]:
    """Return sizes that divide the GPUs, the layers and the batch; the checks decide about the rest."""
    layers, world = job.model("layers"), job.world
    for tensor in divisors(world, min(job.machine.gpus, world)):
        for stages in divisors(world // tensor, layers):
            for context in divisors(world // (tensor * stages)):
                copies = world // (tensor * stages * context)
                for micro in (size for size in _MICRO_BATCHES if job.global_batch % (size * copies) == 0):
                    for chunks in divisors(layers // stages) if stages > 1 else (1,):
                        yield _change(tensor, stages, chunks, context, micro)


def _change(tensor: int, pipeline: int, virtual_pipeline: int, context: int, micro_batch: int) -> Change:
    return {
        "parallelism.tensor": tensor,
        "parallelism.pipeline": pipeline,
        "parallelism.virtualPipeline": virtual_pipeline,
        "parallelism.context": context,
        "parallelism.sequence": tensor > 1,
        "batch.micro": micro_batch,
    }


def _passes(checks: tuple[Rule, ...], job: Job) -> bool:
    claims = (claim for check in checks if job.launcher.task in check.tasks for claim in check.function(job))
    return not any(_concerns(claim.key, claim.also) for claim in claims)


def _follows(rules: list[ValuesRule], job: Job) -> bool:
    """Report whether a job keeps to rules, as far as a layout answers for them."""
    return not any(_concerns(claim.key, claim.also) for rule in rules for claim in broken(rule, job))


def _concerns(key: str, also: tuple[str, ...]) -> bool:
    """Report whether a layout answers for a claim with these keys."""
    return key.partition(".")[0] in _ITS_KEYS or any(each.startswith(_CHOSEN) for each in also)


def _slowness(layout: Layout, fastest: float) -> int:
    """Count how many times a layout is slower than the fastest by what the estimate can distinguish."""
    return int(math.log((layout.step_seconds or fastest) / fastest) / _ALIKE)


def _rank(layout: Layout, job: Job) -> tuple[Any, ...]:
    """Order layouts: nearest to NVIDIA's sizing hints, with room, least waiting, fewest GPUs a copy, largest pieces."""
    parameters = model_parameters(job)
    tensor, pipeline, context = next(sizes for most, *sizes in _HINTS if parameters <= most)
    far = (
        _distance(layout.tensor, _EXPERT_TENSOR if job.model("experts") else tensor, job.machine.gpus)
        + _distance(layout.pipeline, pipeline, job.world)
        + _distance(layout.context, context, job.world)
    )
    gpus = layout.tensor * layout.pipeline * layout.context
    return far, layout.share > _ROOMY, round(layout.bubble, 2), gpus, -layout.micro_batch, layout.virtual_pipeline


def _distance(size: int, hint: tuple[int, int], most: int) -> float:
    """Count the doublings between a size and a hint's range, as far as the machine allows it."""
    least, largest = (min(bound, most) for bound in hint)
    return max(math.log2(least / size), math.log2(size / largest), 0.0)
