"""What makes no sense as a training run, although every machine would start it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from chartgen.checks.checkpoint_time import GRACE
from chartgen.checks.claim import Check, Claim
from chartgen.checks.job import Job
from chartgen.checks.machine import quantity

_SAMPLES = re.compile(r"train-samples|lr-(?:decay|warmup)-samples")
_ITERATIONS = re.compile(r"lr-(?:decay|warmup)-iters")
_NO_EVALUATION = re.compile(r"[^,]+,0*(?:[.]0*)?,")
_DATA = ("data.name", "data.prefixes")
# Most steps of a run that is started for its speed: those of the published benchmarks have 10 to 100.
_FEW_STEPS = 100
# Samples between two evaluations of the benchmark, unless its configuration says another number.
_BENCHMARK_INTERVAL = 384


def benchmark_reaches_an_evaluation(job: Job) -> Iterator[Claim]:
    """The MLPerf benchmark ends with the evaluation that reaches its target; without any there is no result."""
    if job.launcher.name != "mlperf-llama2-lora":
        return
    # what is no number is the program's to refuse
    given = str(_config(job).get("VAL_CHECK_INTERVAL"))
    interval = (int(given) if given.isdecimal() else 0) or _BENCHMARK_INTERVAL
    first = (job.global_batch // 8 + 3) * interval // job.global_batch
    if _steps(job) < first:
        message = (
            f"{_steps(job)} end before the first evaluation, which comes after {first} of {job.global_batch} samples"
        )
        yield Claim("steps", message, f"use {first} or more", ("batch.global",))


def evaluation_before_the_end(job: Job) -> Iterator[Claim]:
    """A run on real data that ends before its first evaluation does not tell what it learned."""
    steps, interval = _steps(job), int(job.values["evaluation"]["interval"])
    if job.values["evaluation"]["batches"] and _data(job) and 0 < steps < interval:
        message = f"{interval} is more than the run's {steps} steps: nothing is evaluated between them"
        yield Claim("evaluation.interval", message, f"use {steps}, or batches 0 to train only", ("steps", *_DATA))


def evaluation_between_measured_steps(job: Job) -> Iterator[Claim]:
    """A run of few steps that saves nothing is a measurement, and evaluations between its steps slow it."""
    evaluation, steps = job.values["evaluation"], _steps(job)
    measured = 0 < steps <= _FEW_STEPS and not job.values["checkpoint"]["enabled"]
    if measured and evaluation["batches"] and evaluation["interval"] < steps:
        message = (
            f"{evaluation['batches']} every {evaluation['interval']} steps, in a run of {steps} that saves nothing"
        )
        also = ("evaluation.interval", "steps")
        yield Claim("evaluation.batches", message, f"use 0 to measure, or interval {steps}", also)


def evaluation_has_data(job: Job) -> Iterator[Claim]:
    """Megatron-LM stops at the start when an evaluation has no share of the data."""
    batches, split = job.values["evaluation"]["batches"], job.values["data"]["split"]
    if job.launcher.name == "megatron-lm" and batches and _NO_EVALUATION.match(split):
        message = f"{split} keeps nothing for evaluation"
        yield Claim("data.split", message, "give it a share such as 98,2,0, or evaluation.batches 0")


def steps_or_samples(job: Job) -> Iterator[Claim]:
    """Megatron-LM counts a run in steps or in samples, and its learning rate in the same."""
    if job.launcher.name != "megatron-lm":
        return
    key, given, steps = "launchers.megatron-lm.config", _config(job), _steps(job)
    samples = [name for name, value in given.items() if _SAMPLES.fullmatch(name) and value is not None]
    iterations = [name for name, value in given.items() if _ITERATIONS.fullmatch(name) and value is not None]
    if steps and samples:
        message = f"{', '.join(samples)} counts samples, and steps is {steps}"
        yield Claim(f"{key}.{samples[0]}", message, "set steps to 0, or remove it", ("steps",))
    elif not steps and "train-samples" not in samples:
        message = "0 leaves the length to the launcher's configuration, which has no train-samples"
        yield Claim("steps", message, f"set it, or {key}.train-samples")
    elif not steps and iterations:
        message = f"{', '.join(iterations)} counts steps, and the run counts samples"
        yield Claim(f"{key}.{iterations[0]}", message, "use the option that ends in -samples", ("steps",))


def checkpoint_before_the_end(job: Job) -> Iterator[Claim]:
    """A run on real data that saves only at its end begins anew after every failure."""
    checkpoint, steps = job.values["checkpoint"], _steps(job)
    if checkpoint["enabled"] and _data(job) and 0 < steps < checkpoint["interval"]:
        message = f"{checkpoint['interval']} is more than the run's {steps} steps: nothing is saved before its end"
        hint = f"use {max(steps // 10, 1)}, or checkpoint.enabled false"
        yield Claim("checkpoint.interval", message, hint, ("steps", *_DATA))


def restarts_need_checkpoints(job: Job) -> Iterator[Claim]:
    """A run that is started again goes on from its last checkpoint; without one it repeats every step."""
    restarts = job.values["run"]["maxRestarts"]
    if restarts and not job.values["checkpoint"]["enabled"]:
        message = f"{restarts} restarts of a run that saves nothing, each of which begins anew"
        yield Claim("run.maxRestarts", message, "use 0, or checkpoint.enabled true", ("checkpoint.enabled",))


def checkpoints_outlive_the_pods(job: Job) -> Iterator[Claim]:
    """Checkpoints in a machine's memory take that from the run, and end with the pod: nothing is ever resumed."""
    if job.values["checkpoint"]["enabled"] and _outputs(job) == "memory":
        message = "checkpoints in memory:// are lost with the pod, and fill the machine's memory"
        hint = "use storage that all machines share, such as pvc://, or checkpoint.enabled false"
        yield Claim("storage.outputs.from", message, hint, ("checkpoint.enabled",))


