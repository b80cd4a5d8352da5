"""The facts that rules name, as `chartgen check` makes them; `_facts.tpl` makes the same ones in a chart.

What each one means is in `composer/rule_facts.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from chartgen.checks.job import Job, once_for_layouts, value_at
from chartgen.composer.expressions import LARGEST
from chartgen.composer.rule_facts import PORTABLE
from chartgen.data.compatibility import release_in

# Keys that do not reach a recipe with a model of its own, where the same program also takes the model of the values.
_OF_THE_MODEL = ("model", "precision", "sequenceLength", "recompute")
_SAMPLES = re.compile(r"train-samples|lr-(?:decay|warmup)-samples")
_ITERATIONS = re.compile(r"lr-(?:decay|warmup)-iters")
# As _arguments.tpl fills them in.
NAMES = tuple(
    f"$({name})"
    for name in (
        *("checkpointDirectory", "checkpointInterval", "dataDirectory", "globalBatch", "gpusPerNode", "microBatch"),
        *("nodes", "precision", "resume", "run", "runDirectory", "sequenceLength", "steps", "worldSize"),
    )
)
_NAME = re.compile(r"\$\([A-Za-z]+\)")
_NO_EVALUATION = re.compile(r"[^,]+,0*[.]?0*,")


def whole_number(value: Any) -> int:
    """Return a whole number that is one, or is written as one; 0 for everything else."""
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdecimal() and len(value) < 16 else 0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < LARGEST and value == int(value) else 0


@once_for_layouts
def _own_stages(job: Job) -> dict[str, int]:
    """Return the layers of the first and of the last pipeline stage, option -> layers, where the options are set."""
    config = _config(job)
    nested = config.get("model")
    found: dict[str, int] = {}
    for part in ("first", "last"):
        flat, deep = f"decoder-{part}-pipeline-num-layers", f"num_layers_in_{part}_pipeline_stage"
        below = nested.get(deep) if isinstance(nested, dict) else None
        given = {flat: whole_number(config.get(flat)), f"model.{deep}": whole_number(below)}
        found |= dict([(key, layers) for key, layers in given.items() if layers][:1])
    return found


def _other_stages(job: Job) -> int:
    return job.parallel("pipeline") - len(_own_stages(job))


def _other_layers(job: Job) -> int:
    return job.pipeline_layers - sum(_own_stages(job).values())


def _stage_sizes(job: Job) -> list[int]:
    own, others = _own_stages(job), _other_stages(job)
    rest = [max(_other_layers(job), 0) // others] if own and others > 0 else []
    return list(dict.fromkeys([*own.values(), *rest]))


def _config(job: Job) -> dict[str, Any]:
    return job.own.get("config") or {}


def _given(job: Job) -> list[str]:
    values = {**job.values, "recompute": job.recompute.granularity}
    # a program that takes the batch of each process has that of all
    names = {"batch.global": "globalBatch|microBatch", "batch.micro": "microBatch"}
    arguments = " ".join(job.own.get("args") or ())
    return [
        key
        for key, usual in sorted(PORTABLE.items())
        if value_at(values, key) != usual and not re.search(rf"\$\(({names.get(key, key)})\)", arguments)
    ]


def _overridden(job: Job) -> list[dict[str, str]]:
    given = set(_paths(_config(job), ""))
    arguments = [text.lstrip("+~-") for text in job.own.get("args") or ()]
    found = []
    for key, natives in sorted(job.launcher.owns.items()):
        if not job.describes_model and "model.layers" in job.launcher.owns and key.partition(".")[0] in _OF_THE_MODEL:
            continue
        for native in natives:
            places = [f"config.{native}"] if native in given else []
            places += ["args" for each in arguments if each == native or each.startswith((f"{native}=", f"{native}."))]
            found += [{"place": place, "option": native, "key": key} for place in dict.fromkeys(places)]
    return found


def _paths(tree: dict[str, Any], prefix: str) -> Iterator[str]:
    """Return the dotted path of each map and value in a configuration; a key may contain several steps of it."""
    for key, value in tree.items():
        yield f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _paths(value, f"{prefix}{key}.")


def _abbreviated(job: Job) -> list[dict[str, str]]:
    owned = {name: key for key, names in job.launcher.owns.items() for name in names}
    begun = [(f"config.{name}", name) for name in sorted(_config(job))]
    begun += [
        ("args", name)
        for text in job.own.get("args") or ()
        if text.startswith("--") and (name := text[2:].partition("=")[0])
    ]
    found = []
    for place, name in begun:
        whole = "" if name in owned else next((each for each in sorted(owned) if each.startswith(name)), "")
        found += [{"place": place, "name": name, "option": whole, "key": owned[whole]}] if whole else []
    return found


def _matching(job: Job, pattern: re.Pattern[str]) -> list[str]:
    given = sorted(_config(job).items())
    return [name for name, value in given if value is not None and pattern.fullmatch(name)]


def _unknown_names(job: Job) -> list[str]:
    texts = [text.replace("$$(", "") for text in job.own.get("args") or ()]
    return [name for text in texts for name in _NAME.findall(text) if name not in NAMES]


FACTS: dict[str, Callable[[Job], Any]] = {
    "world": lambda job: job.world,
    "gpusPerNode": lambda job: job.gpus_per_node,
    "pods": lambda job: (
        (job.nodes if job.launcher.processes in ("gpu", "ray") else job.own.get("nodes") or 1)
        + (job.values["run"]["spares"] if job.launcher.task != "data" else 0)
    ),
    "modelParallel": lambda job: job.model_parallel,
    "expertParallel": lambda job: job.expert_parallel,
    "dataParallel": lambda job: job.data_parallel,
    "expertTensor": lambda job: job.parallel("expertTensor"),
    "globalBatch": lambda job: job.global_batch,
    "microBatches": lambda job: job.micro_batches,
    "pipelineLayers": lambda job: job.pipeline_layers,
    "stageOption": lambda job: next(iter(_own_stages(job)), ""),
    "ownLayers": lambda job: sum(_own_stages(job).values()),
    "otherLayers": _other_layers,
    "otherStages": _other_stages,
    "stageSizes": _stage_sizes,
    "stageUnit": lambda job: math.gcd(*_stage_sizes(job)),
    "queryGroups": lambda job: job.model("queryGroups"),
    "ffnHiddenSize": lambda job: job.model("ffnHiddenSize"),
    "recompute.granularity": lambda job: job.recompute.granularity,
    "recompute.method": lambda job: job.recompute.method,
    "recompute.layers": lambda job: job.recompute.layers,
    "learningRate": lambda job: job.setting("optimizer.learningRate"),
    "minLearningRate": lambda job: job.setting("optimizer.minLearningRate"),
    "evaluationShare": lambda job: not _NO_EVALUATION.match(job.values["data"]["split"]),
    "workload": lambda job: job.kind,
    "machine.name": lambda job: job.machine.name,
    "machine.gpus": lambda job: job.machine.gpus,
    "machine.gpu": lambda job: job.machine.gpu,
    "machine.capacity": lambda job: job.machine.capacity,
    "machine.fabric": lambda job: job.machine.fabric,
    "launcher.task": lambda job: job.launcher.task,
    "launcher.processes": lambda job: job.launcher.processes,
    "launcher.image": lambda job: job.image,
    "launcher.precisions": lambda job: job.launcher.precisions,
    "launcher.owns": lambda job: job.launcher.owns,
    "describesModel": lambda job: job.describes_model,
    "imageRelease": lambda job: int(
        (job.own.get("release") or release_in(job.image, "nvidia/nemo") or "0").replace(".", "")
    ),
    "own": lambda job: job.own,
    "requested": lambda job: job.requested,
    "stepPatterns": lambda job: job.own.get("metrics") or job.launcher.step_line.get("find", []),
    "given": _given,
    "overridden": _overridden,
    "abbreviated": _abbreviated,
    "samples": lambda job: _matching(job, _SAMPLES),
    "iterations": lambda job: _matching(job, _ITERATIONS),
    "knownNames": lambda _: NAMES,
    "unknownNames": _unknown_names,
}
# Those that differ between layouts of a job.
_OF_A_LAYOUT = (
    *("modelParallel", "expertParallel", "dataParallel", "expertTensor", "microBatches", "otherStages", "stageSizes"),
    *("stageUnit", "recompute.granularity", "recompute.method", "recompute.layers", "given"),
)


def of_a_layout(name: str) -> bool:
    """Report whether layouts of a job differ in what a name in a rule means."""
    return name in _OF_A_LAYOUT if name in FACTS else name.startswith(("parallelism", "batch", "recompute"))
