"""What passes `check` is accepted by a real API server, and asks for the GPUs that it counts."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rendered import GPT3, chart

from chartgen.checks import check, check_values
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


def test_the_api_server_counts_the_same_gpus(plane: ControlPlane) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=60)
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