def checkpoints_are_shared(job: Job) -> Iterator[Claim]:
    """Checkpoints on local disks are found on that machine only, and a run that is started again may be on others."""
    if job.values["checkpoint"]["enabled"] and _outputs(job) == "disk" and _data(job):
        hint = "use storage that all machines share, such as pvc://, or checkpoint.enabled false"
        message = "checkpoints in disk:// are on that machine only"
        yield Claim("storage.outputs.from", message, hint, ("checkpoint.enabled", *_DATA))


def training_on_data_saves(job: Job) -> Iterator[Claim]:
    """A long run on real data that saves nothing has lost everything with the first failure, and leaves no model."""
    steps, can_save = _steps(job), "checkpoint.enabled" in job.launcher.owns
    if can_save and not job.values["checkpoint"]["enabled"] and _data(job) and not 0 < steps <= _FEW_STEPS:
        message = f"false, and {steps or 'all'} steps on real data are lost with the first failure"
        yield Claim("checkpoint.enabled", message, "use true, with storage.outputs that outlives the pods", _DATA)


def _outputs(job: Job) -> str:
    """Return the scheme of the storage that runs write to."""
    scheme: str = job.values["storage"]["outputs"]["from"].partition("://")[0]
    return scheme


def profile_within_the_steps(job: Job) -> Iterator[Claim]:
    """A profile whose first step is never reached is empty."""
    profile, steps = job.values["profile"], _steps(job)
    if not profile["enabled"]:
        return
    first, last = profile["startStep"], profile["endStep"]
    if first > last:
        yield Claim(
            "profile.startStep", f"{first} is behind endStep {last}", f"use {last} or less", ("profile.endStep",)
        )
    elif 0 < steps <= first:
        also = ("profile.endStep", "steps", "profile.enabled")
        message = f"{first} is not among the {steps} steps of the run, which count from 0"
        yield Claim("profile.startStep", message, f"use {max(steps - 3, 0)} and endStep {steps - 1}", also)


def profiled_ranks_exist(job: Job) -> Iterator[Claim]:
    """Only ranks below the number of GPUs exist, and others record nothing."""
    beyond = [str(rank) for rank in job.values["profile"]["ranks"] if rank >= job.world]
    if job.values["profile"]["enabled"] and beyond:
        message = f"{', '.join(beyond)} beyond the {job.world} ranks of the run"
        yield Claim("profile.ranks", message, f"use 0 to {job.world - 1}", ("nodes", "gpusPerNode", "profile.enabled"))


def staging_needs_data(job: Job) -> Iterator[Claim]:
    """There is nothing to copy where no data set is named."""
    if job.values["data"]["stage"] and not _data(job):
        yield Claim("data.stage", "no data set to copy", "name one with data.name or data.prefixes, or use false")


def room_for_staged_data(job: Job) -> Iterator[Claim]:
    """Data sets that are copied to memory:// share the machine's memory, or the container's limit, with /dev/shm."""
    if not job.values["data"]["stage"] or job.values["storage"]["scratch"]["from"] != "memory://":
        return
    limits = (job.values["launchers"][job.launcher.name].get("resources") or {}).get("limits") or {}
    memory = limits.get("memory") or job.machine.capacity.get("memory", "")
    shared, room = quantity(job.values.get("sharedMemory", "0")) or Fraction(0), quantity(memory)
    if room is not None and room <= shared:
        message = f"memory:// has no room for the copy: sharedMemory may take all of {memory}"
        hint = "use disk:// where machines have local disks, less sharedMemory, or data.stage false"
        yield Claim("storage.scratch.from", message, hint, ("sharedMemory", "data.stage"))


