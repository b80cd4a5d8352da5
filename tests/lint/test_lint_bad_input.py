"""What lint says of charts and files that are broken in ways of their own: one clear line, never a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from answers import findings
from facts import has
from lint_seeds import JOB, SOUND

from chartgen.helm import program
from chartgen.linter import Subject, run_steps
from chartgen.linter.chart_files import read_chart

TARGET = """\
description: a machine hall
platform: onprem
workload: job
machines:
  box: {gpus: 8, gpu: h100-80gb, capacity: {nvidia.com/gpu: "8", cpu: "192", memory: 2000Gi}}
fragments: [nvidia-gpu, instance-type, shared-memory, broken, storage, storage-pvc, storage-memory]
launchers: [megatron-lm]
sources: [ours]
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    shutil.copytree(SOUND, tmp_path / "chart")
    return tmp_path / "chart"


def lint(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "chartgen", "lint", "--no-cache", *map(str, arguments)]
    ran = subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr
    return ran


def messages(chart: Path) -> list[str]:
    read = read_chart(chart)
    done = run_steps(Subject(read.chart, chart, faults=read.findings))
    return [str(found).replace(f"{chart}/", "") for found in done.findings]


def test_folder_that_is_no_chart(tmp_path: Path) -> None:
    ran = lint(tmp_path)
    assert ran.returncode == 1
    assert f"{tmp_path}\n" in ran.stdout
    assert "[chart-files]" in ran.stdout


@pytest.mark.helm
def test_syntax_error_in_a_template(chart: Path) -> None:
    job = chart / JOB
    job.write_text(job.read_text().replace('{{ "now" | quote }}', '{{ "now" | nosuch }}'))
    line = job.read_text().split('{{ "now"')[0].count("\n") + 1
    found = messages(chart)
    assert f'{JOB}:{line}: with no values: function "nosuch" not defined [helm-template]' in found
    assert all(each.startswith(f"{JOB}:{line}: ") for each in found)


def broken(folder: Path, env: str) -> Path:
    """Write a target whose one fragment has this env.yaml; return that file."""
    fragment = folder / "fragments" / "broken"
    fragment.mkdir(parents=True)
    (folder / "targets").mkdir()
    (folder / "targets" / "lab.yaml").write_text(TARGET)
    (fragment / "fragment.yaml").write_text("description: has a mistake\nsources: [ours]\n")
    (fragment / "env.yaml").write_text(env)
    return fragment / "env.yaml"


@pytest.mark.helm
def test_text_that_breaks_a_template_of_chartgen_names_the_users_file(tmp_path: Path) -> None:
    env = broken(tmp_path, '- name: LAB\n  value: {{ "a: b: c" }}\n')
    ran = lint("lab", "--path", tmp_path, "--select", "helm-template", "--output", "json")
    (found,) = findings(ran.stdout)
    assert str(env) in found["hint"]


@pytest.mark.helm
def test_syntax_error_is_placed_in_the_fragment(tmp_path: Path) -> None:
    env = broken(tmp_path, "# of ours\n- name: LAB_SETTING\n  value: {{ .Values.nodes | nosuch }}\n")
    ran = lint("lab", "--path", tmp_path, "--select", "helm-template,helm-lint", "--output", "github")
    assert ran.returncode == 1
    lines = ran.stdout.splitlines()
    assert lines
    assert all(line.startswith(f"::error file={env},line=3,title=helm-") for line in lines)


def test_circles_and_links_out_of_the_chart(chart: Path) -> None:
    (chart / "charts").mkdir()
    (chart / "charts" / "self").symlink_to(chart)
    (chart / "secret.txt").symlink_to("/etc/hostname")
    (chart / "gone.txt").symlink_to("nowhere")
    assert messages(chart) == [
        has("charts/self Helm [chart-files]"),
        has("gone.txt [chart-files]"),
        has("secret.txt chart [chart-files]"),
    ]


def test_a_file_of_200_mb_is_not_read(chart: Path) -> None:
    with (chart / "data.bin").open("wb") as file:
        file.truncate(200_000_000)
    assert messages(chart) == [has("data.bin 200 MB Helm 5 MB [chart-files]")]


