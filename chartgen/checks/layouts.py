"""Parallel layouts that a model can train in on a number of GPUs: all that pass every check, the best guess first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chartgen.checks.catalogue import CHECKS
from chartgen.checks.job import Job
from chartgen.checks.known_options import KNOWN
from chartgen.checks.memory import GB, unestimated
from chartgen.checks.memory_fit import CAPACITY, TIGHT, TOO_MUCH, Change, changed, load_of
from chartgen.checks.program_settings import OF_A_LAYOUT, divisors
from chartgen.checks.rules import Rulebook, rules_for
from chartgen.checks.speed import architecture_of, recipe_of, run_of_job
from chartgen.data.models import Architecture
from chartgen.errors import ChartgenError, Problem
from chartgen.estimator import Run, seconds_of
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
        ChartgenError: The memory of the program or the GPU is not known.
    """
    if not can_estimate(job):
        what = unestimated(job) or job.machine.gpu
        message = f"cannot estimate the memory of {job.launcher.name}: no formula covers {what}"
        raise ChartgenError(Problem(message, hint="fit works where Megatron-LM or NeMo pretrain a model"))
    found = sorted(searched(job, choices), key=lambda layout: (not layout.fits, _rank(layout)))
    # one that is predicted to be slower than the values' own comes after it
    return sorted(found, key=lambda each: not (each.own and each.fits and _seconds(each) <= _seconds(found[0])))


def can_estimate(job: Job) -> bool:
    """Report whether a formula covers the memory of the program and of the GPU."""
    return load_of(job) is not None or not isinstance(run_of_job(job), str)


def works(job: Job) -> bool:
    """Report whether the job's own layout passes every check that layouts answer for."""
    load = load_of(job)
    has_room = load is None or load.certain <= TOO_MUCH
    return has_room and _is_clear(_rules(job).claims(job)) and _passes(OF_A_LAYOUT, job)


def searched(job: Job, choices: tuple[str, ...]) -> Iterator[Layout]:
    """Yield the layouts of a job that pass every check and fit, and first its own one if it passes, however full."""
    # a key that is an expression is no size: these rules say the same of every layout
    fixed = [rule for rule in rules_for(job) if rule.key.startswith("{")]
    if not (_passes(_OF_THE_JOB, job) and _is_clear(Rulebook(fixed).claims(job))):
        return
    rules, own = _rules(job), layout_values(job)
    for number, steps in enumerate(([own], *_candidates(job, choices))):
        tried = ((each, changed(job, each)) for each in steps)
        found = next(
            ((each, it, share) for each, it in tried if (share := _share(it)) <= _limit(it) or each == own), None
        )
        if found and (found[0] != own or number == 0):
            change, candidate, share = found
            if _is_clear(rules.claims(candidate)) and _passes(OF_A_LAYOUT, candidate):
                run, gpu = run_of_job(candidate), job.machine.model
                memory = share * gpu.memory * GB if gpu else 0.0
                seconds = None if isinstance(run, str) else seconds_of(run)
                yield Layout(candidate, change, memory, share, seconds, number == 0)


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
    return _change(job, _parallelism(job))


def _parallelism(job: Job) -> dict[str, Any]:
    names = ("tensor", "pipeline", "virtualPipeline", "context", "expert")
    return {**{name: job.parallel(name) for name in names}, "sequence": bool(job.values["parallelism"]["sequence"])}


def _change(job: Job, parallelism: dict[str, Any], micro: int = 0, recompute: Any = None) -> Change:
    shared = {"expertTensor": parallelism.pop("expertTensor", job.parallel("expertTensor"))} if _experts(job) else {}
    sizes = {f"parallelism.{name}": size for name, size in {**parallelism, **shared}.items()}
    return {**sizes, "batch.micro": micro or job.micro_batch, "recompute": recompute or job.values["recompute"]}


def _candidates(job: Job, choices: tuple[str, ...]) -> Iterator[list[Change]]:
    """Yield layouts whose sizes divide GPUs, layers, experts and batch; the checks decide about the rest.

    Those of one list differ in what is computed again: the first that fits is the fastest.
    """
    again = ["none", "full"] if "recompute" in choices and job.describes_model else [job.values["recompute"]]
    micros = _MICRO_BATCHES if "batch.micro" in choices else (job.micro_batch,)
    shardings = _shardings(job) if "sharding" in choices else ({},)
    for sizes in _sizes(job) if "parallelism" in choices else [_parallelism(job)]:
        copies = job.world // (sizes["tensor"] * sizes["pipeline"] * sizes["context"])
        for micro in micros:
            if copies and job.global_batch % (micro * copies) == 0:
                for sharding in shardings[: 1 + (sizes["pipeline"] == 1 < copies)]:
                    yield [{**_change(job, {**sizes}, micro, each), **sharding} for each in again]


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
                names = {"tensor": tensor, "pipeline": stages, "virtualPipeline": chunks, "context": context}
                for experts in _sharing(job, tensor, stages):
                    yield {**names, **experts, "sequence": tensor > 1}


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
        yield {"expert": 1}
        return
    shared = 1 if "parallelism.expertTensor" in job.launcher.owns else tensor
    for expert in divisors(count):
        if job.world % (shared * stages * expert) == 0:
            yield {"expert": expert, "expertTensor": shared}


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
