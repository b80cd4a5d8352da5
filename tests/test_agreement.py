"""The checks and the charts' own refusals agree: what passes `check` renders, and asks for the GPUs that it counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rendered import GPT3, chart

from chartgen.checks import check
from chartgen.errors import ChartgenError
from chartgen.manifests import objects, render
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
