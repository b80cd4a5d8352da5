"""Cases of rules, drawn from the rules: values that break each, values that keep to it, and the chart's answer."""

from __future__ import annotations

import ast
import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from jsonschema import Draft7Validator
from pairs import WIRINGS

from chartgen.checks import check_values, effective_values, job_of
from chartgen.checks.job import Job
from chartgen.checks.rules import Scope, broken, judge, value
from chartgen.composer.assembly import compose
from chartgen.composer.expressions import dotted_name, fields, parse_expression
from chartgen.composer.launcher import Launcher
from chartgen.composer.library import BUILTIN, open_library
from chartgen.composer.rule_facts import FACTS
from chartgen.composer.rules import ValuesRule, rules_of
from chartgen.composer.target import load_target
from chartgen.composer.workload import load_workload
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import KUBE_VERSION, objects, written_chart
from chartgen.helm.values import Values, load_values, to_json
from chartgen.rehearsal import engines

DATA = Path(__file__).parents[1] / "data"
_FAIL = '{{ fail (printf "\\n%s" (join "\\n" .)) }}'
# Each set of values in turn; what Helm gives templates beside the values stays.
_EVERY = """cases:
{{- range .Values.cases }}
{{- $root := dict "Values" . "Release" $.Release "Chart" $.Chart "Files" $.Files }}
{{- include "CHART.figures" $root }}
{{- $fact := dict }}
{{- include "CHART.facts" (list $root $fact) }}
- refused: {{ include "CHART.validate" $root | toJson }}
  facts: {{ $fact | toJson }}
{{- end }}
"""
_PARALLEL = tuple(f"parallelism.{name}" for name in ("tensor", "pipeline", "context", "expert", "expertTensor"))
_WORLD = ("nodes", "gpusPerNode")
_CONFIG = ("own.config",)
# The values that facts are made of.
MADE_OF: dict[str, tuple[str, ...]] = {
    "world": _WORLD,
    "gpusPerNode": ("gpusPerNode",),
    "pods": ("nodes", "run.spares", "own.nodes"),
    "modelParallel": _PARALLEL[:3],
    "expertParallel": _PARALLEL,
    "dataParallel": (*_WORLD, *_PARALLEL[:3]),
    "expertTensor": ("parallelism.expertTensor",),
    "globalBatch": (*_WORLD, "batch.global"),
    "microBatches": (*_WORLD, *_PARALLEL[:3], "batch.micro", "batch.global"),
    "pipelineLayers": ("model.layers", *_CONFIG),
    "queryGroups": ("model.queryGroups", "model.attentionHeads"),
    "ffnHiddenSize": ("model.ffnHiddenSize", "model.hiddenSize"),
    "learningRate": ("optimizer.learningRate",),
    "minLearningRate": ("optimizer.minLearningRate",),
    "evaluationShare": ("data.split",),
    "launcher.image": ("own.image",),
    "requested": ("own.resources",),
    "given": ("optimizer.decay", "optimizer.clipGradient", "model.rotaryBase", "model.tiedEmbeddings", "wandb.project"),
    "overridden": ("own.config", "own.args"),
    "abbreviated": ("own.config", "own.args"),
    "unknownNames": ("own.args",),
    "imageRelease": ("own.image", "own.release"),
    "describesModel": ("own.recipe",),
    **dict.fromkeys(("stageOption", "ownLayers", "samples", "iterations"), _CONFIG),
    "otherLayers": ("model.layers", *_CONFIG),
    **dict.fromkeys(("otherStages", "stageSizes", "stageUnit"), ("parallelism.pipeline", "model.layers", *_CONFIG)),
    **dict.fromkeys(("machine.name", "machine.gpus", "machine.gpu", "machine.capacity"), ("machineType",)),
    **dict.fromkeys(("recompute.granularity", "recompute.method", "recompute.layers"), ("recompute",)),
    "machine.fabric": ("machineType",),
}
# What values of a type are drawn from; a key takes those that its schema allows.
_NUMBERS = (0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 22, 30, 31, 33, 48, 64, 96, 100, 384, 770, 780, 2048, 2049, 6002, 8192)
_WORDS = (
    *("", "a", "2/gpu", "8/gpu", "100,0,0", "98,.0,2", "cosine", "linear", "tcp", "efa", "none", "host", "5120Mi"),
    *("/data/a", "https://example.com/all/", "https://example.com/a.jsonl", "hf://org/set", "gs://bucket/all/", "ro"),
    *(
        "pvc://a",
        "nfs://server/a",
        "memory://",
        "disk://a",
        "disk://",
        "sriov",
        "infiniband",
        "required",
        "4",
        "16",
        "1Gi",
        "1Mi",
    ),
    *("nvcr.io/nvidia/nemo:25.11", "nvcr.io/nvidia/nemo-rl:v0.5.0", "26.08", "llama3_8b_sft_config", "llm-finetune"),
    *("registry.example.com/own:1", "nvidia.com/hostdev"),
)
_DECIMALS = (1.0e-6, 1.0e-3, 0.5, "2.5e-4")
_OTHERS: dict[str, list[Any]] = {
    "parallelism.pipeline": [2] * 9,
    "recompute": [
        {"granularity": "full", "layers": 1},
        {"granularity": "full", "layers": 5},
        {"granularity": "full", "method": "block", "layers": 5},
    ],
    "data.prefixes": [["my-data"]],
    "queue.name": ["gke-a3mega"],
    "setup.queues": [{name: {"nodes": 2}} for name in ("gke-a3mega", "other")],
    "secretEnv": [{"WANDB_API_KEY": {"secretName": "wandb", "key": "a"}}],
    "profile.ranks": [[0], [9, 100000]],
    "network.subnetworks": [["rdma-0"], [f"rdma-{number}" for number in range(8)]],
    "network.deviceCount": [1, 2, 9, 32],
    "own.operations": [["all_reduce"], ["alltoall", "all_gather"]],
    "own.minBusbw": [{"all_reduce": 300}, {"alltoall": 0}],
    "own.resources": [{"requests": {"cpu": "8"}}, {"limits": {"memory": "64Gi"}}, {"limits": {"cpu": ""}}],
    "own.args": [
        *(["--num-layers=5"], ["--fp16"], ["--", "x"], ["++trainer.max_steps=9"], ["model.optim.name.x"], ["own"]),
        *(["$(node)", "$(nodes)", "$$(x)"], ["--data=$(dataDirectory)$(x"], ["/etc/chartgen/train.py"]),
    ],
    "own.program": ["/etc/chartgen/train.py", "/opt/train.py"],
    "own.files": [{"train.py": "x"}],
    "own.dataset": [{"_target_": "own.data"}],
    "own.validationDataset": [{"_target_": "own.data"}],
    "own.starterArgs": [["--use_fsdp"]],
    "own.metrics": [["step (?P<step>[0-9]+)"]],
    "own.config": [
        *({"train-samples": 5}, {"train-samples": 5, "lr-decay-iters": 5}, {"lr-warmup-samples": 5}),
        *({"train-samples": None, "lr-decay-iters": None}, {"lr-decay-iters": 0.5}, {"lr-decay-iters": "012"}),
        *({"seq": 5, "lr": 0.1}, {"bf16": None}, {"account-for-loss-in-pipeline-split": True}, {"model.num_layers": 5}),
        *({"decoder-first-pipeline-num-layers": 3}, {"decoder-first-pipeline-num-layers": 4.0}),
        {"decoder-last-pipeline-num-layers": 20, "decoder-first-pipeline-num-layers": 2},
        {"model": {"account_for_embedding_in_pipeline_split": True, "optim": {"name": "x"}}},
        {"model": {"num_layers": None, "data": {"splits_string": {}}}},
        {"model": {"num_layers_in_first_pipeline_stage": 6}},
        *({"trainer": 5, "model": []}, {"TP": 4, "VAL_CHECK_INTERVAL": 64}, {"VAL_CHECK_INTERVAL": "4096"}),
    ],
}
_TRIES = 400
PLACES = [*WIRINGS, "gke-a3mega job", "gke-a3mega pytorchjob", "onprem-p8000 rayjob", "gke-a4x", "lone", "claims"]


