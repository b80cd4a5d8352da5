"""Quantities and node affinity, read as Kubernetes reads them."""

from __future__ import annotations

import pytest

from chartgen.kube import (
    Object,
)
from chartgen.kube.quantities import amount_text, read_quantity
from chartgen.kube.scheduling import is_selected


@pytest.mark.parametrize(
    ("text", "number"), [("8", 8), (8, 8), ("500m", 0.5), ("1Ki", 1024), ("2k", 2000), ("1e3", 1000), ("0.5Gi", 2**29)]
)
def test_quantities(text: str | int, number: float) -> None:
    assert read_quantity(text) == number


def test_quantities_as_people_read_them() -> None:
    assert [amount_text(read_quantity(text), "memory") for text in ("64Gi", "1.5Ti", "100Mi", "0")] == [
        "64Gi",
        "1536Gi",
        "100Mi",
        "0",
    ]
    assert amount_text(read_quantity("191450m"), "cpu") == "191.45"
    with pytest.raises(ValueError, match="'8 GB' is not a quantity"):
        read_quantity("8 GB")


@pytest.mark.parametrize(
    ("rule", "matches"),
    [
        ({"key": "gpu", "operator": "In", "values": ["h100"]}, True),
        ({"key": "gpu", "operator": "NotIn", "values": ["h100"]}, False),
        ({"key": "cpu", "operator": "DoesNotExist"}, True),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "slots", "operator": "Gt", "values": ["7"]}, True),
        ({"key": "slots", "operator": "Lt", "values": ["8"]}, False),
        ({"key": "gpu", "operator": "Gt", "values": ["7"]}, False),
        ({"key": "slots", "operator": "Gt", "values": ["many"]}, False),
        ({"key": "none", "operator": "Lt", "values": ["8"]}, False),
        ({"key": "long", "operator": "Gt", "values": ["7"]}, False),
    ],
)
def test_affinity_selects_as_the_scheduler_does(rule: Object, matches: bool) -> None:
    term = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    machine = {"metadata": {"name": "a", "labels": {"gpu": "h100", "slots": "8", "long": "9" * 30}}}
    assert is_selected(machine, {"affinity": affinity}) is matches
