"""The facts that rules may name beside values: what each means, and its type as in a JSON Schema.

Each is made twice: `checks/facts.py` for `chartgen check`, `_facts.tpl` for the chart; a test compares the two.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Fact(NamedTuple):
    """One fact: its type as in a JSON Schema, and a description."""

    schema: dict[str, Any]
    meaning: str


# What a launcher's program must have an option for, and the value that asks for nothing: the common default.
PORTABLE: dict[str, Any] = {
    **{f"optimizer.{name}": None for name in ("learningRate", "minLearningRate", "warmupSteps")},
    **{f"optimizer.{name}": None for name in ("decay", "weightDecay", "clipGradient")},
    **{f"model.{name}": None for name in ("rotaryBase", "initStandardDeviation", "tiedEmbeddings")},
    **{f"parallelism.{name}": 1 for name in ("tensor", "pipeline", "virtualPipeline", "context", "expert")},
    "parallelism.sequence": False,
    "parallelism.distributedOptimizer": True,
    "recompute": "none",
    "batch.micro": 1,
    "batch.global": "1/gpu",
    "sequenceLength": 2048,
    "steps": 10,
    "evaluation.batches": 0,
    "data.name": "",
    "checkpoint.enabled": False,
    "checkpoint.from": "",
    "profile.enabled": False,
    "wandb.project": None,
    "mlflow.experiment": None,
}
_COUNT = {"type": "integer", "minimum": 0}
_SIZE = {"type": "integer", "minimum": 1}
_TEXT = {"type": "string"}
_COUNTS = {"type": "array", "items": _COUNT}
_TEXTS = {"type": "array", "items": _TEXT}
_TEXT_MAP = {"type": "object", "additionalProperties": _TEXT}
_DECIMAL = {"type": ["number", "null"]}


def _rows(*names: str) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": dict.fromkeys(names, _TEXT)}}


FACTS = {
    "world": Fact(_SIZE, "GPUs of the run: nodes x GPUs used of each machine"),
    "gpusPerNode": Fact(_SIZE, "GPUs that the run uses of each machine; all of the machine's where the value is null"),
    "modelParallel": Fact(_SIZE, "GPUs of one copy of the model: tensor x pipeline x context"),
    "expertParallel": Fact(_SIZE, "GPUs that share one copy of all experts: expert tensor x expert x pipeline"),
    "dataParallel": Fact(_SIZE, "copies of the model that train side by side: world // modelParallel, at least 1"),
    "expertTensor": Fact(_SIZE, "GPUs that share one expert; parallelism.tensor where the value is null"),
    "globalBatch": Fact(_SIZE, "samples of one step; N/gpu is counted out"),
    "microBatches": Fact(_COUNT, "micro-batches of one step: globalBatch // (batch.micro * dataParallel)"),
    "pipelineLayers": Fact(
        _SIZE, "layers that pipeline stages share; embedding and loss where the program counts them"
    ),
    "stageOption": Fact(_TEXT, "the option that gives the first or last pipeline stage its own layers; may be empty"),
    "ownLayers": Fact(_COUNT, "layers that such options give to the first and the last pipeline stage together"),
    "otherLayers": Fact({"type": "integer"}, "layers that such options leave: pipelineLayers - ownLayers"),
    "otherStages": Fact({"type": "integer"}, "pipeline stages whose layers such options do not give"),
    "stageSizes": Fact(_COUNTS, "layers of each pipeline stage where such options give some; each number once"),
    "stageUnit": Fact(_COUNT, "the greatest common divisor of stageSizes; 0 = no such stages"),
    "queryGroups": Fact(_SIZE, "key and value heads; model.attentionHeads where the value is null"),
    "ffnHiddenSize": Fact(_SIZE, "width of a feed-forward block; 4 x model.hiddenSize where the value is null"),
    "recompute.granularity": Fact(_TEXT, "none, selective or full"),
    "recompute.method": Fact(_TEXT, "uniform or block"),
    "recompute.layers": Fact(_SIZE, "layers of a unit that is computed again"),
    "learningRate": Fact(_DECIMAL, "the highest learning rate: the value, or the launcher's default; null = unknown"),
    "minLearningRate": Fact(_DECIMAL, "the lowest learning rate: the value, or the launcher's default; null = unknown"),
    "evaluationShare": Fact({"type": "boolean"}, "whether data.split leaves a share for evaluation"),
    "workload": Fact(_TEXT, "the chart's workload kind, such as jobset"),
    "machine.name": Fact(_TEXT, "the machine type"),
    "machine.gpus": Fact(_SIZE, "GPUs of one machine"),
    "machine.gpu": Fact(_TEXT, "the GPU model, such as h100-80gb"),
    "machine.capacity": Fact(_TEXT_MAP, "what one machine offers: resource -> quantity"),
    "machine.fabric": Fact({"type": "object"}, "the target file's description of the machine's network"),
    "launcher.task": Fact(_TEXT, "train, data or test"),
    "launcher.processes": Fact(_TEXT, "gpu, workers, one or ray"),
    "launcher.image": Fact(_TEXT, "the program's image; empty where neither the values nor the launcher name one"),
    "launcher.precisions": Fact(_TEXTS, "the values of precision that the program can train in"),
    "launcher.owns": Fact({"type": "object"}, "portable key -> the program's own options that it sets"),
    "describesModel": Fact({"type": "boolean"}, "whether the values of model describe the model that is trained"),
    "imageRelease": Fact(_COUNT, "release of NVIDIA's NeMo image, or own.release, such as 2606 for 26.06; 0 = unknown"),
    "own": Fact({"type": "object"}, "the values of the chosen launcher: launchers.<launcher>"),
    "requested": Fact(_TEXT_MAP, "resource -> quantity that the program requests; a limit counts as a request"),
    "stepPatterns": Fact(
        _TEXTS, "expressions that read the line of a step: own.metrics, or the launcher's; empty = none"
    ),
    "given": Fact(
        _TEXTS, "keys of portable values other than the common defaults that no argument names, such as $(steps)"
    ),
    "overridden": Fact(
        _rows("place", "option", "key"),
        "each option in config or args that a portable key sets: where it is, the option, and that key",
    ),
    "abbreviated": Fact(
        _rows("place", "name", "option", "key"),
        "each beginning of an option in config or args that a portable key sets: where, what, the option, that key",
    ),
    "samples": Fact(_TEXTS, "options in config that count a run in samples"),
    "iterations": Fact(_TEXTS, "options in config that count the learning rate in steps"),
    "knownNames": Fact(_TEXTS, "names that arguments may contain, such as $(nodes)"),
    "unknownNames": Fact(_TEXTS, "other names in args of the form $(name)"),
}
# Those of chartgen's own rules alone: they follow its programs and may change with any version.
INTERNAL = frozenset(
    {
        *("pipelineLayers", "stageOption", "ownLayers", "otherLayers", "otherStages", "stageSizes", "stageUnit"),
        *("queryGroups", "ffnHiddenSize", "recompute.granularity", "recompute.method", "recompute.layers"),
        *("learningRate", "minLearningRate", "evaluationShare", "describesModel", "stepPatterns", "given"),
        *("overridden", "abbreviated", "samples", "iterations", "knownNames", "unknownNames"),
    }
)