@cache
def chart_on(place: str) -> Chart:
    """The chart of a target, and of a workload kind when one is named; targets of the tests' own included."""
    target, _, kind = place.partition(" ")
    return compose(load_target(target, open_library([DATA / "lone"])), kind or None)


@cache
def rules_on(place: str) -> list[ValuesRule]:
    """The rules of such a chart."""
    job = _job(chart_on(place), values_with({}))
    return rules_of(job.target, load_workload(job.target.library.find("workload", job.kind)).folders)


def all_rules() -> set[tuple[str, int]]:
    """The file below the package, and the place in it, of each rule that refuses."""
    found = {(path, index) for path in sorted(BUILTIN.rglob("rules.yaml")) for index in range(_count(path))}
    return {(path.relative_to(BUILTIN).as_posix(), index) for path, index in found}


def _count(path: Path) -> int:
    from chartgen.composer.rules import read_rules

    return len(read_rules(path.parent))


def name_of(rule: ValuesRule) -> tuple[str, int]:
    """The file below the package, and the place in it, of a rule."""
    return Path(rule.document.path).relative_to(BUILTIN).as_posix(), int(rule.at[-1])


def values_with(pairs: dict[str, Any]) -> Values:
    """Values with these dotted keys."""
    return load_values(set_json=[f"{key}={json.dumps(value)}" for key, value in pairs.items()])


