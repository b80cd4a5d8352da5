"""Lint finds each defect, alone in an otherwise sound chart, and nothing in the sound chart itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from chartgen.chart import Chart
from chartgen.findings import Finding
from chartgen.linter import lint
from chartgen.rules import names_fit

SOUND = Path(__file__).parent / "data" / "lint" / "sound"
JOB = "templates/job.yaml"

# Rule -> the text of the sound template, what replaces it, and a part of the finding's message.
DEFECTS = [
    ("mounts-have-volumes", "- {name: plugin,", "- {name: plug,", "installer mounts 'plug', which is no volume"),
    ("volumes-are-used", "gke-gcsfuse-cache", "left-over", "no container mounts volume 'left-over'"),
    ("unique-environment", "name: MODE", "name: STEPS", "container trainer sets STEPS twice"),
    ("unique-volumes", "gke-gcsfuse-cache", "plugin", "two volumes are named 'plugin'"),
    ("unique-mount-paths", "mountPath: /dev/shm", "mountPath: /plugin", "mounts two volumes at /plugin"),
    ("unique-containers", "name: installer", "name: trainer", "two containers are named 'trainer'"),
    ("annotations-are-json", '"default"}]', '"default"},]', "annotation networking.gke.io/interfaces looks like JSON"),
    ("names-fit", "}}-train", "}}-" + "t" * 57, "has 64 characters, at most 63 fit"),
    ("no-literal-namespace", "metadata:\n", "metadata:\n  namespace: default\n", "names the namespace 'default'"),
    ("images-are-pinned", "installer:v1", "installer:latest", "'example.com/installer:latest' without a fixed tag"),
    ("images-are-pinned", "example.com/installer:v1", "example.com:5000/installer", "without a fixed tag"),
    ("standard-labels", "    helm.sh/chart: sound-0.1.0\n", "", "lacks the label helm.sh/chart"),
    (
        "quantities-are-text",
        'requests: {nvidia.com/gpu: "8", cpu: "4"}',
        "requests: {cpu: 4}",
        "quantity cpu: 4 is not quoted",
    ),
    ("quantities-are-text", 'sizeLimit: "1Gi"', "sizeLimit: 1000", "quantity sizeLimit: 1000 is not quoted"),
    ("gpu-requests-equal-limits", 'requests: {nvidia.com/gpu: "8"', 'requests: {nvidia.com/gpu: "4"', "its limit is 8"),
    ("gpu-pods-tolerate", "key: nvidia.com/gpu", "key: other", "does not tolerate nvidia.com/gpu"),
    (
        "security-context-is-explicit",
        "        securityContext: {privileged: false}\n",
        "",
        "trainer has no securityContext",
    ),
    ("no-banned-functions", '{{ "now" | quote }}', '{{ now | date "2006" | quote }}', "now makes two renders differ"),
    (
        "no-banned-functions",
        '{{ "now" | quote }}',
        "{{ .Release.Revision | quote }}",
        ".Release.Revision makes two renders differ",
    ),
    ("renders-are-identical", '{{ "now" | quote }}', "{{ randAlphaNum 20 | quote }}", "two renders differ"),
    ("helm-lint", "  name: {{ .Release.Name }}-train", "  name: Not_A_Name", "object name does not conform"),
    ("helm-template", '{{ "now" | quote }}', '{{ fail "nodes must be even" }}', "with no values: nodes must be even"),
    ("helm-template", '{{ "now" | quote }}', "{{ .Values.no.such }}", "nil pointer evaluating"),
]


def sound(old: str = "", new: str = "") -> Chart:
    """Give the sound chart with one text of its Job replaced."""
    chart = Chart.read(SOUND)
    assert old in chart.files[JOB]
    return Chart(chart.name, {**chart.files, JOB: chart.files[JOB].replace(old, new, 1) if old else chart.files[JOB]})


def about(findings: list[Finding], rule: str) -> list[str]:
    return [str(finding) for finding in findings if finding.rule == rule]


def test_sound_chart_has_no_findings(tmp_path: Path) -> None:
    preset = tmp_path / "long.yaml"
    preset.write_text("steps: 1000000")
    assert lint(sound(), {"long": [preset]}) == []


@pytest.mark.parametrize(("rule", "old", "new", "message"), DEFECTS, ids=[f"{d[0]}-{i}" for i, d in enumerate(DEFECTS)])
def test_defect_is_found(rule: str, old: str, new: str, message: str) -> None:
    findings = about(lint(sound(old, new)), rule)
    assert len(findings) == 1
    assert message in findings[0]
    assert "\n" not in findings[0]


@pytest.mark.parametrize(("rule", "old", "new"), [defect[:3] for defect in DEFECTS[:15]])
def test_defect_trips_no_other_rule(rule: str, old: str, new: str) -> None:
    assert {finding.rule for finding in lint(sound(old, new))} == {rule}


@pytest.mark.parametrize(("length", "fits"), [(50, True), (51, False)])
def test_name_counts_what_the_jobset_controller_adds(length: int, fits: bool) -> None:
    """The longest is a pod's host name, `<jobset>-<replicated job>-<job index>-<pod index>`."""
    spec = {"name": "workers", "replicas": 1, "template": {"spec": {"completions": 32}}}
    jobset = {"kind": "JobSet", "metadata": {"name": "t" * length}, "spec": {"replicatedJobs": [spec]}}
    assert [complaint.message for complaint in names_fit(jobset)] == (
        [] if fits else [f"name {'t' * length}-workers-0-31 has 64 characters, at most 63 fit"]
    )


def test_banned_function_is_placed_in_its_template() -> None:
    (finding,) = about(lint(sound('{{ "now" | quote }}', '{{ now | date "x" | quote }}')), "no-banned-functions")
    line = SOUND.joinpath(JOB).read_text().split('{{ "now"')[0].count("\n") + 1
    assert finding.startswith(f"{JOB}:{line}: ")


def test_preset_is_checked_against_the_schema_with_its_place(tmp_path: Path) -> None:
    preset = tmp_path / "wrong.yaml"
    preset.write_text("step: 5\nsteps: eight\n")
    assert [str(finding) for finding in lint(sound(), {"wrong": [preset]})] == [
        f'{preset}:1:1: unknown key "step"; did you mean steps? [values-schema]',
        f'{preset}:2:1: steps must be a whole number of at least 1, not "eight" [values-schema]',
    ]


def test_missing_preset_is_a_finding(tmp_path: Path) -> None:
    (finding,) = lint(sound(), {"gone": [tmp_path / "gone.yaml"]})
    assert str(finding) == f"{tmp_path / 'gone.yaml'}: with gone: no such file; check the path [helm-template]"