def data_outlives_its_program(job: Job) -> Iterator[Claim]:
    """What another program puts into memory:// is gone when training starts: its data sets must be in real storage."""
    mounted = [each["mountPath"] for each in job.values["extraVolumeMounts"]]
    inside = job.values["data"]["directory"].startswith("/data") and not any(
        path.startswith("/data") for path in mounted
    )
    if _data(job) and inside and job.values["storage"]["data"]["from"] == "memory://":
        yield Claim(
            "storage.data.from", "memory:// is empty when the run starts", "use storage such as pvc://", ("data",)
        )


def tokenizer_of_the_data(job: Job) -> Iterator[Claim]:
    """Data sets hold the numbers of one tokenizer, and a model trained without naming it cannot be used."""
    if _data(job) and job.values["tokenizer"]["kind"] == "none":
        hint = "set it to gpt2, sentencepiece or huggingface, with tokenizer.path"
        yield Claim("tokenizer.kind", "none, and the data was made with one", hint, _DATA)


def tokenizer_has_files(job: Job) -> Iterator[Claim]:
    """A tokenizer is read from files: without a directory, its program stops at the start."""
    kind, path = job.values["tokenizer"]["kind"], job.values["tokenizer"]["path"]
    fetched = job.launcher.name == "nemo-1" and kind == "gpt2"  # NeMo gets these by itself
    if kind != "none" and not path and not fetched:
        yield Claim("tokenizer.path", f"empty, and {kind} needs a directory", "set it", ("tokenizer.kind",))


def _steps(job: Job) -> int:
    """Return the run's steps; 0 when the launcher's own configuration decides."""
    return int(job.values["steps"])


def _data(job: Job) -> bool:
    """Report whether the run reads data sets; one on mock data learns nothing worth keeping."""
    return bool(job.values["data"]["name"] or job.values["data"]["prefixes"])


def _config(job: Job) -> dict[str, Any]:
    config: dict[str, Any] = job.values["launchers"][job.launcher.name].get("config") or {}
    return config


_LORA = "mlcommons/training_results_v5.0, NVIDIA/benchmarks/llama2_70b_lora, conf/megatron_gpt_peft_tuning_config.yaml"
_ARGUMENTS = "NVIDIA/Megatron-LM core_v0.19.0, megatron/training/arguments.py"
_GUIDE = "aws-samples/awsome-distributed-training @ 7217859, 3.test_cases/megatron/megatron-lm/kubernetes/gpt3"
TRAINING = (
    Check(benchmark_reaches_an_evaluation, _LORA),
    Check(evaluation_before_the_end, "NVIDIA/Megatron-LM core_v0.19.0, megatron/training/training.py", "warning"),
    Check(evaluation_between_measured_steps, f"{_GUIDE}, benchmark mode", "warning"),
    Check(evaluation_has_data, f"{_GUIDE}, benchmark mode"),
    Check(steps_or_samples, _ARGUMENTS),
    Check(checkpoint_before_the_end, "NVIDIA/Megatron-LM core_v0.19.0, megatron/training/training.py", "warning"),
    Check(restarts_need_checkpoints, "jobset.sigs.k8s.io, failure policies", "warning"),
    Check(checkpoints_outlive_the_pods, "Kubernetes API, core/v1 EmptyDirVolumeSource"),
    Check(checkpoints_are_shared, "Kubernetes API, core/v1 EmptyDirVolumeSource", "warning"),
    Check(training_on_data_saves, "NVIDIA/Megatron-LM core_v0.19.0, megatron/training/checkpointing.py", "warning"),
    *GRACE,
    Check(profile_within_the_steps, "NVIDIA/Megatron-LM core_v0.12.1, megatron/training/training.py"),
    Check(profiled_ranks_exist, "NVIDIA/Megatron-LM core_v0.12.1, megatron/training/training.py"),
    Check(staging_needs_data, "chartgen's start script, which copies the data sets"),
    Check(room_for_staged_data, "Kubernetes API, core/v1 EmptyDirVolumeSource"),
    Check(data_outlives_its_program, "Kubernetes API, core/v1 EmptyDirVolumeSource"),
    Check(tokenizer_of_the_data, "NVIDIA/Megatron-LM core_v0.19.0, tools/preprocess_data.py", "warning"),
    Check(tokenizer_has_files, _ARGUMENTS),
)
