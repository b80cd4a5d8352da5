"""Parallel layouts that a model can train in on a number of GPUs: all that pass every check, the best guess first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Any

from chartgen.checks.catalogue import CHECKS
from chartgen.checks.job import Job, once_for_layouts
from chartgen.checks.known_options import KNOWN
from chartgen.checks.memory import GB, unestimated
from chartgen.checks.memory_fit import CAPACITY, TIGHT, TOO_MUCH, Change, changed, load_of
from chartgen.checks.program_settings import OF_A_LAYOUT, divisors
from chartgen.checks.rules import Rulebook, rules_for
from chartgen.checks.speed import architecture_of, recipe_of, run_of_job
from chartgen.data.models import Architecture
from chartgen.errors import ChartgenError, Problem
from chartgen.estimator import Run, least_seconds, seconds_of
from chartgen.findings import KeyProblem, Rule

# What a layout decides or depends on: claims about other keys, such as an image, are not the layout's to answer for.
_ITS_KEYS = ("nodes", "gpusPerNode", "model", "sequenceLength", "parallelism", "batch", "recompute")
# What layouts of one job differ in: they answer for every claim in which one of these plays a part.
_CHOSEN = ("parallelism.", "batch.micro")
# A layout whose memory has room passes the checks of CAPACITY.
_OF_THE_JOB = tuple(check for check in CHECKS if check not in (*OF_A_LAYOUT, *CAPACITY))
# Keys that a search may change, as `auto` names them; `fit` also searches FSDP, which changes the form of checkpoints.
CHOICES = ("parallelism", "batch.micro", "recompute")
_EVERY = (*CHOICES, "sharding")
_MICRO_BATCHES = (1, 2, 4, 8)
# Estimates err, and of layouts that are about as fast vendors choose few pieces of the model and small micro-batches:
# with the time times these powers of them, published layouts are first most often (docs/explanation/layouts.md).
_PIECES, _MICRO = 0.025, 0.1
_NAMES = ("tensor", "pipeline", "virtualPipeline", "context", "expert")
_sizes_of = itemgetter("batch.micro", *(f"parallelism.{name}" for name in _NAMES))
_MOST_GPUS, _MOST_LAYERS = 2**17, 2**12
# What is calculated in another order may differ in the last digits.
_ROUNDED = 1 - 1e-9


@dataclass(frozen=True)
class Layout:
    """One way to share a model and its batch among GPUs.

    Args:
        job: The job in this layout.
        values: The values that choose it, by dotted key.
        memory: Bytes in use on the fullest GPU.
        share: That, as a share of what the GPU has.
        step_seconds: Estimated time of a step; None for GPUs whose speeds are not known.
        own: Whether it is the layout of the values.
    """

    job: Job
    values: Change
    memory: float
    share: float
    step_seconds: float | None
    own: bool = False

    @property
    def fits(self) -> bool:
        """Report whether the GPU also has room for memory outside the estimate."""
        return self.share <= _limit(self.job)

    @property
    def sharded(self) -> bool:
        """Report whether the GPUs share the parameters and gather them for use (FSDP)."""
        run = run_of_job(self.job)
        return isinstance(run, Run) and run.sharded


def layouts_of(job: Job, choices: tuple[str, ...] = _EVERY) -> list[Layout]:
    """List the layouts of a job, best guess first.

    Args:
        job: The job.
        choices: Those of CHOICES that may change; all and FSDP by default.

    Raises:
        ChartgenError: The memory of the program or the GPU is not known, or the job is too large to be searched.
    """
    found = [layout for _, layout in searched(job, choices)]
    found.sort(key=lambda layout: (not layout.fits, _rank(layout)))
    # one that is predicted to be slower than the values' own comes after it
    return sorted(found, key=lambda each: not (each.own and each.fits and _seconds(each) <= _seconds(found[0])))


def first_of(job: Job, choices: tuple[str, ...]) -> Layout | None:
    """Return the first of `layouts_of`, without judging the others; None where nothing fits."""
    own = first = None
    for bound, layout in searched(job, choices):
        if first and bound > _rank(first):
            break
        if layout.fits:
            own = layout if layout.own else own
            first = min(first or layout, layout, key=_rank)
    return own if own and first and _seconds(own) <= _seconds(first) else first


def why_unsearchable(job: Job) -> str:
    """Return why layouts of a job cannot be compared; empty if they can."""
    if load_of(job) is None and isinstance(run_of_job(job), str):
        why = f"cannot estimate the memory of {job.launcher.name}: no formula covers"
        return f"{why} {unestimated(job) or job.machine.gpu}; fit works where Megatron-LM or NeMo pretrain a model"
    if job.world > _MOST_GPUS or (job.describes_model and job.pipeline_layers > _MOST_LAYERS):
        return f"layouts are searched for at most {_MOST_GPUS:,} GPUs and {_MOST_LAYERS:,} layers"
    return ""


def works(job: Job) -> bool:
    """Report whether the job's own layout passes every check that layouts answer for."""
    load = load_of(job)
    has_room = load is None or load.certain <= TOO_MUCH
    return has_room and _is_clear(_rules(job).claims(job)) and _passes(OF_A_LAYOUT, job)


