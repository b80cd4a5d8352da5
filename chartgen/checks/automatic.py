"""What values leave to chartgen: layouts (the word `auto`, presets on other machines), and how a run survives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from chartgen.checks.job import Job, job_of, value_at
from chartgen.checks.layouts import CHOICES, Layout, first_of, layout_values, layouts_of, why_unsearchable, works
from chartgen.checks.memory_fit import Change, changed, is_uneven, nested_values
from chartgen.checks.rules import judge
from chartgen.checks.speed import JobSpeed, speed_of
from chartgen.checks.training import chosen_grace, chosen_interval
from chartgen.checks.values import check_values, effective_values
from chartgen.composer.composed import composed_chart
from chartgen.composer.origin import Composed, origin_of
from chartgen.composer.target import Target
from chartgen.errors import ChartgenError, Problem
from chartgen.estimator import Estimate
from chartgen.findings import Rule
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values

AUTO = "auto"
# What a layout depends on: while it stays the same, an upgrade keeps the layout of the release. A run that saves keeps
# it on other machines too, since Megatron's checkpoints of the optimizer are by default those of one layout.
_BASIS = ("launcher", "model", "sequenceLength", "precision")
_MACHINES = ("nodes", "gpusPerNode", "machineType", "batch.global")
# Of two layouts that are less apart, the estimate often does not know the faster one (docs/explanation/prediction.md).
_NEAR = 1.1
_MOST_GPUS = 16384
# Machines from which on one waits for a lost one: 16 with 8 GPUs each lose one in 16 days (Llama 3's rate).
_SPARED = 16
FITTING = Rule(
    "layout-fits",
    "Where values or a preset leave the layout to chartgen, one must pass every check and fit into memory.",
    "`nodes`: use as many machines as the finding names",
)


@dataclass(frozen=True)
class Decision:
    """Values whose layout consists of numbers."""

    values: Values
    change: Change  # the keys of the layout that were chosen, with their numbers; nothing if the values had them all
    step_seconds: float | None = None  # estimated time of a step in the chosen layout; None if not known
    reason: str = ""  # why chartgen chose: the keys that are `auto`, or what the layout of the preset was
    job: Job | None = None  # the job of the values, if it has been read
    # What the values leave out of how the run saves and survives, with the numbers that were chosen
    saving: Change = field(default_factory=dict)

    def __str__(self) -> str:
        step = f" (estimated {self.step_seconds:.3g} s a step)" if self.step_seconds else ""
        left = [f"{key}: left out -> {value}" for key, value in self.saving.items()]
        return "; ".join([f"{self.reason} -> {_sizes(self.change)}{step}", *left] if self.change else left)


def _sizes(change: Change) -> str:
    return ", ".join(f"{key.removeprefix('parallelism.')} {str(value).lower()}" for key, value in change.items())


def decide(chart: Chart, values: Values, before: Mapping[str, Any] | None = None) -> Decision:
    """Choose what values leave open: the layout; interval of checkpoints, grace period and spares of a run that saves.

    The layout is the first of `chartgen fit`, among the keys that are `auto`. Those of a preset are, unless the user
    set sizes; but its own layout stays where it works and the first one is not estimated to be 10 % faster.

    Args:
        chart: The chart; values of charts that chartgen did not make stay unchanged.
        values: The user's layers.
        before: The values of the release, whose choices are kept while model and machines stay the same.

    Raises:
        ChartgenError: No layout fits; the message has the least number of machines, if one is known.
    """
    decision = _with_layout(chart, values, before)
    data = decision.values.data
    own = {key: value_at(data, key) for key in _LEFT_OUT if value_at(data, "checkpoint.enabled")}
    left = [key for key, value in own.items() if value is None or _of_preset(values, key)]
    fits = left and (decision.job or not check_values(chart, decision.values))
    job = decision.job or job_of(chart, decision.values) if fits else None
    if job is None:
        return decision
    former = _former(chart, job, before) if before else None
    kept = before if former and value_at(former.values, "checkpoint.enabled") else None
    chosen = {key: value_at(kept, key) if kept else _LEFT_OUT[key](job) for key in left}
    change = {key: number for key, number in chosen.items() if number not in (None, value_at(job.values, key))}
    # a preset's number is for the machines of its source
    change = {key: number for key, number in change.items() if own[key] is None or number < own[key]}
    values = replace(decision.values, data=nested_values(change, data))
    return replace(decision, values=values, job=changed(job, change), saving=change)


def chosen_spares(job: Job) -> int | None:
    """Return 1 for a large run whose image, rules and rack of NVLink leave room for a spare; else None."""
    if job.nodes < _SPARED or not job.can("ft_launcher"):
        return None
    return 1 if len([*judge(changed(job, {"run.spares": 1}))]) == len([*judge(job)]) else None


# What is chosen where a run saves and its values leave it out, though the charts have a default.
_LEFT_OUT = {
    "checkpoint.interval": chosen_interval,
    "run.gracePeriodSeconds": chosen_grace,
    "run.spares": chosen_spares,
}


def _with_layout(chart: Chart, values: Values, before: Mapping[str, Any] | None) -> Decision:
    """Choose the layout that values leave open."""
    origin, words = origin_of(chart), open_keys(values)
    if not isinstance(origin, Composed) or not (words or values.presets):
        return Decision(values, {})
    plain = replace(values, data=_without(values.data, words))
    if origin.setup or check_values(chart, plain):
        return Decision(plain, {})
    job = Job(effective_values(chart, plain), origin.target, origin.workload)
    stay, reason = Decision(plain, {}, job=job), f"{', '.join(words)}: auto"
    # a preset's layout that no other layer changes, where formulas cover others
    of_preset = not words and _of_preset(values, "parallelism") and job.trains and not why_unsearchable(job)
    if of_preset:
        words, reason = tuple(key for key in CHOICES if _of_preset(values, key)), "layout of the release"
    if not words:
        return stay
    if before and (kept := _kept(chart, job, words, before)):
        is_own = of_preset and kept.items() <= layout_values(job).items()
        return stay if is_own else _decision(plain, words, kept, None, reason)
    first = first_of(job, words)
    if of_preset:
        reason = f"layout of the preset does not fit {job.world} {job.machine.gpu}"
        if works(job):
            known = speed_of(job).estimate
            if first is None or known is None or known.step_seconds.middle <= _NEAR * (first.step_seconds or math.inf):
                return stay
            reason = _reason(job, first, known)
    if first is None:
        raise ChartgenError(_refusal(job, words, plain))
    return _decision(plain, words, first.values, first.step_seconds, reason)


def _reason(job: Job, first: Layout, known: Estimate) -> str:
    """Return why a faster layout than a preset's own one is chosen."""
    sizes = _sizes({key: value for key, value in layout_values(job).items() if value != first.values[key]})
    keep = f"--set parallelism.tensor={job.parallel('tensor')} keeps it"
    return f"layout of the preset ({sizes}: estimated {known.step_seconds.middle:.3g} s a step; {keep})"


