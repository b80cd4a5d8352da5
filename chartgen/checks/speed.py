"""How fast a job will be, and what its training takes: the estimator's answer for a target and values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from chartgen.checks.job import Job, Recompute, once, once_for_layouts
from chartgen.checks.memory import PROGRAMS
from chartgen.data.gpus import list_price
from chartgen.data.models import Architecture, find_architecture
from chartgen.errors import Problem
from chartgen.estimator import Estimate, Range, Run, estimate_run
from chartgen.estimator.estimate import calibrated, hardware_of, months_of, speed_table

_HOUR = 3600.0
# Below this share of the estimated speed a run is worth a look.
_SLOW = 0.7
_DAY = 24 * _HOUR
# Months before NeMo 25.09 that an image without a month in its name counts as.
_LONG_AGO = 12.0


@dataclass(frozen=True)
class JobSpeed:
    """The estimated speed of a job on a target; without figures if none can be given."""

    target: str
    machine_type: str  # the machine type
    gpu: str  # the GPU model
    gpus: int  # GPUs of the run that train
    tokens_per_step: int  # tokens that one step trains
    estimate: Estimate | None  # the figures; None without any
    reason: str = ""  # why it has none; empty otherwise
    price: float | None = None  # the user's price of one GPU for an hour; None = not given
    run: Run | str = ""  # the run in the estimator's terms, or why no formula covers it
    spares: int = 0  # GPUs of its spare machines, which cost the same

    @property
    def extra(self) -> str:
        """Return a word for a price that includes spares; empty without."""
        return " with spares" if self.spares else ""


@dataclass(frozen=True)
class Budget:
    """What training on a number of tokens takes, if the run never stops."""

    tokens: float  # the tokens
    days: Range  # days
    gpu_hours: Range  # hours of all GPUs together, those of spares too
    cost: Range | None  # the price of these hours; None without a price
    price: float | None  # price of one GPU for an hour; None if unknown
    price_source: str = ""  # where a list price is from, and of which month; empty for the user's own


@once
def speed_of(job: Job) -> JobSpeed:
    """Return the estimated speed of a job whose sizes divide each other, or the reason why it has none."""
    run = run_of_job(job)
    found = None if isinstance(run, str) else estimate_run(run)
    reason = run if isinstance(run, str) else "" if found else f"{job.machine.gpu} has no peak for {run.precision}"
    tokens = 0 if isinstance(run, str) else run.global_batch * run.sequence
    price, spares = _own_figures(job).get("price"), int(job.values["run"].get("spares") or 0) * job.gpus_per_node
    machine = job.machine
    return JobSpeed(job.target.name, machine.name, machine.gpu, job.world, tokens, found, reason, price, run, spares)


def _own_figures(job: Job) -> Mapping[str, float]:
    """Return what the user's values know of the machine type."""
    return dict((job.values.get("estimate") or {}).get(job.machine.name) or {})


def budget_of(speed: JobSpeed, tokens: float, price: float | None = None) -> Budget | None:
    """Return what training takes; None without an estimate.

    Args:
        speed: The estimated speed.
        tokens: Tokens of the whole training.
        price: Price of one GPU for an hour; None = that of the values, or the list price, if known.
    """
    if speed.estimate is None:
        return None
    price = speed.price if price is None else price
    seconds = speed.estimate.step_seconds.times(tokens / speed.tokens_per_step)
    listed = list_price(speed.machine_type) if price is None else None
    rate = listed.price if listed else price
    hours = seconds.times((speed.gpus + speed.spares) / _HOUR)
    source = f"US dollars, list price of {listed.date}: {listed.source}" if listed else ""
    return Budget(tokens, seconds.times(1 / _DAY), hours, None if rate is None else hours.times(rate), rate, source)


def describe_speed(speed: JobSpeed, steps: int) -> str:
    """Return the estimate in one line: the time of a step, and of all with their cost; empty without figures."""
    if speed.estimate is None:
        return ""
    text = f"{range_text(speed.estimate.step_seconds)} s a step"
    budget = budget_of(speed, float(steps * speed.tokens_per_step)) if steps else None
    if budget:
        scales = {"days": 1, "hours": 24, "minutes": 24 * 60}
        unit = next((name for name, scale in scales.items() if budget.days.middle * scale >= 1), "minutes")
        text += f", {range_text(budget.days.times(scales[unit]))} {unit} for {steps:,} steps"
    if budget and budget.cost and budget.price:
        listed = list_price(speed.machine_type) if budget.price_source else None
        source = f"list price of {listed.date}" if listed else "your price"
        text += f", {range_text(budget.cost)} at {budget.price:g} for a GPU and hour{speed.extra}, {source}"
    return text


def range_text(found: Range) -> str:
    """Return a range as text, to three digits."""
    return f"{_digits(found.middle)} ({_digits(found.low)} to {_digits(found.high)})"


def _digits(value: float) -> str:
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


def why_slow(job: Job, seconds: float) -> Problem | None:
    """Return the likeliest reason why a step takes far longer than estimated; None where nothing shows that it does.

    Args:
        seconds: The measured time of a step, without the first ones.
    """
    if job.values["profile"]["enabled"]:
        return None
    found = speed_of(job).estimate
    if found is None or seconds <= max(found.step_seconds.high, found.step_seconds.middle / _SLOW):
        return None
    share = found.step_seconds.middle / seconds
    expected = f"{range_text(found.step_seconds)} s"
    return Problem(
        f"a step takes {seconds:.3g} s, estimated {expected}: {share:.0%} of that speed", hint=_reason(job, found)
    )


