"""What a launcher's program does not take: options that are set elsewhere, a model that is not its own, no image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.checks.claim import Check, Claim
from chartgen.checks.job import Job

# Hidden size and attention heads of Llama 2 70B.
_BENCHMARK_MODEL = (8192, 64)
# What the benchmark's program cannot do, and the value that does not ask for it.
_BENCHMARK_LACKS = {
    "parallelism.virtualPipeline": 1,
    "parallelism.expert": 1,
    "recompute": "none",
    "checkpoint.enabled": False,
    "profile.enabled": False,
    "data.stage": False,
}


def options_are_set_once(job: Job) -> Iterator[Claim]:
    """An option that a portable key sets may not stand in config or args too: programs differ in which of two wins."""
    own, given = f"launchers.{job.launcher.name}", set(_paths(job.own.get("config") or {}, ""))
    arguments = [text.lstrip("+~-") for text in job.own.get("args") or ()]
    for key, natives in job.launcher.owns.items():
        for native in natives:
            if native in given:
                also = (f"{own}.config", key)
                yield Claim(f"{own}.config.{native}", f"is set by {key}", f"set {key}, and remove it here", also)
            if any(text == native or text.startswith((f"{native}=", f"{native}.")) for text in arguments):
                yield Claim(f"{own}.args", f"{native} is set by {key}", f"set {key}, and remove it here")


def options_are_written_in_full(job: Job) -> Iterator[Claim]:
    """Megatron-LM also takes the beginning of an option's name, so that one can set what a portable key sets."""
    if job.launcher.name != "megatron-lm":
        return
    own, owned = "launchers.megatron-lm", {each: key for key, names in job.launcher.owns.items() for each in names}
    begun = [(f"{own}.config.{name}", name) for name in job.own.get("config") or {}]
    options = [text[2:].partition("=")[0] for text in job.own.get("args") or () if text.startswith("--")]
    for place, name in (*begun, *((f"{own}.args", name) for name in options)):
        whole = "" if name in owned else next((each for each in sorted(owned) if each.startswith(name)), "")
        if whole:
            message = f"{name!r} is the beginning of {whole}, which {owned[whole]} sets"
            yield Claim(place, message, f"set {owned[whole]}, or write the name in full")


def program_has_an_image(job: Job) -> Iterator[Claim]:
    """Some programs are in no public image: each team builds its own, and only the values can say where it is."""
    if not job.image:
        message = f"empty, and {job.launcher.name} has no public image"
        yield Claim(f"launchers.{job.launcher.name}.image", message, "give the one that you built", ("launcher",))


def benchmark_trains_its_model(job: Job) -> Iterator[Claim]:
    """The MLPerf benchmark fine-tunes Llama 2 70B only, whatever the values say of the model."""
    model = (job.model("hiddenSize"), job.model("attentionHeads"))
    if job.launcher.name == "mlperf-llama2-lora" and model != _BENCHMARK_MODEL:
        message = f"{model[0]} with {model[1]} attention heads is not Llama 2 70B, which the benchmark trains"
        also = ("model.attentionHeads", "launcher")
        yield Claim("model.hiddenSize", message, "use the model of its preset, llama2-70b-lora.yaml", also)


def benchmark_has_no_extras(job: Job) -> Iterator[Claim]:
    """The MLPerf benchmark's program saves no checkpoints, and knows no profiles, recomputation, experts or staging."""
    if job.launcher.name != "mlperf-llama2-lora":
        return
    for key, off in _BENCHMARK_LACKS.items():
        value = _value(job.values, key)
        if value != off:
            message = f"{str(value).lower()} is not supported by the MLPerf benchmark"
            yield Claim(key, message, f"turn it off with {str(off).lower()}", ("launcher",))


def benchmark_starts_from_weights(job: Job) -> Iterator[Claim]:
    """The MLPerf benchmark tunes weights that are there; it does not begin with random ones."""
    if job.launcher.name == "mlperf-llama2-lora" and not job.values["checkpoint"]["from"]:
        message = "empty, and the benchmark starts from base weights"
        yield Claim("checkpoint.from", message, "give their directory, such as /data/model", ("launcher",))


def _paths(tree: dict[str, Any], prefix: str) -> Iterator[str]:
    """Return the dotted path of each map and value in a configuration; a key may hold several steps of it."""
    for key, value in tree.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{key}.")


def _value(values: dict[str, Any], key: str) -> Any:
    section, _, name = key.partition(".")
    return values[section][name] if name else values[section]


_ALL = ("train", "data", "test")
_LORA = "mlcommons/training_results_v5.0, NVIDIA/benchmarks/llama2_70b_lora/implementations/nyx_n1_ngc25.04_nemo"
PROGRAM = (
    Check(options_are_set_once, "chartgen/library/launchers, the options that each launcher owns", tasks=_ALL),
    Check(options_are_written_in_full, "docs.python.org, argparse, argument abbreviations"),
    Check(program_has_an_image, "chartgen/library/launchers, each launcher's sources", tasks=_ALL),
    Check(benchmark_trains_its_model, f"{_LORA}, conf"),
    Check(benchmark_has_no_extras, f"{_LORA}, config_common.sh and train.py"),
    Check(benchmark_starts_from_weights, f"{_LORA}, train.py"),
)
