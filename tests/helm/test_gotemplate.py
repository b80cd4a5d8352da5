"""Go templates seen from outside: what the mask leaves for YAML, and which blocks are open where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chartgen.helm import gotemplate
from chartgen.helm.yaml import load


def masked(text: str) -> object:
    return load(gotemplate.mask(text), "slot.yaml", allow_duplicates=True).data


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("{{- if .Values.a }}\na: 1\n{{- end }}\n", {"a": 1}),
        ("{{/* one\ntwo: three\n*/}}\na: 1\n", {"a": 1}),
        ("{{- /* }} */ -}}\na: 1\n", {"a": 1}),
        ('a: "{{ .Values.a }}"\n', {"a": "_go1_"}),
        ("a: {{ .Values.a | quote }}\n{{ .Values.key }}: 2\n", {"a": "_go1_", "_go2_": 2}),
        ('a: {{ printf "}}" }}\n', {"a": "_go1_"}),
        ("a: {{ printf `}}` }}\n", {"a": "_go1_"}),
        ("a: <%= target.name %>-x\n", {"a": "_go1_-x"}),
        ("<% if true %>\na: 1\n<% endif %>\n", {"a": 1}),
        ('a: {{ if .Values.a }}"x"{{ else }}"y"{{ end }}\n', {"a": "x"}),
        ("{{- $x := .Values.a }}\na: {{ $x }}\n", {"a": "_go2_"}),
        ("a:\n  {{- toYaml .Values.a | nindent 2 }}\n", {"a": None}),
        ("a: |\n  b {{ .Values.b }}\n  {{- if .Values.c }}\n  c\n  {{- end }}\n", {"a": "b _go1_\n\nc\n"}),
        ("a: {{ endpoint }}\nb: {{ ifElse }}\n", {"a": "_go1_", "b": "_go2_"}),
    ],
)
def test_mask_leaves_yaml(text: str, data: object) -> None:
    assert masked(text) == data


def test_placeholders_are_told_from_words_that_look_like_them() -> None:
    assert gotemplate.is_placeholder("data-_go12_")
    assert not gotemplate.is_placeholder("mongo2")
    assert not gotemplate.is_placeholder(12)


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (
            "{{ if .a }}\n",
            ["x:1:1: {{ if }} is not closed; close it in this file: each slot file is a whole of its own"],
        ),
        ("a\n  {{ end }}\n", ["x:2:3: {{ end }} closes nothing; remove it"]),
        ("a: {{ else }}\n", ["x:1:4: {{ else }} outside of a block; remove it"]),
        ("a\nb: {{ .a\nc\n", ["x:2:4: '{{' without '}}'; close the action"]),
        (
            "{{ range .a }}{{ end }}{{ end }}\n{{- with .b }}\n",
            [
                "x:1:24: {{ end }} closes nothing; remove it",
                "x:2:1: {{ with }} is not closed; close it in this file: each slot file is a whole of its own",
            ],
        ),
        ("{{ if .a }}{{ else if .b }}{{ else }}{{ end }}\n", []),
        ('{{ define "a" }}{{ block "b" . }}{{ end }}{{ end }}\n', []),
        ("${#array[@]} }} and {a: {b: c}}\n", []),
    ],
)
def test_blocks_open_and_close_inside_a_text(text: str, problems: list[str]) -> None:
    assert [str(problem) for problem in gotemplate.check_blocks(text, "x")] == problems


def test_depth_of_each_line() -> None:
    text = "a\n{{ if .a }}\nb\n{{ range .b }}\nc\n{{ end }}{{ end }}\nd\n"
    assert gotemplate.depths(text) == [0, 0, 1, 1, 2, 2, 0, 0]


@pytest.mark.parametrize(
    ("action", "last"),
    [
        ("{{- toYaml .Values.a -}}", "toYaml .Values.a"),
        ('{{ toYaml .Values.a | replace "|" "x" | nindent 4 }}', "nindent 4"),
        ("{{ include `a | b` (dict `a` (toYaml . | quote)) }}", 'include "" '),
        ("{{- with toYaml .Values.a }}", ""),
        ("{{ $a := toYaml .Values.a }}", ""),
        ("{{/* toYaml */}}", ""),
    ],
)
def test_last_command_of_a_pipeline(action: str, last: str) -> None:
    (found,) = gotemplate.actions(action)
    assert gotemplate.last_stage(found) == last.strip()


PLAIN = st.text(st.characters(codec="utf-8", exclude_characters="{}<%\0"), max_size=12)
PRINTED = st.sampled_from(
    [
        "{{ .Values.a }}",
        '{{ "}}" | quote }}',
        "{{- `{{` }}",
        "{{/* {{ if }} */}}",
        "{{ $x := 1 }}",
        "<%= a %>",
        "<%# {{ %>",
    ]
)
SPACE = st.sampled_from(["", "\n", "\n  ", " "])


def block(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    openers = st.sampled_from(["{{ if .a }}", "{{- range .b }}", "{{ with .c -}}", '{{ define "d" }}'])
    middle = st.sampled_from(["", "{{ else }}", "{{- else if .b }}"])
    return st.builds(lambda o, a, m, b: f"{o}{a}{m}{b}{{{{- end }}}}", openers, inside, middle, inside)


def sequence(piece: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.tuples(SPACE, piece), max_size=5).map(lambda pairs: "".join(a + b for a, b in pairs))


BALANCED = st.recursive(sequence(st.one_of(PLAIN, PRINTED)), lambda inside: sequence(block(inside)), max_leaves=8)


@given(BALANCED)
def test_balanced_text_passes_and_keeps_its_lines(text: str) -> None:
    assert gotemplate.check_blocks(text, "x") == []
    assert gotemplate.mask(text).count("\n") == text.count("\n")
    assert gotemplate.depths(text + "\n")[-1] == 0
    assert "\0" not in gotemplate.mask(text)


@given(st.text(st.sampled_from("{}<%=->`\"'/*| \nifend")))
def test_any_text_keeps_its_lines(text: str) -> None:
    assert gotemplate.mask(text).count("\n") == text.count("\n")


@given(BALANCED)
def test_one_more_end_is_found(text: str) -> None:
    assert len(gotemplate.check_blocks(text + "{{ end }}", "x")) == 1
    assert len(gotemplate.check_blocks(text + "{{ if .a }}", "x")) == 1