def _reason(job: Job, found: Estimate) -> str:
    """Return the likeliest reason: what nothing else checks comes first."""
    values = job.values
    if job.nodes > 1 and values["network"]["transportCheck"] != "fail":
        return "with network.transportCheck fail, the run stops if NCCL fell back to TCP"
    if old := next((what for what in found.unmeasured if what.startswith("software")), ""):
        return f"try a newer image: no measured run had this {old}"
    data = values["data"]
    if (data["name"] or data["prefixes"]) and not data["stage"]:
        return "if GPUs wait for data: try data.stage, or a run without data sets for comparison"
    return "find a slow machine: launcher nccl-test, mode pairs; or compare `chartgen fit`"


@once
def run_of_job(job: Job) -> Run | str:
    """Return a job in the estimator's terms, or why no formula covers it."""
    fixed = _of_every_layout(job)
    if isinstance(fixed, str):
        return fixed
    modules = job.options.get("recompute_modules", "") if job.recompute.granularity == "selective" else ""
    return Run(
        **fixed,
        **decided_sizes(job),
        micro_batch=job.micro_batch,
        tensor=job.parallel("tensor"),
        pipeline=job.parallel("pipeline"),
        virtual=job.parallel("virtualPipeline"),
        context=job.parallel("context"),
        expert=job.parallel("expert"),
        expert_tensor=job.parallel("expertTensor") if fixed["model"].experts else 1,
        modules=re.findall(r"\w+", str(modules)),
    )


@once_for_layouts
def _of_every_layout(job: Job) -> dict[str, Any] | str:
    program = PurePosixPath(job.own.get("program") or job.launcher.program).name
    if program not in PROGRAMS:
        return f"no formula covers {program or job.launcher.name}"
    hardware = hardware_of(job.machine.model, job.machine.name) if job.machine.model else None
    if hardware is None:
        return f"the speeds of GPU {job.machine.gpu} are not known"
    model = architecture_of(job)
    if model is None:
        return f"the sizes of the model of {job.own[job.launcher.own_model]} are not known"
    if "sequence" not in decided_sizes(job):
        return f"the sequence length of {job.own[job.launcher.own_model]} is not known"
    given = [name for name, value in job.options.items() if value]
    return {
        "model": model,
        "hardware": calibrated(hardware, _own_figures(job)),
        "gpus": job.world,
        "global_batch": job.global_batch,
        "sharded": any("fsdp" in name for name in given),
        "adapters": any(name.startswith(("peft", "lora")) for name in given),
        "software": _months(job),
    }


def _months(job: Job) -> float:
    """Return the age of the software; that of an image which names no month counts as older than all."""
    months = months_of(job.release("nvidia/nemo") or job.image)
    return -_LONG_AGO if months is None else months


def decided_sizes(job: Job) -> Mapping[str, Any]:
    """Return sequence length, precision and recomputation: of the values, or of the recipe with its `config`."""
    if job.describes_model:
        sequence = int(job.values["sequenceLength"])
        return {"sequence": sequence, "precision": job.values["precision"], "recomputed": _recomputed(job)}
    recipe = recipe_of(job)
    found = {"recomputed": 0, **{key: recipe[key] for key in recipe if key not in ("shared", "splits")}}
    for name, value in job.options.items():
        if name == "seq_length":
            found["sequence"] = int(value)
        elif name == "mixed_precision":
            found["precision"] = next((each for each in ("mxfp8", "nvfp4", "fp8") if each in str(value)), "bf16")
        elif name == "recompute_granularity":
            found["recomputed"] = int(value == "full")
    return found if "precision" in found else {}


def recipe_of(job: Job) -> Mapping[str, Any]:
    """Return what the recipe of a job decides; nothing for an unknown one."""
    found: Mapping[str, Any] = speed_table()["recipes"].get(str(job.own[job.launcher.own_model]), {})
    return found


def _recomputed(job: Job) -> float:
    """Return the share of layers that are computed again."""
    given: Recompute = job.recompute
    if given.granularity != "full":
        return 0.0
    chunks = job.parallel("pipeline") * job.parallel("virtualPipeline")
    return 1.0 if given.method == "uniform" else min(given.layers * chunks / job.model("layers"), 1.0)


@once_for_layouts
def architecture_of(job: Job) -> Architecture | None:
    """Return the model: that of the table by the recipe's name, or by the sizes of the values."""
    if not job.describes_model:
        return find_architecture(str(job.own[job.launcher.own_model]))
    family, experts = job.values["model"]["family"], job.model("experts")
    ffn = job.model("ffnHiddenSize")
    routed = {"layers": job.model("layers"), "count": experts, "active": job.model("expertsPerToken"), "ffn": ffn}
    model = Architecture(
        name=str(job.values["model"].get("name") or family),
        layers=job.model("layers"),
        hidden=job.model("hiddenSize"),
        vocabulary=job.model("vocabularySize"),
        heads=job.model("attentionHeads"),
        groups=job.model("queryGroups"),
        ffn=0 if experts else ffn,
        tied=job.ties_embeddings,
        gated=family != "gpt",
        experts=routed if experts else {},
    )
    known = find_architecture(model.name)
    is_same = known and (known.layers, known.hidden) == (model.layers, model.hidden)
    return replace(model, name=known.name) if known and is_same else model
