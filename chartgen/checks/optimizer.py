"""Learning rate, warm-up and initial weights: values that a launcher has no option for, or that its program refuses."""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.checks.claim import Check, Claim
from chartgen.checks.job import Job

# Keys that mean the launcher's default where they are null.
OPTIONAL = (
    *(f"optimizer.{name}" for name in ("learningRate", "minLearningRate", "warmupSteps")),
    *(f"optimizer.{name}" for name in ("decay", "weightDecay", "clipGradient")),
    *(f"model.{name}" for name in ("rotaryBase", "initStandardDeviation", "tiedEmbeddings")),
)
# NeMo 1 has other schedules, which do not take the options that its configuration gives to all of them.
_COSINE_ONLY = frozenset(("nemo-1",))


def settings_of_the_launcher(job: Job) -> Iterator[Claim]:
    """A program without an option for a value would train with another one."""
    for key in OPTIONAL:
        if key not in job.launcher.owns and job.given(key) is not None:
            yield Claim(key, f"launcher {job.launcher.name} has no option for it", "use null", ("launcher",))


def decay_of_the_launcher(job: Job) -> Iterator[Claim]:
    """Not every program lets a learning rate fall in each way."""
    decay = job.given("optimizer.decay")
    if job.launcher.name in _COSINE_ONLY and decay not in (None, "cosine"):
        message = f"launcher {job.launcher.name} has no {decay}"
        yield Claim("optimizer.decay", message, "use cosine, or launcher megatron-lm", ("launcher",))


def learning_rate_above_its_minimum(job: Job) -> Iterator[Claim]:
    """Megatron-LM stops at the start when the learning rate's minimum is above its maximum; others would raise it."""
    highest, lowest = (job.setting(f"optimizer.{name}") for name in ("learningRate", "minLearningRate"))
    if highest is not None and lowest is not None and lowest > highest:
        also = ("optimizer.learningRate",)
        message = f"{lowest:g} is above learningRate {highest:g}"
        yield Claim("optimizer.minLearningRate", message, f"use {highest / 10:g}, or 0", also)


def warmup_of_the_run(job: Job) -> Iterator[Claim]:
    """Megatron-LM counts warm-up as it counts the run, in steps or samples, and ends it before the decay does."""
    warmup, config = job.given("optimizer.warmupSteps"), job.own.get("config") or {}
    key = "launchers.megatron-lm.config"
    if job.launcher.name != "megatron-lm" or warmup is None:
        return
    decay = config.get("lr-decay-iters")
    if not job.values["steps"]:
        message = f"{warmup} counts steps, and the run counts samples"
        yield Claim("optimizer.warmupSteps", message, f"use null, and {key}.lr-warmup-samples", ("steps",))
    elif isinstance(decay, int) and warmup >= decay:
        message = f"{warmup} is not below lr-decay-iters {decay}"
        yield Claim("optimizer.warmupSteps", message, f"use {max(decay - 1, 0)} or less", (f"{key}.lr-decay-iters",))


def rotary_base_of_the_family(job: Job) -> Iterator[Claim]:
    """A model that learns its positions has no rotary ones."""
    if job.given("model.rotaryBase") and job.values["model"]["family"] == "gpt":
        yield Claim("model.rotaryBase", "family gpt learns its positions", "use null", ("model.family",))


def layers_computed_again(job: Job) -> Iterator[Claim]:
    """Units of layers that are computed again end where a chunk of layers does; the next layer is on another GPU."""
    again, parts = job.recompute, job.parallel("pipeline") * job.parallel("virtualPipeline")
    if again.granularity != "full" or again.method != "uniform" or job.pipeline_layers % parts:
        return
    chunk = job.pipeline_layers // parts
    if chunk % again.layers:
        fitting = max(size for size in range(1, again.layers) if not chunk % size)
        message = f"units of {again.layers} layers do not divide a chunk of {chunk}"
        yield Claim(
            "recompute.layers", message, f"use {fitting}, or method block", ("recompute", "parallelism.pipeline")
        )


_SCHEDULE = "NVIDIA/Megatron-LM core_v0.19.0, megatron/core/optimizer_param_scheduler.py"
_BLOCK = "NVIDIA/Megatron-LM core_v0.12.1, megatron/core/transformer/transformer_block.py"
OPTIMIZER = (
    Check(settings_of_the_launcher, "chartgen/library/launchers, the options that each launcher owns"),
    Check(decay_of_the_launcher, "NVIDIA/NeMo v2.4.0, nemo/core/optim/lr_scheduler.py"),
    Check(learning_rate_above_its_minimum, _SCHEDULE),
    Check(warmup_of_the_run, _SCHEDULE),
    Check(rotary_base_of_the_family, "chartgen/library/launchers, each launcher's configuration"),
    Check(layers_computed_again, _BLOCK),
)
