"""The checks and the charts' own refusals agree: what passes `check` renders, and asks for the GPUs that it counts.

Not so for names of releases, which only Helm knows: values do not hold them.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import groupby
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pairs import TARGETS
from refused import (
    CASES,
    Refusal,
    chart_on,
    checked,
    key_of,
    miscounted,
    refusals,
    refused,
    strays,
    tells,
    values_of,
    values_with,
)
from rendered import GPT3, chart

from chartgen.checks import check, check_values
from chartgen.composer.origin import Composed
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values
from chartgen.rehearsal.controlplane import ControlPlane

pytestmark = pytest.mark.engines

# Sizes that keep to each other, and what a user changes of them: one or two, so that about half still do.
SIZES: dict[str, list[Any]] = {
    "nodes": [16, 32, 31],
    "sequenceLength": [4096, 2050],
    "precision": ["bf16", "fp8"],
    "model.layers": [96, 90],
    "model.attentionHeads": [96, 90],
    "model.experts": [8],
    "parallelism.tensor": [4, 8],
    "parallelism.pipeline": [4, 8],
    "parallelism.virtualPipeline": [1, 2, 3],
    "parallelism.context": [2],
    "parallelism.expert": [2],
    "parallelism.sequence": [True],
    "batch.micro": [1, 2],
    "batch.global": [2048, 256, "1/gpu", "4/gpu", 100],
}
CHANGES = st.lists(st.sampled_from([(key, value) for key, values in SIZES.items() for value in values]), max_size=2)


def test_what_passes_the_checks_is_accepted_with_the_gpus_that_it_counts(plane: ControlPlane) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(changes=CHANGES)
    def compare(changes: list[tuple[str, Any]]) -> None:
        values = load_values(GPT3, set_json=[f"{key}={json.dumps(value)}" for key, value in changes])
        assert check_values(chart(), values) == [], "the draw is to fit the schema"
        if any(found.severity == "error" for found in check(chart(), values)):
            seen["refused"] += 1
            return
        found = objects(render(chart(), "my-run", "ml", values.data))
        plane.cluster.apply(found, namespace="default", dry_run=True)
        (jobset,) = (item for item in found if item["kind"] == "JobSet")
        job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
        limits = job["template"]["spec"]["containers"][0]["resources"]["limits"]
        assert job["completions"] * int(limits["nvidia.com/gpu"]) == dict(changes).get("nodes", 32) * 8
        seen["accepted"] += 1

    compare()
    print(dict(seen))  # noqa: T201  how many cases were really compared
    assert seen["accepted"] >= 15


OF_NAMES = "release %s: "
CHARTS = [
    *TARGETS,
    *(f"{target} {kind}" for target in TARGETS if target != "oke-h100" for kind in ("job", "jobset", "pytorchjob")),
]


def test_each_refusal_of_a_chart_has_a_case() -> None:
    asked = {refusal for refusal in refusals() if not refusal.says.startswith(OF_NAMES)}
    assert asked == {Refusal(case["by"], case["says"]) for case in CASES}


@pytest.mark.usefixtures("built_helm")
def test_what_a_chart_refuses_the_checks_refuse() -> None:
    silent = []
    for target, group in groupby(sorted(CASES, key=lambda case: case["target"]), key=lambda case: case["target"]):
        cases, made = list(group), chart_on(target)
        sets = [values_of(case["values"]) for case in cases]
        for case, values, lines in zip(cases, sets, refused(made, sets), strict=True):
            own = [line for line in lines if Refusal(case["by"], case["says"]).matches(line)]
            assert own, f"{target} accepts {case['values']}: {case['says']}"
            keys = checked(made, values)
            silent += [f"{target}: {line}" for line in lines if not tells(keys, key_of(line))]
            silent += [f"{target}: {case['told']}" for told in [case.get("told")] if told and told not in keys]
    assert silent == []


@pytest.mark.usefixtures("built_helm")
@pytest.mark.parametrize(
    ("target", "values"),
    [
        ("onprem-p8000", {"launchers": {"pile-dataprep": {"nodes": 4}}}),
        ("gke-a3mega", {"gpusPerNode": 12, "topology": {"mode": "required"}, "network": {"pluginVersion": "v9"}}),
        ("eks-p5", {"network": {"hugePages": "5120Mi", "adapters": 33}}),
    ],
)
def test_programs_without_gpus_are_not_refused_for_what_only_gpus_need(target: str, values: dict[str, Any]) -> None:
    pile = {"data": {"name": "pile", "shards": 30}, "tokenizer": {"kind": "gpt2", "path": "/data/gpt2"}}
    run = values_of({"launcher": "pile-dataprep", **pile, **values})
    assert checked(chart_on(target), run) == set()
    assert refused(chart_on(target), [run]) == [[]]


@st.composite
def batches(draw: st.DrawFn) -> tuple[str, list[list[tuple[str, Any]]]]:
    """A chart, and several sets of values that stray from its defaults in a few keys."""
    place = draw(st.sampled_from(CHARTS))
    made = chart_on(place)
    assert isinstance(made.origin, Composed)
    launcher = st.sampled_from([launcher.name for launcher in made.origin.target.launchers])
    few = launcher.flatmap(
        lambda name: st.lists(st.sampled_from(strays(place, name)), max_size=6).map(
            lambda pairs: [("launcher", name), *pairs]
        )
    )
    return place, draw(st.lists(few, min_size=8, max_size=8))


@pytest.mark.usefixtures("built_helm")
def test_checks_and_charts_refuse_alike() -> None:
    """In both directions: of all refusals of the chart `check` tells, and of its own arithmetic the chart does."""
    seen: Counter[str] = Counter()

    # a chart is composed at its first draw
    @settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(batch=batches())
    def compare(batch: tuple[str, list[list[tuple[str, Any]]]]) -> None:
        made, sets = chart_on(batch[0]), [values_with(pairs) for pairs in batch[1]]
        assert [check_values(made, values) for values in sets] == [[]] * len(sets), "the draw is to fit the schema"
        told = [checked(made, values) for values in sets]
        passed = [values for values, keys in zip(sets, told, strict=True) if not keys]
        for pairs, values, keys, lines in zip(batch[1], sets, told, refused(made, sets), strict=True):
            assert [line for line in lines if not tells(keys, key_of(line))] == [], pairs
            miscounts = miscounted(made, values)
            assert lines or not miscounts, (miscounts, pairs)
            seen["compared"] += 1
            seen["refused by the chart"] += bool(lines)
            seen["miscounted"] += bool(miscounts)
            seen["accepted by both"] += not keys and not lines
        if passed:
            render(made, "my-run", "ml", passed[0].data)
            seen["rendered"] += 1

    compare()
    print(dict(seen))  # noqa: T201  how many cases were really compared
    assert seen["compared"] >= 150
    assert min(seen["refused by the chart"], seen["miscounted"], seen["accepted by both"]) >= 20
    assert seen["rendered"] >= 5