@pytest.mark.helm
def test_templates_that_include_each_other(chart: Path) -> None:
    (chart / "templates" / "_loop.tpl").write_text('{{- define "a" }}{{ include "a" . }}{{ end }}\n')
    (chart / "templates" / "loop.yaml").write_text('{{ include "a" . }}\n')
    cause = "rendering template has a nested reference name: a: unable to execute template"
    assert messages(chart) == [f"templates/_loop.tpl:1:20: with no values: {cause} [helm-template]"]


@pytest.mark.helm
def test_templates_that_never_end(chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "RENDER_LIMIT", 1.0)
    loops = "{{ range until 100000 }}" * 3 + "{{ end }}" * 3
    (chart / "templates" / "loop.yaml").write_text(loops)
    found = messages(chart)
    assert "values.yaml:1: with no values: helm template did not end within 1 s [helm-template]" in found


@pytest.mark.helm
def test_values_of_the_call_or_of_the_ci_folder(chart: Path, tmp_path: Path) -> None:
    job = chart / JOB
    job.write_text(
        job.read_text().replace('{{ "now" | quote }}', '{{ required "give a word" ((.Values.global).word) | quote }}')
    )
    refused = lint(chart)
    assert refused.returncode == 3  # what it renders was not looked at
    assert "[chart-is-rendered]" in refused.stdout
    assert "give a word" in refused.stdout
    (tmp_path / "site.yaml").write_text("global: {word: hello}\n")
    assert lint(chart, "-f", tmp_path / "site.yaml").returncode == 0
    (chart / "ci").mkdir()
    (chart / "ci/usual-values.yaml").write_text("global: {word: hello}\n")
    assert lint(chart).returncode == 0
    (chart / "ci/odd-values.yaml").write_text("global: {}\n")
    odd = lint(chart)
    assert odd.returncode == 1
    assert "with odd: " in odd.stdout


@pytest.mark.helm
def test_values_of_another_chart(chart: Path, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("replicaCount: 3\n")
    ran = lint(chart, "-f", values, "--output", "json", "--select", "values-schema")
    assert ran.returncode == 1
    assert 'unknown key \\"replicaCount\\"' in ran.stdout


@pytest.mark.parametrize("text", ["", "[]", '{"findings": [{}]}', '{"findings": 3}', "\xff"])
def test_unreadable_baseline(text: str, chart: Path, tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    known.write_text(text)
    ran = lint(chart, "--baseline", known)
    assert ran.returncode == 1
    hint = "write it again with --write-baseline"
    assert ran.stderr == has(f"error {known} chartgen lint {hint}")


def test_missing_baseline(chart: Path, tmp_path: Path) -> None:
    ran = lint(chart, "--baseline", tmp_path / "known.json")
    assert ran.stderr == has(f"error {tmp_path / 'known.json'}")


def test_no_helm(chart: Path, tmp_path: Path) -> None:
    ran = lint(chart, PATH=str(tmp_path), CHARTGEN_CACHE=str(tmp_path))
    assert ran.returncode == 3
    assert ran.stderr.startswith("error: helm is not installed; install Helm 3.18 or newer")


@pytest.mark.helm
def test_output_into_a_folder_that_is_not_there(chart: Path, tmp_path: Path) -> None:
    file = tmp_path / "none" / "found.sarif"
    ran = lint(chart, "--output", "sarif", "--output-file", file)
    assert ran.returncode == 1
    assert ran.stderr.endswith(f"error: {file}: cannot be written: no such folder; create the folder first\n")


def test_broken_chart_yaml(chart: Path) -> None:
    (chart / "Chart.yaml").write_text("name: [\n")
    assert [each.partition(":")[0] for each in messages(chart)] == ["Chart.yaml"]


@pytest.mark.helm
def test_template_that_renders_no_yaml(chart: Path) -> None:
    (chart / "templates" / "bad.yaml").write_text("a: [1\nb: {{ .Values.steps }}\n")
    (message,) = messages(chart)
    assert message.startswith("templates/bad.yaml: with no values: error converting YAML to JSON")


@pytest.mark.helm
def test_objects_that_are_half_there(chart: Path) -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata:\nspec: {containers: [{name: a, env: 3, ports: x}, 7], volumes: {}}\n"
    (chart / "templates" / "half.yaml").write_text(text)
    assert any("spec.containers[1]: must be an object" in each for each in messages(chart))
