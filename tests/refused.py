"""What charts refuse by themselves: the refusals that stand in their templates, and the real Helm's, many per call."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from chartgen.checks import check, check_values, effective_values, job_of
from chartgen.checks.claim import Check, Claim
from chartgen.checks.parallelism import ARITHMETIC
from chartgen.composer.assembly import compose
from chartgen.composer.library import BUILTIN, open_library
from chartgen.composer.target import load_target
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values, load_values
from chartgen.helm.yaml import load_file

DATA = Path(__file__).parent / "data"
CASES: list[dict[str, Any]] = load_file(DATA / "refusals.yaml").data  # type: ignore[assignment]

_APPEND = re.compile(r"append \$check\.problems ")
_TEXT = re.compile(r'append \$check\.problems (?:\(printf )?"((?:[^"\\]|\\.)*)"')
_FAIL = '{{ fail (printf "\\n%s" (join "\\n" .)) }}'
# Each set of values in turn; what Helm gives templates beside the values stays.
_EVERY = """told:
{{- range .Values.cases }}
- {{ include "CHART.validate" (dict "Values" . "Release" $.Release "Chart" $.Chart) | toJson }}
{{- end }}
"""


class Refusal(NamedTuple):
    """One refusal as a template writes it: the template below the package, and its text with %s and %d."""

    by: str
    says: str

    def matches(self, line: str) -> bool:
        """Report whether a chart's line is this refusal."""
        parts = re.split(r"%s|%d|<%=.*?%>", self.says)
        return re.fullmatch(".*".join(map(re.escape, parts)), line) is not None


def refusals() -> Iterator[Refusal]:
    """Every refusal of every validate template of the package."""
    for path in sorted(BUILTIN.rglob("*validate.tpl")):
        text = path.read_text()
        found = _TEXT.findall(text)
        assert len(found) == len(_APPEND.findall(text)) > 0, f"{path} refuses in a form that this does not read"
        yield from (Refusal(path.relative_to(BUILTIN).as_posix(), says) for says in found)


@cache
def chart_on(place: str) -> Chart:
    """The chart of a target, and of a workload kind when one is named; targets of the tests' own included."""
    target, _, kind = place.partition(" ")
    return compose(load_target(target, open_library([DATA / "lone"])), kind or None)


def values_of(data: dict[str, Any]) -> Values:
    """Values as a user sets them."""
    return load_values(set_json=[json.dumps(data)] if data else [])


def refused(chart: Chart, sets: Sequence[Values]) -> list[list[str]]:
    """Return the lines that a chart refuses each of several sets of values with, in one call of Helm.

    The chart's own templates decide, and only hand out their lines instead of failing with them.
    """
    helpers = {path: text for path, text in chart.files.items() if path.startswith("templates/_")}
    assert sum(text.count(_FAIL) for text in helpers.values()) == 1
    files = {path: text.replace(_FAIL, _FAIL.replace("fail ", "")) for path, text in helpers.items()}
    files |= {"Chart.yaml": chart.files["Chart.yaml"], "templates/every.yaml": _EVERY.replace("CHART", chart.name)}
    cases: Any = [effective_values(chart, values) for values in sets]
    (told,) = objects(render(Chart(chart.name, files), "my-run", "ml", {"cases": cases}))
    return [[line for line in text.splitlines() if line] for text in told["told"]]


def checked(chart: Chart, values: Values) -> set[str]:
    """The keys of what `check` refuses, without Helm."""
    return {found.key for found in check(chart, values) if found.severity == "error"}


def miscounted(chart: Chart, values: Values) -> set[str]:
    """The ids of the arithmetic that `check` refuses values by, and that charts can do too."""
    job = job_of(chart, values)
    assert job
    return {each.id for each in ARITHMETIC if _is_the_charts(each) and job.trains and any(map(_counts, each.rule(job)))}


def _is_the_charts(each: Check) -> bool:
    """Report whether a rule is arithmetic alone: what a version of the program can do is known to the lock only."""
    return each.severity == "error" and each.id != "biases-of-experts"


def _counts(claim: Claim) -> bool:
    return "which nvcr.io" not in claim.message


def strays(place: str, launcher: str) -> list[tuple[str, Any]]:
    """Keys and values of the choices below that a chart's schema takes, the launcher's own included."""
    # a launcher's values are the same in all charts
    return [*_taken(place, ""), *_taken("gke-a3mega", launcher)]


@cache
def _taken(place: str, launcher: str) -> list[tuple[str, Any]]:
    choices = {f"launchers.{launcher}.{key}": values for key, values in LAUNCHER_CHOICES.items()}
    pairs = [(key, value) for key, values in (choices if launcher else CHOICES).items() for value in values]
    return [pair for pair in pairs if not check_values(chart_on(place), values_with([pair]))]


def values_with(pairs: Iterable[tuple[str, Any]]) -> Values:
    """Values with these keys, the last one of each."""
    return load_values(set_json=[f"{key}={json.dumps(value)}" for key, value in dict(pairs).items()])


def key_of(line: str) -> str:
    """The key that a chart's line begins with."""
    return line.partition(": ")[0]


def tells(keys: set[str], key: str) -> bool:
    """Report whether one of the keys is a key, stands below it, or is told in its place."""
    instead = {case["told"] for case in CASES if "told" in case and key_of(case["says"]) == key}
    return any(told == key or told.startswith(f"{key}.") or told in instead for told in keys)


