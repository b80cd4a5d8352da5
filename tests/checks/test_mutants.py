"""Without one of the checks, wrong values pass: for each there are values that no other check says anything of.

The rules of lint have the same in tests/lint/test_lint_rules.py, those of values of others in
tests/lint/test_handwritten.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from chart_refusals import chart_on
from check_helpers import judge
from pairs import chart_of, layers
from userlib import composed, library

from chartgen import checks
from chartgen.checks import CHECKS, SCHEMA, check, yaml_pitfalls
from chartgen.checks.automatic import FITTING
from chartgen.checks.site_file import PLACEHOLDER, SITE
from chartgen.checks.yaml_pitfalls import PITFALLS
from chartgen.composer.library import open_library
from chartgen.composer.rules import builtin_rules
from chartgen.findings import NOT_OURS, REFUSED, TARGET_UNKNOWN
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values, load_values
from chartgen.helm.yaml import load_file
from chartgen.linter.catalogue import known_rules
from chartgen.linter.handwritten import HANDWRITTEN
from chartgen.linter.rules import RULES, STEP_RULES

DATA = Path(__file__).parents[1] / "data"
WRONG: Any = load_file(DATA / "wrong-values.yaml").data
_CASES: Any = load_file(DATA / "mutants.yaml").data
MUTANTS: dict[str, dict[str, Any]] = {case["rule"]: case for case in _CASES}
# Rules with a case of their own in wrong-values.yaml: tests/checks/test_checks.py asserts that no other reports it.
ALONE = {ids.pop() for wrong in WRONG if len(ids := {found.split()[-1] for found in wrong["finds"]}) == 1}
OWN = {"mine/resourceClaims.yaml": "- name: channel\n  resourceClaimTemplateName: channel\n"}
SEVERITIES = ("error", "warning", "unchecked")
# Every check, in Python and in rules.yaml.
SEVERITY = {**{each.id: each.severity for each in CHECKS}, **{each.id: each.severity for each in builtin_rules()}}
# Text that hardly packs: every number once.
NOISE = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(300_000))


def own_chart(folder: Path) -> Chart:
    """Compose a target of a user's with a claim and Kueue."""
    box = library(folder, OWN) / "targets" / "box.yaml"
    box.write_text(box.read_text().replace("mine]", "mine, kueue]"))
    return composed(folder)


def case_of(rule: str, folder: Path) -> tuple[Chart, Values]:
    """A chart, and values of which only one check says anything."""
    target, _, preset = MUTANTS[rule]["base"].partition(" ")
    if preset in open_library().names("workload"):
        target, preset = MUTANTS[rule]["base"], ""
    values = MUTANTS[rule]["values"]
    if rule == "configuration-fits-a-release":
        values = {**values, "launchers": {values["launcher"]: {"config": {"notes": NOISE}}}}
    # no target of ours has both claims and Kueue
    made = own_chart(folder) if target == "own" else chart_on(target)
    return made, load_values(layers(target, preset) if preset else [], set_json=[json.dumps(values)])


@pytest.mark.parametrize("mutant", MUTANTS)
def test_without_its_check_a_wrong_job_passes(mutant: str, tmp_path: Path) -> None:
    job = checks.job_of(*case_of(mutant, tmp_path))
    assert job
    # an error is what keeps a job from passing; what is only shown has to stand alone
    weight = SEVERITIES.index(SEVERITY[mutant])
    assert {said.id for said in judge(CHECKS, job) if SEVERITIES.index(said.severity) <= weight} == {mutant}


TRAPPED = {
    "yaml-key": "env:\n  on: a\n",
    "yaml-word": "env:\n  A: no\n",
    "yaml-letter": "checkpoint:\n  enabled: n\n",
    "yaml-number": "env:\n  A: 8388608\n",
    "yaml-version": "launchers:\n  megatron-lm:\n    config:\n      te_version: 1.0\n",
    "yaml-octal": "launchers:\n  megatron-lm:\n    config:\n      steps: 0100\n",
    "yaml-large-number": "launchers:\n  megatron-lm:\n    config:\n      steps: 9007199254740993\n",
    "yaml-infinity": "launchers:\n  megatron-lm:\n    config:\n      lr: .inf\n",
}


@pytest.mark.parametrize("rule", [each.id for each in PITFALLS])
def test_without_its_trap_a_wrong_file_passes(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(TRAPPED[rule])
    document = load_file(own)
    assert {found.rule for found in yaml_pitfalls.pitfalls(document)} == {rule}
    monkeypatch.setattr(yaml_pitfalls, "PITFALLS", tuple(each for each in PITFALLS if each.id != rule))
    assert yaml_pitfalls.pitfalls(document) == []


def test_without_the_schema_an_unknown_key_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    values = load_values(set_values=["nodse=2"])
    assert {found.rule for found in check(chart_of("gke-a3mega"), values)} == {SCHEMA}
    monkeypatch.setattr(checks, "check_values", lambda *_: [])
    assert check(chart_of("gke-a3mega"), values) == []


def test_every_id_belongs_to_a_kind_whose_rules_are_all_tried() -> None:
    kinds = (PITFALLS, RULES, STEP_RULES, HANDWRITTEN)
    assert {rule.id for rule in known_rules()} == {
        SCHEMA,
        NOT_OURS,
        REFUSED,
        SITE.id,
        PLACEHOLDER.id,
        FITTING.id,
        TARGET_UNKNOWN,
        *SEVERITY,
        *(each.id for kind in kinds for each in kind),
    }


def test_no_case_is_superfluous() -> None:
    assert {*MUTANTS} & ALONE == set()
    # tests/charts/test_policies.py has a job that a policy alone refuses
    assert {*MUTANTS} <= {*SEVERITY} <= {*MUTANTS, "allowed-registries"} | ALONE
