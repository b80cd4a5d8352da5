"""Each rule of lint finds its seeded defect, at the place where people mend it, and no other rule is needed for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from lint_seeds import SEEDS, SOUND, expected, identified_chart, plant

from chartgen.findings import LEFT_OUT, UNFINISHED, Finding
from chartgen.linter import Subject, inspection
from chartgen.linter.chart_files import read_chart
from chartgen.linter.examination import Examination
from chartgen.linter.inspection import Inspection
from chartgen.linter.policy import Reasons
from chartgen.linter.rules import RULES, STEP_RULES
from chartgen.linter.steps import run_steps

FUNCTIONS = {rule.id for rule in RULES}
named = pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed["rule"])


def examined(folder: Path) -> Examination:
    read = read_chart(folder)
    return run_steps(Subject(identified_chart(read.chart, folder), folder, faults=read.findings))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Examination]]:
    """Every seeded chart, and what lint finds in it."""
    root = tmp_path_factory.mktemp("repository")
    (root / "charts").mkdir()
    for seed in SEEDS:
        plant(seed, root / "charts" / seed["rule"])
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(examined, [root / "charts" / seed["rule"] for seed in SEEDS]))
    return {seed["rule"]: (root / "charts" / seed["rule"], each) for seed, each in zip(SEEDS, done, strict=True)}


def test_there_is_a_seed_for_every_rule() -> None:
    rules = FUNCTIONS | {rule.id for rule in STEP_RULES} - {
        UNFINISHED,
        LEFT_OUT,
    }  # tests/hostile has charts that do not end
    assert sorted(seed["rule"] for seed in SEEDS) == sorted(rules)


@pytest.mark.helm
def test_sound_chart_has_no_findings(tmp_path: Path) -> None:
    preset = tmp_path / "long.yaml"
    preset.write_text("steps: 1000000")
    read = read_chart(SOUND)
    done = run_steps(Subject(read.chart, SOUND, presets={"long": [preset]}, faults=read.findings))
    assert done.findings == []
    assert [step.name for step in done.steps] == [
        *("files", "schema references", "schema, no job", "determinism", "secrets", "README and schema"),
        *(
            "helm template",
            "objects",
            "structure",
            "wiring",
            "policy",
            "kubernetes schemas",
            "scripts",
            "release size",
            "helm lint",
        ),
    ]


@pytest.mark.helm
@named
def test_seeded_defect_is_the_only_finding(
    seed: dict[str, Any], repository: dict[str, tuple[Path, Examination]]
) -> None:
    folder, done = repository[seed["rule"]]
    (finding,) = done.findings
    rule, path, line = expected(seed, folder)
    assert (finding.rule, str(finding.problem.path)) == (rule, path)
    assert seed["says"] in finding.problem.message
    assert line in (None, finding.problem.line)
    assert "\n" not in str(finding)


@pytest.mark.helm
@pytest.mark.parametrize("seed", [seed for seed in SEEDS if seed["rule"] in FUNCTIONS], ids=lambda seed: seed["rule"])
def test_without_its_rule_the_defect_passes(
    seed: dict[str, Any], repository: dict[str, tuple[Path, Examination]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, done = repository[seed["rule"]]
    assert {each.rule for each in looked_at(done)} == {seed["rule"]}
    monkeypatch.setattr(inspection, "RULES", tuple(rule for rule in RULES if rule.id != seed["rule"]))
    assert looked_at(done) == []


def looked_at(done: Examination) -> list[Finding]:
    """Apply the rules on objects once more to what Helm rendered."""
    chart = done.subject.chart
    again = Inspection(chart, Reasons(chart, as_built=True))
    assert not list(again.read(done.renderings))
    return [each for step in dict.fromkeys(rule.step for rule in RULES) for each in again.findings(step)]


STEPS = {
    "no-banned-functions": "later_steps.banned_functions",
    "chart-is-as-built": "helm_work.builds_differ",
    "tokens-by-reference": "later_steps.rendered_tokens",
    "values-are-used": "later_steps.documents",
    "values-are-known": "later_steps.unknown_values",
    "fabric-is-known": "later_steps.documents",
    "readme-names-values": "later_steps.documents",
    "schema-describes-values": "later_steps.documents",
    "ignore-has-reason": "steps.without_reason",
    "release-fits": "later_steps.release_fits",
    "helm-lint": "helm_work.HelmWork.linted",
    "helm-lint-strict": "helm_work.HelmWork.linted",
    "dependencies-are-there": "helm_work.about_missing",
    "chart-is-rendered": "helm_work.unrendered_findings",
    "several-machines-are-rendered": "machines.own_values",
    "machine-types-are-rendered": "machines.own_values",
    "pods-tolerate-their-machines": "later_steps.misplaced",
    "pods-select-their-machines": "later_steps.misplaced",
    "pods-fit-their-machines": "later_steps.misplaced",
    "topology-levels-are-labels": "later_steps.labelled",
    "helm-template": "helm_work.HelmWork.rendered",
    "keys-are-unique": "inspection.Inspection._overwritten",
    "renders-are-identical": "helm_work.HelmWork._compared",
}
# Its findings come with the chart, as reading the folder gave them.
READING = "chart-files"
# Without it Helm fetches what the schema names: tests/hostile shows that it does not.
FOREIGN = "schema-refers-to-itself"


def test_every_step_rule_is_left_out_once() -> None:
    assert {*STEPS, READING, UNFINISHED, FOREIGN, LEFT_OUT} == {rule.id for rule in STEP_RULES}


@pytest.mark.helm
@pytest.mark.parametrize("rule", STEPS)
def test_without_its_step_the_defect_passes(
    rule: str, repository: dict[str, tuple[Path, Examination]], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = repository[rule]
    monkeypatch.setattr(f"chartgen.linter.{STEPS[rule]}", lambda *_, **__: [])
    assert examined(folder).findings == []


@pytest.mark.helm
def test_without_reading_the_files_the_defect_passes(repository: dict[str, tuple[Path, Examination]]) -> None:
    folder, _ = repository[READING]
    assert run_steps(Subject(read_chart(folder).chart, folder)).findings == []