def searched(job: Job, choices: tuple[str, ...]) -> Iterator[tuple[float, Layout]]:
    """Yield the layouts of a job that pass every check and fit, and first its own one if it passes, however full.

    Each comes with the least rank that it and all after it can have, except with FSDP.
    """
    if why := why_unsearchable(job):
        raise ChartgenError(Problem(why))
    # a key that is an expression is no size: these rules say the same of every layout
    fixed = [rule for rule in rules_for(job) if rule.key.startswith("{")]
    if not (_passes(_OF_THE_JOB, job) and _is_clear(Rulebook(fixed).claims(job))):
        return
    rules, own, again, least = _rules(job), layout_values(job), _again(job, choices), _bounds(job, choices)
    heap = [(least(each), number, each) for number, each in enumerate(_candidates(job, choices), 1)]
    heapify(heap)
    heappush(heap, (0.0, 0, own))
    full: dict[str, float] = {}  # what memory depends on beside tokens -> tokens of a micro-batch without room
    while heap:
        bound, number, change = heappop(heap)
        if number and change == own:
            continue
        tokens = change["batch.micro"] / change["parallelism.context"]
        group = str({**change, "batch.micro": 0, "parallelism.context": 0})
        tried, most = changed(job, change), full.get(group, math.inf)
        share = _share(tried) if tokens < most else math.inf
        if share <= _limit(tried) or not number:
            if _is_clear(rules.claims(tried)) and _passes(OF_A_LAYOUT, tried):
                run, gpu = run_of_job(tried), job.machine.model
                memory = share * gpu.memory * GB if gpu else 0.0
                seconds = None if isinstance(run, str) else seconds_of(run)
                yield bound, Layout(tried, change, memory, share, seconds, not number)
            continue
        full[group] = min(tokens, most)
        if change["recompute"] != again[-1]:
            slower = {**change, "recompute": again[-1]}
            heappush(heap, (least(slower), number, slower))


def _bounds(job: Job, choices: tuple[str, ...]) -> Callable[[Change], float]:
    """Return a function for the least rank of a layout."""
    again, simple = _again(job, choices), {"parallelism.pipeline": 1, "parallelism.virtualPipeline": 1}
    runs = [run_of_job(changed(job, {**simple, "recompute": each})) for each in again]
    sharded = isinstance(runs[0], Run) and runs[0].sharded

    @cache
    def floor(place: int, micro: int, tensor: int, context: int, expert: int, shared: int) -> Any:
        if isinstance(run := runs[place], str):
            return None
        sizes: dict[str, Any] = {"tensor": tensor, "context": context, "expert": expert, "expert_tensor": shared}
        return least_seconds(replace(run, micro_batch=micro, **sizes))

    def least(change: Change) -> float:
        micro, tensor, stages, chunks, context, expert = _sizes_of(change)
        place, shared = again.index(change["recompute"]), change.get("parallelism.expertTensor", 1)
        seconds = floor(place, micro, tensor, context, expert, shared)
        pieces = job.world if sharded else tensor * stages * context * chunks
        return float((seconds(stages, chunks) * _ROUNDED if seconds else 1) * pieces**_PIECES * micro**_MICRO)

    return least


def _rules(job: Job) -> Rulebook:
    return Rulebook(rule for rule in rules_for(job) if _concerns(rule.key, rule.also))


def _limit(job: Job) -> float:
    """Return how full a GPU may be; by the formulas for all models, NVIDIA publishes runs up to 1.56."""
    return TIGHT if job.describes_model else TOO_MUCH


def _share(job: Job) -> float:
    """Return how full the fullest GPU is, by the formulas for GPT models, or else by those for all models."""
    if load := load_of(job):
        return load.share
    from chartgen.estimator.memory import memory_of

    run, gpu = run_of_job(job), job.machine.model
    return math.inf if isinstance(run, str) or gpu is None else memory_of(run) / (gpu.memory * GB)


def layout_values(job: Job) -> Change:
    """Return the values of a job that are its layout, by dotted key."""
    sizes = {f"parallelism.{name}": job.parallel(name) for name in _NAMES}
    shared = {"parallelism.expertTensor": job.parallel("expertTensor")} if _experts(job) else {}
    sequence = {"parallelism.sequence": bool(job.values["parallelism"]["sequence"])}
    return {**sizes, **sequence, **shared, "batch.micro": job.micro_batch, "recompute": job.values["recompute"]}


