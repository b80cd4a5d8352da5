"""Lint of a chart in memory: more shapes of defects than one for each rule, and where findings are placed."""

from __future__ import annotations

from pathlib import Path

import pytest
from userlib import chartgen

from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.linter import lint
from chartgen.linter.structure import names_fit

SOUND = Path(__file__).parents[1] / "data" / "lint" / "sound"
JOB = "templates/job.yaml"


def sound(old: str = "", new: str = "") -> Chart:
    """Return the sound chart with one text of its Job replaced."""
    chart = Chart.read(SOUND)
    assert old in chart.files[JOB]
    return Chart(chart.name, {**chart.files, JOB: chart.files[JOB].replace(old, new, 1) if old else chart.files[JOB]})


def about(findings: list[Finding], rule: str) -> list[str]:
    return [str(finding) for finding in findings if finding.rule == rule]


# Defects of a rule beyond the one of tests/data/lint/seeds.yaml.
DEFECTS = [
    ("images-are-pinned", "example.com/installer:v1", "example.com:5000/installer", "without a fixed tag"),
    ("images-are-pinned", "hostPath: {path: /plugin}", "image: {reference: example.com/tools}", "without a fixed tag"),
    (
        "quantities-are-text",
        'requests: {nvidia.com/gpu: "8", cpu: "4"}',
        "requests: {cpu: 4}",
        "quantity cpu: 4 is not quoted",
    ),
    ("no-banned-functions", '{{ "now" | quote }}', '{{ now | date "2006" | quote }}', "now makes two renders differ"),
    (
        "renders-are-identical",
        '{{ "now" | quote }}',
        "{{ randAlphaNum 20 | quote }}",
        "spec.template.spec.containers[0].args[1] differs",
    ),
    ("helm-template", '{{ "now" | quote }}', "{{ .Values.no.such }}", "nil pointer evaluating"),
    ("no-host-processes", "restartPolicy: Never", "restartPolicy: Never\n      hostIPC: true", "the pod uses hostIPC"),
    ("secrets-by-reference", '"--say"', '"--api-key=abcdefghij0123456789"', "has a secret in args"),
]


@pytest.mark.helm
@pytest.mark.parametrize(("rule", "old", "new", "message"), DEFECTS, ids=[f"{d[0]}-{i}" for i, d in enumerate(DEFECTS)])
def test_defect_is_found(rule: str, old: str, new: str, message: str) -> None:
    findings = about(lint(sound(old, new)), rule)
    assert len(findings) == 1
    assert message in findings[0]
    assert "\n" not in findings[0]


@pytest.mark.parametrize(("length", "fits"), [(50, True), (51, False)])
def test_name_counts_what_the_jobset_controller_adds(length: int, fits: bool) -> None:
    """The longest is a pod's host name, `<jobset>-<replicated job>-<job index>-<pod index>`."""
    spec = {"name": "workers", "replicas": 1, "template": {"spec": {"completions": 32}}}
    jobset = {"kind": "JobSet", "metadata": {"name": "t" * length}, "spec": {"replicatedJobs": [spec]}}
    assert [complaint.message for complaint in names_fit(jobset)] == (
        [] if fits else [f"name {'t' * length}-workers-0-31 has 64 characters, at most 63 fit"]
    )


def test_a_null_is_as_absent() -> None:
    jobset = {"kind": "JobSet", "metadata": {"name": "a"}, "spec": {"replicatedJobs": [{"template": {"spec": None}}]}}
    assert not list(names_fit(jobset))


@pytest.mark.helm
def test_banned_function_is_placed_in_its_template() -> None:
    (finding,) = about(lint(sound('{{ "now" | quote }}', '{{ now | date "x" | quote }}')), "no-banned-functions")
    line = SOUND.joinpath(JOB).read_text().split('{{ "now"')[0].count("\n") + 1
    assert finding.startswith(f"{JOB}:{line}: ")


@pytest.mark.helm
def test_preset_is_checked_against_the_schema_with_its_place(tmp_path: Path) -> None:
    preset = tmp_path / "wrong.yaml"
    preset.write_text("step: 5\nsteps: eight\n")
    assert [str(finding) for finding in lint(sound(), {"wrong": [preset]})] == [
        f'{preset}:1:1: unknown key "step"; did you mean steps? [values-schema]',
        f'{preset}:2:1: steps must be a whole number of at least 1, not "eight" [values-schema]',
    ]


@pytest.mark.helm
def test_missing_preset_is_a_finding(tmp_path: Path) -> None:
    (finding,) = lint(sound(), {"gone": [tmp_path / "gone.yaml"]})
    assert str(finding) == f"{tmp_path / 'gone.yaml'}: with gone: no such file; check the path [helm-template]"


@pytest.mark.helm
def test_a_template_without_a_known_line_has_none(tmp_path: Path) -> None:
    assert chartgen("build", "gke-a3mega", "-d", tmp_path).exit_code == 0
    template = tmp_path / "gke-a3mega" / "templates" / "configmap.yaml"
    template.write_text(template.read_text().replace("\n", "\n{{ now }}\n", 1))
    shown = chartgen("lint", tmp_path / "gke-a3mega", "--no-cache").stdout
    assert "configmap.yaml" in shown
    assert "configmap.yaml:0" not in shown


@pytest.mark.helm
def test_a_version_that_a_chart_of_chartgen_does_not_allow_is_reported(tmp_path: Path) -> None:
    """One render counts for all versions only where the chart allows them."""
    assert chartgen("build", "eks-p6e-gb200", "-d", tmp_path).exit_code == 0
    shown = chartgen("lint", tmp_path / "eks-p6e-gb200", "--kubernetes", "1.29,1.37", "--no-cache").stdout
    assert "incompatible with Kubernetes v1.29.0" in shown