def open_keys(values: Values) -> tuple[str, ...]:
    """Return the keys that values leave to chartgen with the word `auto`."""
    return tuple(key for key in CHOICES if value_at(values.data, key) == AUTO)


def _of_preset(values: Values, key: str) -> bool:
    return values.depth(tuple(key.split("."))) <= values.presets


def _decision(values: Values, words: tuple[str, ...], layout: Change, seconds: float | None, reason: str) -> Decision:
    change = {key: value for key, value in layout.items() if key.startswith(words)}
    return Decision(replace(values, data=nested_values(change, values.data)), change, seconds, reason)


def _without(data: dict[str, Any], words: tuple[str, ...]) -> dict[str, Any]:
    """Return values without the keys that are `auto`, so that the chart's defaults count."""
    found = {key: value for key, value in data.items() if key not in words}
    if "batch.micro" in words:
        found["batch"] = {name: value for name, value in found["batch"].items() if name != "micro"}
    return found


def _kept(chart: Chart, job: Job, words: tuple[str, ...], before: Mapping[str, Any]) -> Change | None:
    """Return the layout of the release, if what it depends on is as it was and it still works."""
    saves = value_at(job.values, "checkpoint.enabled") and value_at(before, "checkpoint.enabled")
    former = _former(chart, job, before, () if saves else _MACHINES)
    if former is None or value_at(former.values, "parallelism") == AUTO:
        return None
    layout = {key: value for key, value in layout_values(former).items() if key.startswith(words)}
    return layout if works(changed(job, layout)) else None


