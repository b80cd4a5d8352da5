"""Lint of a target without presets: two machines too, since one uses no network, and the example of its site file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from answers import findings as read
from userlib import chartgen, library, write

IF_SEVERAL = """\
{{- if gt (include "<%= chart %>.nodes" . | int64) 1 }}
- name: RAILS
  value: {{ include "<%= chart %>.nosuch" . }}
{{- end }}
"""
ALONE = {"id": "alone", "meaning": "m", "source": "s", "key": "nodes", "require": "nodes < 2"}


def findings(folder: Path, *more: str) -> list[tuple[str, str, str]]:
    ran = chartgen(
        "lint", "box", "--path", folder, "--no-cache", "--ignore", "fabric-of-the-target", "--output", "json", *more
    )
    return [(each["rule"], each["severity"], each["path"]) for each in read(ran.stdout)]


@pytest.mark.helm
def test_what_only_several_machines_get_is_seen(tmp_path: Path) -> None:
    ours = library(tmp_path, {"mine/env.yaml": IF_SEVERAL})
    ((rule, severity, path),) = findings(ours)
    assert (rule, severity) == ("helm-template", "error")
    assert path == str(ours / "fragments/mine/env.yaml")


@pytest.mark.helm
def test_defaults_for_one_machine_are_reported(tmp_path: Path) -> None:
    rules = json.dumps([{**ALONE, "message": "only one", "hint": "use 1"}])
    ours = library(tmp_path, {"mine/rules.yaml": rules})
    assert findings(ours) == [("several-machines-are-rendered", "unchecked", "values.yaml")]


SECOND = """\
  box-4:
    gpus: 4
    gpu: h100-80gb
    capacity: {nvidia.com/gpu: "4", cpu: "96", memory: 1Ti}
    labels: {example.com/pool: four}
fragments:"""
FOUR = """\
{{- if eq .Values.machineType "box-4" }}
- name: RAILS
  value: {{ include "<%= chart %>.nosuch" . }}
{{- end }}
"""


def with_a_second_type(folder: Path, files: Mapping[str, str]) -> Path:
    ours = library(folder, files, gpu_only=("mine",))
    target = ours / "targets/box.yaml"
    target.write_text(target.read_text().replace("fragments:", SECOND, 1))
    return ours


@pytest.mark.helm
def test_each_machine_type_is_rendered(tmp_path: Path) -> None:
    ours = with_a_second_type(tmp_path, {"mine/env.yaml": FOUR})
    assert findings(ours) == [("helm-template", "error", str(ours / "fragments/mine/env.yaml"))]


@pytest.mark.helm
def test_pods_are_compared_with_each_row(tmp_path: Path) -> None:
    """Not with labels that the values name, which are those of a site."""
    pool = {"mine/nodeSelector.yaml": "example.com/pool: {{ .Values.pool }}\n",
            "mine/values.yaml": "# -- Pool\npool: four\n",
            "mine/values.schema.json": '{"properties": {"pool": {"type": "string"}}}'}  # fmt: skip
    ours = with_a_second_type(tmp_path, pool)
    assert findings(ours) == [("pods-select-their-machines", "error", str(ours / "targets/box.yaml"))]
    assert findings(ours, "--set", "pool=mine") == []
    assert len(findings(ours, "--set", "nodes=2")) == 1
    assert findings(ours, "--set", "nodes=2,machineType=box-4") == []
    write(
        ours / "values", {"box/mine.yaml": "pool: mine\nnodes: 2\n", "box/other.yaml": "{machineType: box-4, nodes: 2}"}
    )
    assert findings(ours) == [("pods-select-their-machines", "error", str(ours / "targets/box.yaml"))]


SITE_RULE = json.dumps(
    [{"id": "own-project", "meaning": "m", "source": "s", "key": "mine.project", "require": "mine.project != ''",
      "message": "is empty", "hint": "set it"}]
)  # fmt: skip
MUST_SET = {
    "mine/values.yaml": "mine:\n  # -- Project\n  project: ''\n",
    "mine/values.schema.json": '{"properties": {"mine": {"type": "object", "properties": {"project": '
    '{"type": "string"}}}}}',
    "mine/rules.yaml": SITE_RULE,
    "mine/podAnnotations.yaml": "example.com/project: {{ .Values.mine.project | quote }}\n",
}
IF_PROJECT = "{{- if .Values.mine.project }}\n- name: A\n  value: {{ nosuch 1 }}\n{{- end }}\n"


def with_site(folder: Path, changes: Mapping[str, str], values: Mapping[str, str]) -> Path:
    ours = library(folder, {**MUST_SET, **changes})
    write(ours / "values", values)
    return ours


@pytest.mark.helm
def test_a_value_that_each_site_must_set_is_one_hint(tmp_path: Path) -> None:
    """At the default, in the user's own file."""
    ours = with_site(tmp_path, {}, {})
    assert findings(ours) == [("chart-is-rendered", "unchecked", str(ours / "fragments/mine/values.yaml"))]


@pytest.mark.helm
def test_the_example_of_the_site_file_is_used(tmp_path: Path) -> None:
    site = {"site.box.example.yaml": "mine: {project: mine}\n"}
    assert findings(with_site(tmp_path / "sound", {}, site)) == []
    broken = with_site(tmp_path / "broken", {"mine/env.yaml": IF_PROJECT}, site)
    assert {(rule, path) for rule, _, path in findings(broken)} == {
        ("helm-template", str(broken / "fragments/mine/env.yaml"))
    }


@pytest.mark.helm
def test_a_chart_of_another_kind_has_the_targets_example(tmp_path: Path) -> None:
    site = {"site.box.example.yaml": "mine: {project: mine}\n"}
    ours = with_site(tmp_path, {}, site)
    assert findings(ours, "--workload", "jobset") == []
    (tmp_path / "values/site.box.example.yaml").unlink()
    ran = chartgen("lint", "box", "--path", ours, "--no-cache", "--workload", "jobset")
    assert "values/site.box.example.yaml" in ran.output


@pytest.mark.helm
def test_presets_of_the_librarys_folder_are_tried(tmp_path: Path) -> None:
    """Over chartgen's own preset of that name, with the example of the site file on top."""
    values = {"site.box.example.yaml": "mine: {project: mine}\n", "box/llama3-70b.yaml": "nodez: 4\n"}
    found = findings(with_site(tmp_path, {}, values))
    assert ("values-schema", "error", str(tmp_path / "values/box/llama3-70b.yaml")) in found
    assert "world-size" in {rule for rule, _, _ in found}, "an unknown key hides nothing: one machine is too few"
    (tmp_path / "values/box/llama3-70b.yaml").write_text("nodes: 4\n")
    assert "helm-template" not in {rule for rule, _, _ in findings(tmp_path)}


@pytest.mark.helm
def test_a_default_is_the_targets_own(tmp_path: Path) -> None:
    """Where the target and the fragment have the same key, at the target's."""
    ours = library(tmp_path, {**MUST_SET}, more="values:\n  mine: {project: ''}\n")
    assert [path for _, _, path in findings(ours)] == [str(ours / "targets/box.yaml")]
