"""`pod.yaml`, `container.yaml` and `object.yaml`: fields, blocks, variables, places, and the earlier form's files."""

from __future__ import annotations

from pathlib import Path

import pytest
from userlib import chartgen, composed, library

from chartgen.composer.fragment import load_fragment
from chartgen.composer.pod_files import slot_texts
from chartgen.errors import ChartgenError

POD = """\
{{- $rack := .Values.rack }}
metadata:
  # Where it is.
  labels:
    rack: {{ $rack }}
spec:
  {{- $host := .Values.host }}
  {{- if $host }}
  hostNetwork: true
  {{- else }}
  dnsPolicy: Default
  {{- end }}
  # The disks.
  volumes:
  - name: fast
    emptyDir: {}
  {{- range .Values.disks }}
  - name: {{ . }}
  {{- end }}
  tolerations:
      - key: {{ $rack }}
        {{- toYaml $host | nindent <%= indent + 8 %> }}
"""


def test_each_field_has_its_lines_and_the_variables_that_it_uses() -> None:
    texts = {slot: text.lstrip("\n") for slot, text in slot_texts(Path("pod.yaml"), POD).items()}
    rack, host = "{{- $rack := .Values.rack }}\n", "  {{- $host := .Values.host }}\n"
    assert texts == {
        "podLabels.yaml": f"{rack}    rack: {{{{ $rack }}}}\n",
        "podSpec.yaml": host + "".join(POD.splitlines(keepends=True)[7:12]),
        "volumes.yaml": "".join(POD.splitlines(keepends=True)[14:19]),
        "tolerations.yaml": rack + host + "".join(POD.splitlines(keepends=True)[20:]),
    }


def test_a_variable_is_unknown_above_its_assignment() -> None:
    text = "env:\n  - name: {{ $a }}\n{{- $a := 1 }}\n{{- $b := $a }}\nvolumeMounts:\n  - name: {{ $b }}\n"
    texts = slot_texts(Path("container.yaml"), text)
    assert texts["env.yaml"].lstrip("\n") == "  - name: {{ $a }}\n"
    assert texts["volumeMounts.yaml"].lstrip("\n") == "{{- $a := 1 }}\n{{- $b := $a }}\n  - name: {{ $b }}\n"


def test_items_keep_their_lines_and_lose_their_columns(tmp_path: Path) -> None:
    found = load_fragment(library(tmp_path, {"mine/pod.yaml": POD}) / "fragments" / "mine").slots
    assert [(each.column, each.segments[0].line) for each in (found["volumes.yaml"], found["tolerations.yaml"])] == [
        (2, 15),
        (6, 19),
    ]
    assert found["volumes.yaml"].segments[0].text == "- name: fast\n  emptyDir: {}\n"
    text = "".join(composed(tmp_path).files.values())
    assert "- key: {{ $rack }}\n  {{- toYaml $host | nindent 2 }}" in text


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("{{- if .a }}\nspec:\n  hostIPC: true\n{{- end }}\n", ["2:1: spec is inside a block"]),
        ("spec:\n  {{- if .a }}\n  volumes:\n    - name: b\n  {{- end }}\n", ["3:1: spec.volumes is inside a block"]),
        ("spec: {hostIPC: true}\n", ["1:1: spec has its content beside the key"]),
        ("spec:\n  volumes: []\n", ["2:1: spec.volumes has its content beside the key"]),
        (
            "metadata:\n  lables:\n    a: b\nfoo: 1\n",
            ["2:1: metadata.lables is", "4:1: foo is not a field"],
        ),
        ("spec:\n  volumes:\n    - name: a\n  volumes:\n    - name: b\n", ["4:1: spec.volumes is already in line 2"]),
        ("- name: a\n", ["1:1: belongs to no field"]),
        ("spec:\n  volumes:\n    - nam: a\n", ["3:7: the item has no 'name'"]),
        ("spec:\n  volumes:\n    a: b\n", ["3:5: spec.volumes must be a list of items, not a map"]),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, problems: list[str], tmp_path: Path) -> None:
    folder = library(tmp_path, {"mine/pod.yaml": text}) / "fragments" / "mine"
    with pytest.raises(ChartgenError) as caught:
        load_fragment(folder)
    told = [str(problem).removeprefix(f"{folder}/pod.yaml:") for problem in caught.value.problems]
    assert [line[: len(start)] for line, start in zip(told, problems, strict=True)] == problems


def test_a_field_and_a_file_of_the_earlier_form_exclude_each_other(tmp_path: Path) -> None:
    env = "- name: A\n  value: b\n"
    both = library(tmp_path, {"mine/container.yaml": f"env:\n{env}", "mine/env.yaml": env})
    ran = chartgen("build", "box", "--path", both, "-d", tmp_path / "charts")
    assert (ran.exit_code, ran.stderr.count("error: ")) == (1, 1)
    assert "mine/env.yaml: container.yaml fills it too; keep one of the two" in ran.stderr