def _candidates(job: Job, choices: tuple[str, ...]) -> Iterator[Change]:
    """Yield layouts whose sizes divide GPUs, layers, experts and batch; the checks decide about the rest."""
    micros = _MICRO_BATCHES if "batch.micro" in choices else (job.micro_batch,)
    shardings = _shardings(job) if "sharding" in choices else ({},)
    world, batch, own = job.world, job.global_batch, {**layout_values(job), "recompute": _again(job, choices)[0]}
    for sizes in _sizes(job) if "parallelism" in choices else ({},):
        change = {**own, **sizes}
        _, tensor, stages, _, context, _ = _sizes_of(change)
        copies = world // (tensor * stages * context)
        for micro in micros:
            if copies and batch % (micro * copies) == 0:
                for sharding in shardings[: 1 + (stages == 1 < copies)]:
                    yield {**change, "batch.micro": micro, **sharding}


def _again(job: Job, choices: tuple[str, ...]) -> list[Any]:
    """Return what a layout may compute again: the first that fits is the fastest."""
    return ["none", "full"] if "recompute" in choices and job.describes_model else [job.values["recompute"]]


def _shardings(job: Job) -> tuple[Change, ...]:
    """Return what layouts may add: nothing, or FSDP, where the values leave it open and the image's program has it.

    None of NVIDIA's recipes with FSDP has pipeline stages, which would gather the parameters for each micro-batch.
    """
    change = {
        name if name.startswith("env.") else job.key(name): value for name, value in job.launcher.sharding.items()
    }
    lacks = (claim for check in KNOWN for claim in check.function(changed(job, change)))
    return ({},) if not change or any("fsdp" in name for name in job.options) or any(lacks) else ({}, change)


def _sizes(job: Job) -> Iterator[dict[str, Any]]:
    """Yield parallel sizes."""
    world, model = job.world, architecture_of(job)
    for tensor in divisors(world, min(job.machine.gpus, world)):
        if model and not _divides(model, tensor):
            continue
        for stages, chunks in _splits(job, world // tensor):
            for context in _contexts(job, world // (tensor * stages)):
                sizes = {"parallelism.tensor": tensor, "parallelism.pipeline": stages}
                sizes |= {"parallelism.virtualPipeline": chunks, "parallelism.context": context}
                for experts in _sharing(job, tensor, stages):
                    yield {**sizes, **experts, "parallelism.sequence": tensor > 1}


def _divides(model: Architecture, tensor: int) -> bool:
    """Report whether GPUs can share the heads and the hidden size, of a recipe's model too, which no rule knows."""
    groups = model.groups or model.heads
    return model.heads % tensor == model.hidden % tensor == 0 and (groups % tensor == 0 or tensor % groups == 0)


def _splits(job: Job, most: int) -> Iterator[tuple[int, int]]:
    """Yield numbers of stages and of their chunks."""
    recipe, model = ({}, None) if job.describes_model else (recipe_of(job), architecture_of(job))
    if "splits" in recipe:
        yield from ((stages, chunks) for stages, chunks in recipe["splits"] if most % stages == 0)
        return
    layers = recipe.get("shared") or (model.layers if model else job.pipeline_layers)
    for stages in divisors(most, layers):
        if model is None or layers % stages == 0:
            yield from ((stages, chunks) for chunks in (divisors(layers // stages) if stages > 1 else (1,)))


def _contexts(job: Job, most: int) -> list[int]:
    """Return context parallel sizes; a recipe has no other than its own, as its attention may not support them."""
    return [size for size in divisors(most) if job.describes_model or size in (1, job.parallel("context"))]


def _sharing(job: Job, tensor: int, stages: int) -> Iterator[dict[str, int]]:
    """Yield how GPUs share the experts, each whole where the program can, as in all of NVIDIA's recipes."""
    count = _experts(job)
    if not count:
        yield {"parallelism.expert": 1}
        return
    shared = 1 if "parallelism.expertTensor" in job.launcher.owns else tensor
    for expert in divisors(count):
        if job.world % (shared * stages * expert) == 0:
            yield {"parallelism.expert": expert, "parallelism.expertTensor": shared}


@once_for_layouts
def _experts(job: Job) -> int:
    """Return the experts of a layer."""
    if job.describes_model:
        return job.model("experts")
    model = architecture_of(job)
    return model.experts.get("count", 0) if model else 0


def _passes(checks: tuple[Rule, ...], job: Job) -> bool:
    return _is_clear(claim for check in checks if job.launcher.task in check.tasks for claim in check.function(job))


def _is_clear(claims: Iterator[KeyProblem]) -> bool:
    """Report whether a layout answers for none of the claims."""
    return not any(_concerns(claim.key, claim.also) for claim in claims)


def _concerns(key: str, also: tuple[str, ...]) -> bool:
    """Report whether a layout answers for a claim with these keys."""
    return key.partition(".")[0] in _ITS_KEYS or any(each.startswith(_CHOSEN) for each in also)


def _rank(layout: Layout) -> float:
    """Return the estimated time of a layout with what vendors prefer; less is better."""
    job = layout.job
    pieces = job.model_parallel * (job.data_parallel if layout.sharded else job.parallel("virtualPipeline"))
    return float(_seconds(layout) * pieces**_PIECES * job.micro_batch**_MICRO)


def _seconds(layout: Layout) -> float:
    return layout.step_seconds or 1
