"""A few of the random values of `make fuzz`, without a cluster: no crash, and what passes renders to sound objects."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from fuzz import Tally, chart_of, leaves, passes, values
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pairs import WIRINGS
from strategies import LISTS, PARTS, pod_part

from chartgen.checks import check
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values
from chartgen.kube.pod_rules import type_faults
from chartgen.linter.api_schemas import objects_fit_their_schema


@pytest.mark.helm
@pytest.mark.parametrize("target", WIRINGS)
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_random_values_pass_or_are_refused_with_a_reason(target: str, data: st.DataObject) -> None:
    passes(target, data.draw(values(target)))


def test_every_key_of_a_chart_is_drawn() -> None:
    drawn = {key for key, _ in leaves("gke-a3mega")}
    assert {*PARTS, *LISTS, "nodes", "env", "launchers.nccl-test.resources.limits"} <= drawn
    assert "global" not in drawn


@pytest.mark.parametrize("name", [*PARTS.values(), *LISTS.values()])
def test_parts_of_pods_are_drawn_right_and_wrong(name: str) -> None:
    wrong = Counter[bool]()

    @settings(max_examples=200, phases=[Phase.generate])
    @given(pod_part(name))
    def draw(part: Any) -> None:
        wrong[any(type_faults(part, name))] += 1

    draw()
    # enough of both
    assert min(wrong.values()) > 20


@pytest.mark.parametrize("key", ["nodes", "model.layers", "model.hiddenSize", "parallelism.expert", "run.maxRestarts"])
def test_numbers_beyond_all_machines_are_refused_at_once(key: str) -> None:
    found = check(chart_of("gke-a3mega"), load_values(set_values=[f"{key}=9007199254740992"]))
    assert [(each.rule, each.key or each.problem.message.split()[0]) for each in found] == [("values-schema", key)]


class Broken:
    """A cluster that nobody may talk to."""


def test_a_crash_is_told_with_the_values_that_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = Tally()
    monkeypatch.setattr("fuzz.check", lambda *_: 1 / 0)
    tally.judge("gke-a3mega", load_values(set_values=["nodes=3"]), Broken())  # type: ignore[arg-type]
    assert (tally.figures["drawn"], tally.figures["crashed"]) == (1, 1)
    assert tally.wrong[0].startswith('gke-a3mega: {"nodes": 3}: Traceback')
    assert "ZeroDivisionError" in tally.wrong[0]


NUMBERS = {
    "serviceAccount": "0",
    "imagePullSecrets": ["0", "1e3"],
    "storage": {"data": {"from": "pvc://0"}},
    "queue": {"name": "10"},
    "extraVolumes": [{"name": "0", "persistentVolumeClaim": {"claimName": "1e3"}}],
    "extraVolumeMounts": [{"name": "0", "mountPath": "/cache"}],
    "podLabels": {"a": "1"},
}


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
@pytest.mark.parametrize("target", WIRINGS)
def test_names_that_look_like_numbers_stay_text(target: str) -> None:
    numbers = load_values(set_json=[json.dumps(NUMBERS)])
    assert [found for found in check(chart_of(target), numbers) if found.severity == "error"] == []
    # the operators of PyTorchJobs and Volcano Jobs want a letter first, and the charts say so
    release = "my-run" if target in ("eks-p5", "oke-h100") else "2026"
    made = objects(render(chart_of(target), release, "ml", numbers.data))
    assert [str(each) for thing in made for each in objects_fit_their_schema(thing, "1.37")] == []
    assert {thing["metadata"]["labels"]["app.kubernetes.io/instance"] for thing in made} == {release}