def _job(chart: Chart, values: Values) -> Job:
    job = job_of(chart, values)
    assert job
    return job


@cache
def every_case() -> dict[str, list[tuple[tuple[str, int], bool, Values]]]:
    """Return cases by chart, each with its rule and whether it breaks that: every rule on the first charts that can."""
    found: dict[str, list[tuple[tuple[str, int], bool, Values]]] = {}
    seen: Counter[tuple[tuple[str, int], bool]] = Counter()
    for place in PLACES:
        random = Random(place)  # noqa: S311
        found[place] = []
        for rule in rules_on(place):
            name = name_of(rule)
            if wanted := [breaks for breaks in (False, True, True) if seen[name, breaks] < 1 + breaks]:
                own = [(name, breaks, values) for breaks, values in cases(place, rule, random, wanted)]
                seen.update((name, breaks) for name, breaks, _ in own)
                found[place] += own
    return found


def cases(place: str, rule: ValuesRule, random: Random, wanted: list[bool]) -> Iterator[tuple[bool, Values]]:
    """Draw values that break a rule, or keep to it, as often as wanted, where the chart has them at all."""
    chart, wanted, keys = chart_on(place), [*wanted], sorted(_made_of(rule))
    launchers = [
        each.name for each in _launchers(chart) if rule.launcher in ("", each.name) and each.task in rule.tasks
    ]
    for _ in range(_TRIES if launchers else 0):
        launcher = random.choice(launchers)
        pools = {key: [*pool, *_likely(rule, pool)] for key in keys if (pool := _pool(place, key, launcher))}
        chosen = random.sample(sorted(pools), random.randint(0, min(len(pools), 5)))
        pairs = {_real(key, launcher): random.choice(pools[key]) for key in chosen}
        values = values_with({"launcher": launcher, **pairs})
        job = _job(chart, values)
        breaks = any(broken(rule, job))
        if breaks in wanted and (breaks or _applies(rule, job)) and check_values(chart, values) == []:
            wanted.remove(breaks)
            yield breaks, values
        if not wanted:
            return


def _applies(rule: ValuesRule, job: Job) -> bool:
    """Report whether a rule judges a job at all, so that keeping to it means something."""
    items = (value(rule.each)(Scope(job)) or ()) if rule.each else (None,)
    return rule.require == "False" or any(not rule.when or value(rule.when)(Scope(job, item)) for item in items)


