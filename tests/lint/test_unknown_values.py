"""Values that templates read and the chart cannot have: which paths of keys lint follows, and what stays unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chartgen.helm.chart import Chart
from chartgen.linter.unknown_values import excluded_part, unknown_values

VALUES = "model:\n  tokenizer: gpt2\n  layers: 12\npools:\n- {name: a}\n"
MODEL = {"type": "object", "additionalProperties": False, "properties": {"tokenizer": {}, "layers": {}}}
CLOSED = {"additionalProperties": False, "properties": {"model": MODEL, "pools": {"type": "array"}}}
HEAD = "apiVersion: v2\nname: theirs\nversion: 0.1.0\n"


def found(template: str, *, schema: Any = CLOSED, **more: str) -> list[tuple[str, int, str]]:
    """Return path, line and severity of each finding in a chart with a template."""
    files = {"Chart.yaml": HEAD, "values.yaml": VALUES, "templates/a.yaml": template}
    files |= {"values.schema.json": json.dumps(schema)} if schema else {}
    files |= {name.replace("__", "/") + ".tpl": text for name, text in more.items()}
    findings = list(unknown_values(Chart("theirs", files)))
    assert {each.rule for each in findings} <= {"values-are-known"}
    return [(str(each.problem.path), each.problem.line, each.severity) for each in findings]


# Each reads `model.tokenizer`; with `tokenzer` in its place, a value that the schema excludes.
READS = {
    "path": "{{ .Values.model.tokenizer | quote }}",
    "root": "{{ range .Values.pools }}{{ $.Values.model.tokenizer }}{{ end }}",
    "parentheses": "{{ (.Values.model).tokenizer }}",
    "index": '{{ index .Values "model" "tokenizer" }}',
    "get": '{{ get .Values.model "tokenizer" }}',
    "else": "{{ with .Values.pools }}{{ toYaml . }}{{ else }}{{ .Values.model.tokenizer }}{{ end }}",
    "argument": '{{ printf "%s" (upper .Values.model.tokenizer) }}',
    "definition": '{{ define "x" }}{{ .Values.model.tokenizer }}{{ end }}{{ include "x" . }}',
}


@pytest.mark.parametrize("template", READS.values(), ids=READS)
def test_a_value_that_the_schema_excludes_is_found_on_every_way_to_it(template: str) -> None:
    assert found(template) == []
    wrong = "\n" + template.replace("tokenizer", "tokenzer")
    assert found(wrong) == [("templates/a.yaml", 2, "error")]


@pytest.mark.parametrize(
    "template",
    [
        "{{ if .Values.model.dropout }}{{ .Values.model.dropout }}{{ end }}",
        "{{ .Values.model.dropout | default 1 }}",
        "{{ (.Values.model).dropout | ternary 1 2 }}",
    ],
)
def test_a_guard_on_a_value_that_the_schema_excludes_is_a_warning(template: str) -> None:
    assert found(template) == [("templates/a.yaml", 1, "warning")]
    assert found(template, schema=None) == []


# Each reads a value that is unknown here, of any schema.
UNKNOWN = {
    "with": "{{ with .Values.model }}{{ .nam | quote }}{{ end }}",
    "variable": "{{ $model := .Values.model }}{{ $model.nam }}",
    "range": "{{ range .Values.pools }}{{ .nam }}{{ end }}",
    "assigned": "{{ $x := .Values.model }}{{ $x = .Release }}{{ $x.nam }}",
    "set": '{{ $_ := set .Values.model "nam" 1 }}{{ .Values.model.nam }}',
    "set of an unknown map": '{{ range .Values.pools }}{{ $_ := set . "nam" 1 }}{{ end }}{{ .Values.model.nam }}',
    "merged": '{{ $_ := mergeOverwrite .Values.model (dict "nam" 1) }}{{ .Values.model.nam }}',
    "merged elsewhere": "{{ $_ := merge (first .Values.pools) .Release }}{{ .Values.model.nam }}",
    "two contexts": '{{ define "x" }}{{ .Values.nam }}{{ end }}{{ include "x" . }}{{ include "x" .Release }}',
    "no call": '{{ define "x" }}{{ .Values.nam }}{{ end }}',
    "library": '{{ include "common.defaults" . }}{{ .Values.nam }}',
    "refusal": '{{ if .Values.nam }}{{ fail "nam was removed" }}{{ end }}',
    "global": "{{ .Values.global.nam }}",
    "method": "{{ .Values.AsMap }}",
    "comment": "{{/* .Values.nam */}}",
    "text": '{{ tpl "{{ .Values.nam }}" . }}',
    "condition of two": "{{ $x := ternary .Values.model .Release true }}{{ $x.nam }}",
}


@pytest.mark.parametrize("template", UNKNOWN.values(), ids=UNKNOWN)
def test_a_value_that_may_be_anything_is_not_reported(template: str) -> None:
    assert found(template) == []


def test_a_definition_that_a_subchart_calls_may_get_other_values() -> None:
    helper = '{{ define "x" }}{{ .Values.nam }}{{ end }}{{ include "x" . }}'
    assert found(helper)
    assert found(helper, charts__sub__templates__a='{{ include "x" . }}') == []
    assert found("{{ .Values.sub.nam }}", charts__sub__templates__a="") == []


def test_without_a_schema_only_a_misspelled_value_is_reported() -> None:
    for wrong in ("tokenzer", "Tokenizer", "tokeinzer", "tokenizers"):
        template = f"{{{{ .Values.model.{wrong} | quote }}}}"
        assert found(template, schema=None) == [("templates/a.yaml", 1, "warning")], wrong
        assert found(f"{{{{ if .Values.model.{wrong} }}}}{{{{ end }}}}{template}", schema=None) == []
    for other in ("dropout", "layers2", "tokenizer.x"):
        assert found(f"{{{{ .Values.model.{other} }}}}", schema=None) == []


def test_a_value_that_a_comment_of_the_defaults_names_is_no_misspelling() -> None:
    chart = {"Chart.yaml": HEAD, "templates/a.yaml": "{{ .Values.image.tags }}", "values.yaml": "image: {tagss: 1}\n"}
    assert len(list(unknown_values(Chart("theirs", chart)))) == 1
    chart["values.yaml"] += "# tags: [one]\n"
    assert list(unknown_values(Chart("theirs", chart))) == []


EXCLUDING = {
    "reference": {"$ref": "#/definitions/a~1b", "definitions": {"a/b": MODEL}},
    "scalar": {"type": ["string", "null"]},
    "false": {"properties": {"tokenzer": False}},
    "additional": {"additionalProperties": False, "patternProperties": {"^x": {}}},
}
OPEN = {
    "open": {"properties": {}},
    "pattern": {"additionalProperties": False, "patternProperties": {"^tok": {}}},
    "branches": {"allOf": [{}, MODEL], "anyOf": [MODEL, {"type": "string"}]},
    "one branch": {"oneOf": [MODEL, {"type": "object"}]},
    "reference elsewhere": {"$ref": "https://example.com/model.json"},
    "reference to nothing": {"$ref": "#/definitions/none"},
    "itself": {"$ref": "#"},
    "pattern of Go": {"additionalProperties": False, "patternProperties": {r"\pN[": {}}},
    "siblings of a reference": {
        "$ref": "#/definitions/any",
        "definitions": {"any": True},
        "additionalProperties": False,
    },
    "broken": {"properties": [], "anyOf": 1, "additionalProperties": "false", "type": ["object", 1]},
}


@pytest.mark.parametrize("schema", EXCLUDING.values(), ids=EXCLUDING)
def test_schemas_that_exclude_a_key(schema: Any) -> None:
    assert excluded_part(schema, ["tokenzer"]) == ("tokenzer",)
    assert excluded_part({"properties": {"model": schema}, **schema}, ["tokenzer", "x"]) == ("tokenzer",)


@pytest.mark.parametrize("schema", OPEN.values(), ids=OPEN)
def test_schemas_that_exclude_nothing(schema: Any) -> None:
    assert not excluded_part(schema, ["tokenzer"])


def test_a_schema_that_refers_to_itself_many_times_ends() -> None:
    twice = [{"$ref": "#"}, {"$ref": "#"}, {"$ref": "#/definitions/a"}]
    schema = {"anyOf": twice, "allOf": twice, "definitions": {"a": {"anyOf": twice, "oneOf": twice}}}
    assert not excluded_part(schema, ["a"] * 100)
