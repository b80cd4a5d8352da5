"""`chartgen check` and the chart refuse the same values in the same words, for cases that are drawn from the rules."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random
from typing import Any

import pytest
from chart_refusals import (
    PLACES,
    all_rules,
    chart_on,
    every_case,
    facts_of,
    mixtures,
    refused,
    rendered,
    told,
    values_with,
)
from selection import HELMS

from chartgen.checks import check, check_values
from chartgen.checks.facts import FACTS as MAKERS
from chartgen.composer.rule_facts import FACTS
from chartgen.helm.values import Values

pytestmark = pytest.mark.engines


LARGEST: dict[str, Any] = {
    "nodes": 100000,
    "gpusPerNode": 1000000,
    "batch.global": "999999/gpu",
    "batch.micro": 1000000,
    **{f"parallelism.{name}": 1000000 for name in ("tensor", "pipeline", "context", "expert", "expertTensor")},
}
# Its one launcher cannot run on it.
NEVER = "lone"


@cache
def drawn(place: str) -> list[Values]:
    """Cases of rules of a chart, values of several keys at once, and the largest sizes."""
    own = [values for _, _, values in every_case()[place]]
    return [*own, *mixtures(place, Random(place), 40), values_with(LARGEST)]  # noqa: S311


def test_facts_have_a_type_and_are_made() -> None:
    assert MAKERS.keys() == FACTS.keys()


def test_each_rule_has_cases_that_break_it_and_cases_that_keep_to_it() -> None:
    seen = {(rule, breaks) for found in every_case().values() for rule, breaks, _ in found}
    assert {(rule, breaks) for rule in all_rules() for breaks in (True, False)} - seen == set()


def test_sizes_stay_within_64_bits() -> None:
    """Go would wrap them, and Python would not."""
    chart = chart_on("eks-p5")
    assert check_values(chart, values_with(LARGEST)) == []
    assert max(each for each in facts_of(chart, values_with(LARGEST)).values() if isinstance(each, int)) < 2**63
    for key, beyond in {"gpusPerNode": 1000001, "batch.global": "1000000/gpu"}.items():
        assert check_values(chart, values_with({key: beyond})) != []


@pytest.mark.usefixtures("built_engines")
@pytest.mark.parametrize("helm", HELMS)
@pytest.mark.parametrize("place", PLACES)
def test_a_chart_refuses_by_rules_in_the_words_of_the_check(place: str, helm: str) -> None:
    made, seen = chart_on(place), Counter[str]()
    for values, (lines, facts) in zip(drawn(place), rendered(made, drawn(place), helm), strict=True):
        expected = told(made, values)
        assert [line for line in lines if line not in expected and not _of_helm(line)] == [], values.data
        assert [line for line in expected if line not in lines] == [], values.data
        every = _flat(facts_of(made, values))
        assert _flat(facts) == {name: every[name] for name in _flat(facts)}, values.data
        seen.update(["refused" if lines else "accepted"])
    print(dict(seen))  # noqa: T201  how many cases were really compared
    assert seen["refused"] >= 12
    assert seen["accepted"] >= 12 or place == NEVER


def _of_helm(line: str) -> bool:
    """Report whether a refusal is one of a validate.tpl."""
    return (
        line.startswith(("network.pluginVersion", "network.daemonVersion", "network.ncclBuildType"))
        or ".image: " in line
    )


def _flat(facts: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Facts by their dotted names, whether they are nested or not."""
    found: dict[str, Any] = {}
    for name, value in facts.items():
        key = f"{prefix}{name}"
        if key in FACTS:
            found[key] = value
        elif isinstance(value, dict):
            found |= _flat(value, f"{key}.")
    return found


# What needs more than a rule can say, and plain Helm refuses all the same: chart, values, the key of both.
OF_TEMPLATES = [
    ("gke-a3mega", {"network": {"pluginVersion": "v1.0.10", "daemonVersion": "v1.0.16"}}, "network.pluginVersion"),
    ("gke-a3high", {"network": {"daemonVersion": "v2.0.9"}}, "network.daemonVersion"),
    ("gke-a3mega", {"network": {"ncclBuildType": "223"}}, "network.ncclBuildType"),
    (
        "gke-a3mega",
        {"launcher": "nemo-1", "launchers": {"nemo-1": {"image": "nvcr.io/nvidia/nemo:25.09"}}},
        "launchers.nemo-1.image",
    ),
    ("eks-p5", {"machineType": "p6-b200.48xlarge", "precision": "nvfp4"}, "launchers.megatron-lm.image"),
]


@pytest.mark.usefixtures("built_helm")
@pytest.mark.parametrize(("target", "values", "key"), OF_TEMPLATES)
def test_what_a_template_refuses_the_checks_refuse(target: str, values: dict[str, Any], key: str) -> None:
    (lines,) = refused(chart_on(target), [values_with(values)])
    assert [line.partition(": ")[0] for line in lines] == [key]
    assert key in checked(values_with(values), target)


def checked(values: Values, target: str) -> set[str]:
    """The keys of what `check` refuses, without Helm."""
    return {found.key for found in check(chart_on(target), values) if found.severity == "error"}


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
    run = values_with({"launcher": "pile-dataprep", **pile, **values})
    assert checked(run, target) == set()
    assert refused(chart_on(target), [run]) == [[]]