def _former(chart: Chart, job: Job, before: Mapping[str, Any], more: tuple[str, ...] = _MACHINES) -> Job | None:
    """Return the job of the release; None if what choices depend on is not as it was."""
    old = Values(dict(before))
    if check_values(chart, old):
        return None
    former = replace(job, values=effective_values(chart, old))
    return (
        former if all(value_at(former.values, key) == value_at(job.values, key) for key in (*_BASIS, *more)) else None
    )


def _refusal(job: Job, words: tuple[str, ...], values: Values) -> Problem:
    """Return why nothing fits: too few machines, a number that nothing divides, or more than the batch can use."""
    machines = f"{job.world} GPUs ({job.nodes} x {job.gpus_per_node} {job.machine.gpu})"
    message = f"nodes: no layout of {job.values['model']['name']} divides {machines} and fits into their memory"
    fewer, more = (next((each for each in sizes if _fits_on(job, words, each)), 0) for sizes in _other_sizes(job))
    limit = f"{fewer} or {more}" if fewer and more else f"at least {more}" if more else f"at most {fewer}"
    hint = f"use {limit} machines" if fewer or more else "use larger GPUs"
    place = values.origin(("nodes",)) if values.sets(("nodes",)) else values.origin(("parallelism",))
    return Problem(message, *place, hint)


def _other_sizes(job: Job) -> tuple[list[int], list[int]]:
    """Return powers of two, the nearest first: fewer machines, which a small batch may need, and more."""
    largest = (_MOST_GPUS // job.gpus_per_node).bit_length()
    fewer = [1 << power for power in range((job.nodes - 1).bit_length() - 1, -1, -1)]
    return fewer, [1 << power for power in range(job.nodes.bit_length(), largest)]


def _fits_on(job: Job, words: tuple[str, ...], nodes: int) -> bool:
    return first_of(changed(job, {"nodes": nodes}), words) is not None


def readable_job(target: Target, values: Values) -> Job:
    """Return the job that values describe on a target; raise ChartgenError where they do not fit the schema."""
    chart = composed_chart("compose_interface", target)
    if misfits := check_values(chart, values):
        raise ChartgenError(misfits)
    try:
        values = decide(chart, values).values
    except ChartgenError:  # a preset keeps its own layout then, which `check` reports
        if open_keys(values):
            raise
    return Job(effective_values(chart, values), target)


def fitting_layouts(target: Target, values: Values, gpus: int | None = None) -> list[Layout]:
    """List the layouts of a model that pass every check and fit into memory, best guess first.

    Precision and the global batch stay as the values have them. The values' own layout is one of the list when it
    passes.

    Args:
        target: The target.
        values: The user's layers: a model, and a machine type where it is not the target's first.
        gpus: GPUs of the run; None = those of the values.

    Raises:
        ChartgenError: A value does not fit the schema, the GPUs are not whole machines, or the memory of the program or
            the GPU is not known.
    """
    job = readable_job(target, replace(values, presets=0))  # a preset's own layout is that of the values
    return layouts_of(job if gpus is None else _on(job, gpus))


def _on(job: Job, gpus: int) -> Job:
    """Return the job on a number of GPUs: whole machines, or a part of one."""
    size = job.machine.gpus
    if gpus < 1 or (gpus > size and gpus % size):
        near = [number for number in (gpus // size * size, (gpus // size + 1) * size) if number > 0] or [size]
        message = f"{gpus} GPUs are not whole machines of {size}"
        raise ChartgenError(Problem(message, hint=f"nearest: {' or '.join(map(str, near))}"))
    return changed(job, {"nodes": max(gpus // size, 1), "gpusPerNode": min(gpus, size)})


def estimate(target: Target, values: Values) -> Estimate:
    """Estimate how fast a job will train, without a cluster.

    Raises:
        ChartgenError: No figure can be given: for the program, the model, the GPU or the precision, or because sizes do
            not divide each other.
    """
    found = speed_on(target, values)
    if found.estimate is None:
        hint = "run a few steps: `chartgen metrics` reads the speed from the log"
        raise ChartgenError(Problem(f"no estimate for target {target.name}: {found.reason}", hint=hint))
    return found.estimate


def speed_on(target: Target, values: Values) -> JobSpeed:
    """Return a job's estimated speed, or why it has none; raise ChartgenError for values that do not fit the schema."""
    job = readable_job(target, values)
    if is_uneven(job):
        reason = "sizes of the layout do not divide each other; `chartgen check` reports them"
        return JobSpeed(target.name, job.machine.name, job.machine.gpu, job.world, 0, None, reason)
    return speed_of(job)
