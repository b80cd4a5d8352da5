"""Taints and tolerations: what chartgen says is what the API server and the scheduler decide."""

from __future__ import annotations

import pytest

from chartgen.kube import Object
from chartgen.kube.scheduling import untolerated

TAINT = {"key": "gpu", "value": "present", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "gpu", "value": "present"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "present", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "", "operator": "Exists"}, True),
        ({"key": "", "operator": "Exists", "effect": ""}, True),
        ({"key": None, "operator": "Exists", "effect": None}, True),
        ({"operator": "Equal", "value": "present"}, True),  # only a ResourceFlavor can have it: no pod may
        ({"operator": "Equal", "value": "other"}, False),
        ({"key": "gpu", "value": "other"}, False),
        ({"key": "gpu"}, False),
        ({"key": "tpu", "operator": "Exists"}, False),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "operator": "exists"}, False),
    ],
)
def test_a_toleration_matches_as_in_kubernetes(toleration: Object, tolerated: bool) -> None:
    machine = {"spec": {"taints": [TAINT]}}
    assert untolerated(machine, [toleration]) == ([] if tolerated else ["gpu=present:NoSchedule"])


@pytest.mark.parametrize(
    ("operator", "value", "taint", "tolerated"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Lt", "5", "-4", True),
        ("Lt", "5", "6", False),
        ("Gt", "5", "many", False),
        ("Gt", "5", "06", False),
        ("Gt", "5", "", False),
        ("Gt", "5", str(2**63), False),
    ],
)
def test_taints_are_compared_as_numbers(operator: str, value: str, taint: str, tolerated: bool) -> None:
    machine = {"spec": {"taints": [{"key": "slots", "value": taint, "effect": "NoExecute"}]}}
    toleration = {"key": "slots", "operator": operator, "value": value}
    assert (untolerated(machine, [toleration]) == []) is tolerated


def test_a_machine_without_taints_and_one_that_is_only_avoided_keep_nobody_off() -> None:
    assert untolerated({"spec": {}}, []) == untolerated({"spec": {"taints": None}}, []) == []
    assert untolerated({"spec": {"taints": [{**TAINT, "effect": "PreferNoSchedule"}]}}, []) == []