# Values that the refusals read, by key; a chart takes those of its own fragments and kind.
CHOICES: dict[str, list[Any]] = {
    "nodes": [2, 3, 4],
    "gpusPerNode": [1, 4, 8, 12],
    "machineType": ["BM.GPU.RTXPRO.8", "BM.GPU.GB200.4", "p6-b200.48xlarge"],
    "model.layers": [10, 80],
    "model.hiddenSize": [770, 8192],
    "model.attentionHeads": [64, 13],
    "model.queryGroups": [2, 5, 6],
    "model.ffnHiddenSize": [3074, 3080],
    "model.experts": [8, 6],
    "model.expertsPerToken": [1, 9],
    "sequenceLength": [2048, 2049, 2052],
    "parallelism.tensor": [2, 3, 4, 8],
    "parallelism.pipeline": [2, 4, 5],
    "parallelism.virtualPipeline": [2, 3],
    "parallelism.context": [2],
    "parallelism.expert": [2, 3, 8],
    "parallelism.expertTensor": [1, 2],
    "parallelism.sequence": [True],
    "batch.micro": [2, 3],
    "batch.global": [12, 64, "3/gpu"],
    "precision": ["fp8", "fp16", "nvfp4"],
    "recompute": [
        "full",
        {"granularity": "full", "layers": 5},
        {"granularity": "full", "method": "block", "layers": 5},
    ],
    "optimizer.learningRate": [1.0e-6, 1.0e-3],
    "optimizer.warmupSteps": [5],
    "optimizer.decay": ["linear", "cosine"],
    "model.rotaryBase": [500000],
    "steps": [0, 1, 400],
    "evaluation.batches": [2],
    "data.name": ["pile"],
    "data.prefixes": [["my-data"]],
    "data.shards": [1, 30, 31],
    "data.split": ["100,0,0", "98,.0,2"],
    "data.source": ["https://example.com/all/", "https://example.com/a.jsonl", "gs://bucket/all/", "hf://org/set"],
    "data.stage": [True],
    "tokenizer.kind": ["gpt2", "sentencepiece"],
    "tokenizer.path": ["/data/tokenizer"],
    "tokenizer.source": ["hf://gpt2"],
    "checkpoint.enabled": [False, True],
    "checkpoint.from": ["/data/weights"],
    "checkpoint.source": ["http://example.com/weights/", "hf://org/weights"],
    "run.maxRestarts": [0, 3],
    "run.ttlSecondsAfterFinished": [0, 60, None],
    "run.deadlineSeconds": [3600],
    "profile.enabled": [True],
    "storage.data.readOnly": [True],
    "storage.data.from": ["pvc://data", "nfs://server/data"],
    "storage.outputs.mountOptions": ["ro"],
    "storage.outputs.readOnly": [True],
    "storage.outputs.from": ["pvc://results"],
    "queue.name": ["queue"],
    "queue.flexStart": [True],
    "topology.mode": ["preferred"],
    "topology.sliceSize": [1, 2, 3],
    "mpi.sshPort": [22, 23, 6002],
    "network.interface": ["tcp", "infiniband", "efa"],
    "network.adapters": [1, 32, 40],
    "network.hugePages": ["5120Mi"],
    "network.mode": ["sriov"],
    "network.pluginVersion": ["v1.0.4", "v1.0.12", "v3.1.9", "v9"],
    "network.daemonVersion": ["v1.0.10", "v1.0.18", "v2.0.12", "v9"],
}
LAUNCHER_CHOICES: dict[str, list[Any]] = {
    "image": ["registry.example.com/own:1", "nvcr.io/nvidia/nemo:25.07.01", "nvcr.io/nvidia/nemo:26.02"],
    "program": ["/opt/own.py"],
    "nodes": [1, 4],
    "resources": [{"requests": {"cpu": "8"}}, {"limits": {"memory": "64Gi"}}, {"limits": {"cpu": ""}}],
    "mode": ["pairs"],
    "operations": [["all_reduce"], ["alltoall", "all_gather"]],
    "minBytes": ["1Gi", "16"],
    "maxBytes": ["4", "64", "1Mi"],
    "minBusbw": [{"all_reduce": 300}, {"alltoall": 0}],
    "binary": ["/opt/all_reduce_perf", "/usr/local/bin/alltoall_perf_mpi"],
    "args": [["--num-layers=5"], ["--fp16"], ["--", "x"], ["++trainer.max_steps=9"], ["model.optim.name.x"], ["own"]],
    "config": [
        {"train-samples": 5},
        {"train-samples": 5, "lr-decay-iters": 5},
        {"lr-warmup-samples": 5},
        {"train-samples": None, "lr-decay-iters": None},
        {"seq": 5, "lr": 0.1},
        {"bf16": None},
        {"account-for-loss-in-pipeline-split": True},
        {"decoder-first-pipeline-num-layers": 3},
        {"decoder-last-pipeline-num-layers": 20, "decoder-first-pipeline-num-layers": 2},
        {"model": {"account_for_embedding_in_pipeline_split": True, "optim": {"name": "x"}}},
        {"model": {"num_layers": None, "data": {"splits_string": {}}}},
        {"trainer": 5, "model": []},
        {"TP": 4, "VAL_CHECK_INTERVAL": 64},
        {"VAL_CHECK_INTERVAL": "4096"},
    ],
}
