"""The checks and the charts' own refusals agree: what passes `check` renders, and asks for the GPUs that it counts.

Not so for names of releases, which only Helm knows: values do not hold them.
"""

from __future__ import annotations

import json
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
    refusals,
    refused,
    strays,
    tells,
    values_of,
    values_with,
)
from rendered import GPT3, chart

from chartgen.checks import check
from chartgen.errors import ChartgenError
from chartgen.manifests import objects, render
from chartgen.origin import Composed
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.values import load_values

pytestmark = pytest.mark.engines

SIZES = st.fixed_dictionaries(
    {
        "nodes": st.sampled_from([1, 4, 8, 16, 31, 32]),
        "gpusPerNode": st.sampled_from([None, 8]),
        "sequenceLength": st.sampled_from([2048, 2050, 4096]),
        "precision": st.sampled_from(["bf16", "fp8", "mxfp8"]),
        "model": st.fixed_dictionaries(
            {
                "layers": st.sampled_from([90, 96]),
                "attentionHeads": st.sampled_from([96, 90]),
                "experts": st.sampled_from([0, 0, 8]),
            }
        ),
        "parallelism": st.fixed_dictionaries(
            {
                "tensor": st.sampled_from([1, 2, 4, 8]),
                "pipeline": st.sampled_from([1, 2, 4, 8]),
                "virtualPipeline": st.sampled_from([1, 2, 3]),
                "context": st.sampled_from([1, 2]),
                "expert": st.sampled_from([1, 1, 2]),
                "sequence": st.booleans(),
            }
        ),
        "batch": st.fixed_dictionaries(
            {"micro": st.sampled_from([1, 2]), "global": st.sampled_from([100, 256, 2048, "1/gpu", "4/gpu"])}
        ),
    }
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sizes=SIZES)
def test_what_passes_the_checks_is_accepted_with_the_gpus_that_it_counts(
    plane: ControlPlane, sizes: dict[str, Any]
) -> None:
    values = load_values(GPT3, set_json=[f"{key}={json.dumps(value)}" for key, value in sizes.items()])
    errors = [found for found in check(chart(), values) if found.severity == "error"]
    found, refusal = [], ""
    try:
        found = objects(render(chart(), "my-run", "ml", values.data))
    except ChartgenError as error:
        refusal = str(error)
    if errors:
        return
    assert refusal == "", "only the chart refuses it"
    plane.cluster.apply(found, namespace="default", dry_run=True)
    (jobset,) = (item for item in found if item["kind"] == "JobSet")
    job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    limits = job["template"]["spec"]["containers"][0]["resources"]["limits"]
    world = job["completions"] * int(limits["nvidia.com/gpu"])
    assert world == sizes["nodes"] * 8
    assert (
        world % (sizes["parallelism"]["tensor"] * sizes["parallelism"]["pipeline"] * sizes["parallelism"]["context"])
        == 0
    )


OF_NAMES = "release %s: "
CHARTS = [
    *TARGETS,
    *(f"{target} {kind}" for target in TARGETS if target != "oke-h100" for kind in ("job", "jobset", "pytorchjob")),
]


def test_each_refusal_of_a_chart_has_a_case() -> None:
    asked = {refusal for refusal in refusals() if not refusal.says.startswith(OF_NAMES)}
    assert asked == {Refusal(case["by"], case["says"]) for case in CASES}


@pytest.mark.usefixtures("built_engines")
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


@pytest.mark.usefixtures("built_engines")
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


@pytest.mark.usefixtures("built_engines")
@settings(max_examples=20, deadline=None)
@given(batch=batches())
def test_nothing_is_refused_by_the_chart_alone(batch: tuple[str, list[list[tuple[str, Any]]]]) -> None:
    made, sets = chart_on(batch[0]), [values_with(pairs) for pairs in batch[1]]
    told = [checked(made, values) for values in sets]
    for pairs, keys, lines in zip(batch[1], told, refused(made, sets), strict=True):
        assert [line for line in lines if not tells(keys, key_of(line))] == [], pairs
    passed = [values for values, keys in zip(sets, told, strict=True) if not keys]
    if passed:
        render(made, "my-run", "ml", passed[0].data)