def mixtures(place: str, random: Random, count: int) -> Iterator[Values]:
    """Draw values of several keys at once, of those that any rule reads: as many that are accepted as are refused."""
    chart = chart_on(place)
    keys = sorted({key for rule in rules_on(place) for key in _made_of(rule)})
    wanted = [*([True] * (count // 2)), *([False] * (count // 2))]
    for _ in range(_TRIES):
        launcher = random.choice(_launchers(chart)).name
        some = random.sample(keys, random.randint(1, 8))
        pools = {key: pool for key in some if (pool := _pool(place, key, launcher))}
        pairs = {_real(key, launcher): random.choice(pool) for key, pool in pools.items()}
        values = values_with({"launcher": launcher, **pairs})
        if (is_refused := bool(told(chart, values))) in wanted and check_values(chart, values) == []:
            wanted.remove(is_refused)
            yield values
        if not wanted:
            return


def _launchers(chart: Chart) -> tuple[Launcher, ...]:
    return _job(chart, values_with({})).target.launchers


def _real(key: str, launcher: str) -> str:
    return f"launchers.{launcher}.{key.removeprefix('own.')}" if key.startswith("own.") else key


@cache
def _pool(place: str, key: str, launcher: str) -> list[Any]:
    """What a key may be set to on a chart."""
    schema = _schema(place)
    definitions, steps = schema["definitions"], _real(key, launcher).split(".")
    for step in ["launchers", launcher, steps[-1]] if key.startswith("own.") else steps:
        schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        schema = schema.get("properties", {}).get(step, {})
    allowed = Draft7Validator({**schema, "definitions": definitions})
    enum = schema.get("enum", [])
    every = [*_OTHERS.get(key, []), *enum, *_NUMBERS, *_WORDS, *_DECIMALS, True, False, None]
    return [each for each in every if schema and key != "launcher" and allowed.is_valid(each)]


@cache
def _schema(place: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(chart_on(place).files["values.schema.json"])
    return found


def _made_of(rule: ValuesRule) -> set[str]:
    """The values that a rule reads, by itself or through facts."""
    return {key for name in _names(rule) for key in MADE_OF.get(name, () if name in FACTS else (name,))}


def _likely(rule: ValuesRule, pool: list[Any]) -> list[Any]:
    """What is named in a rule, or begins so, several times."""
    named = _constants(rule.when) + _constants(rule.require)
    begun = tuple(each for each in named if isinstance(each, str))
    return [each for each in pool if each in named or (isinstance(each, str) and each.startswith(begun))] * 9


@cache
def _constants(text: str) -> list[Any]:
    """The numbers and texts in an expression."""
    nodes = ast.walk(parse_expression(text)) if text else ()
    return [node.value for node in nodes if isinstance(node, ast.Constant) and node.value not in ("", None)]


def _names(rule: ValuesRule) -> set[str]:
    """The values and facts that a rule reads."""
    nodes = [parse_expression(text) for text in (rule.each, rule.when, rule.require) if text]
    nodes += [node for text in (rule.key, rule.message, rule.hint) for _, node in fields(text) if node]
    return {name for node in nodes for name in _read(node)} - {"each"}


def _read(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Subscript) and (above := dotted_name(node.value)):
        steps = [str(node.slice.value)] if isinstance(node.slice, ast.Constant) else ["data", "outputs", "scratch"]
        yield from ([above] if above in FACTS or above == "own.config" else [f"{above}.{step}" for step in steps])
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        step = str(node.slice.value)
        yield from (f"{name}.{step}" for name in _read(node.value))
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Subscript):
        yield from (f"{name}.{node.attr}" for name in _read(node.value))
    elif isinstance(node, ast.Name | ast.Attribute) and (name := dotted_name(node)):
        yield name
    elif isinstance(node, ast.Call):
        for each in node.args:
            yield from _read(each)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _read(child)


def told(chart: Chart, values: Values) -> list[str]:
    """What Python says of the rules that a chart refuses values by."""
    claims = [(rule, claim) for rule, claim in judge(_job(chart, values)) if rule.severity == "error"]
    return sorted(f"{claim.key}: {claim.message}; {claim.hint}" for _, claim in claims)


def facts_of(chart: Chart, values: Values) -> dict[str, Any]:
    """The facts as Python makes them, as JSON has them."""
    from chartgen.checks.facts import FACTS as MAKERS

    job = _job(chart, values)
    found: dict[str, Any] = json.loads(json.dumps({name: make(job) for name, make in MAKERS.items()}))
    return found


def rendered(chart: Chart, sets: Sequence[Values], helm: str = "helm") -> Iterable[tuple[list[str], dict[str, Any]]]:
    """Return what a chart refuses each of several sets of values with, and its facts, in one call of Helm.

    The chart's own templates decide, and only hand out their lines instead of failing with them.
    """
    helpers = {path: text for path, text in chart.files.items() if path.startswith("templates/_")}
    assert sum(text.count(_FAIL) for text in helpers.values()) == 1
    files = {path: text.replace(_FAIL, _FAIL.replace("fail ", "")) for path, text in helpers.items()}
    files |= {path: text for path, text in chart.files.items() if path.startswith("files/")}
    files |= {"Chart.yaml": chart.files["Chart.yaml"], "templates/every.yaml": _EVERY.replace("CHART", chart.name)}
    given: Any = {"cases": [effective_values(chart, values) for values in sets]}
    with written_chart(Chart(chart.name, files)) as folder:
        arguments = [
            str(engines.require(helm)),
            "template",
            "my-run",
            str(folder),
            "-f",
            "-",
            "--kube-version",
            KUBE_VERSION,
        ]
        ran = subprocess.run(arguments, input=to_json(given), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    (found,) = objects(ran.stdout)
    return [(sorted(line for line in each["refused"].splitlines() if line), each["facts"]) for each in found["cases"]]


def refused(chart: Chart, sets: Sequence[Values]) -> list[list[str]]:
    """Return only the lines that a chart refuses each of several sets of values with."""
    return [lines for lines, _ in rendered(chart, sets)]
