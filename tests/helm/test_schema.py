"""Schemas merge from fragments, close, and tell every problem of a values file in one readable line."""

from __future__ import annotations

import cProfile
import json
from contextlib import suppress
from pathlib import Path

import pytest
from jsonschema import Draft7Validator
from mini_charts import CHART_YAML, Json

from chartgen.errors import ChartgenError
from chartgen.helm import manifests
from chartgen.helm.chart import Chart
from chartgen.helm.schema import check_patterns, closed, fits, merge_schemas, validate_schema
from chartgen.helm.values import coalesce, load_values

SCHEMA: dict[str, Json] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "required": ["launcher"],
    "properties": {
        "launcher": {"enum": ["megatron-lm", "nemo-1"]},
        "nodes": {"type": "integer", "minimum": 1},
        "gpusPerNode": {"type": ["integer", "null"], "minimum": 1, "maximum": 8},
        "batch": {
            "type": "object",
            "properties": {
                "global": {
                    "anyOf": [
                        {"type": "integer", "minimum": 1},
                        {"type": "string", "pattern": "^[1-9][0-9]*/gpu$", "title": 'a text such as "2/gpu"'},
                    ]
                }
            },
        },
        "network": {
            "type": "object",
            "properties": {"subnetworks": {"type": "array", "items": {"type": "string"}, "maxItems": 2}},
        },
        "storage": {
            "anyOf": [
                {"type": "string", "pattern": "^gs://", "title": "gs://bucket/path"},
                {"type": "string", "pattern": "^pvc://", "title": "pvc://claim/path"},
            ]
        },
        "image": {
            "type": "string",
            "pattern": "^$|@sha256:|:[a-z0-9]",
            "title": "Image with a tag or digest",
        },
        "quota": {
            "type": "object",
            "properties": {name: {} for name in ("nodes", "gpus", "limit", "pool", "rate")},
            "dependencies": {"limit": ["pool", "rate"]},
            "oneOf": [{"required": ["nodes"]}, {"required": ["gpus"]}],
        },
        "port": {"type": "string", "pattern": r"^\d+$", "title": "digits"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "prefixes": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "required": ["path"],
                        "properties": {"path": {"type": "string"}, "weight": {"type": "number", "exclusiveMinimum": 0}},
                    },
                ]
            },
        },
    },
}
CLOSED = closed(SCHEMA)


def told(text: str, folder: Path, schema: dict[str, Json] = CLOSED) -> list[str]:
    """Validate a values file as chartgen does, and give its lines without the folder."""
    path = folder / "values.yaml"
    path.write_text(text)
    values = load_values([path])
    problems = validate_schema(coalesce({"launcher": "nemo-1"}, values.data), schema, values.origin)
    return [str(problem).replace(f"{folder}/", "") for problem in problems]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("nodes: eight", '1:1: nodes must be a whole number of at least 1, not "eight"'),
        ("nodes: 0", "1:1: nodes must be a whole number of at least 1, not 0"),
        ("nodes: 1.5", "1:1: nodes must be a whole number of at least 1, not 1.5"),
        ("gpusPerNode: 9", "1:1: gpusPerNode must be a whole number from 1 to 8 or null, not 9"),
        ("nodes:\n  a: 1", "1:1: nodes must be a whole number of at least 1, not a map"),
        ("launcher: nemo1", '1:1: launcher must be "megatron-lm" or "nemo-1", not "nemo1"; did you mean nemo-1?'),
        ("launcher: null", "1:1: launcher is missing"),
        ("launcher: 7", '1:1: launcher must be "megatron-lm" or "nemo-1", not 7'),
        ("\nnodez: 1", '2:1: unknown key "nodez"; did you mean nodes?'),
        ("subnetworks[]: [a]", '1:1: unknown key "subnetworks[]"; did you mean network.subnetworks?'),
        ("network:\n  subnetworks[]: [a]", '2:3: unknown key "subnetworks[]" in network; did you mean subnetworks?'),
        ("network: {xyz: 1}", '1:11: unknown key "xyz" in network; known: subnetworks'),
        ("network: {subnetworks: [a, 1]}", "1:28: network.subnetworks[1] must be text, not 1; put it in quotes"),
        ("network: {subnetworks: [a, b, c]}", "1:11: network.subnetworks must have at most 2 items, not 3"),
        ("batch: {global: 8/gpus}", '1:9: batch.global is "8/gpus", but must be: a text such as "2/gpu"'),
        ("batch: {global: 0}", "1:9: batch.global must be a whole number of at least 1, not 0"),
        (
            "batch: {global: [1]}",
            '1:9: batch.global must be a whole number of at least 1 or a text such as "2/gpu", not a list',
        ),
        ("storage: s3://b", '1:1: storage is "s3://b", but must be: gs://bucket/path or pvc://claim/path'),
        ("image: trainer", '1:1: image is "trainer", but must be: Image with a tag or digest'),
        ("env: {A: 1}", "1:7: env.A must be text, not 1; put it in quotes"),
        ("prefixes: [{pth: x}]", "1:12: prefixes[0].path is missing"),
        ("prefixes: [{path: x, weight: 0}]", "1:22: prefixes[0].weight must be a number above 0, not 0"),
        ("quota: {nodes: 1, gpus: 8}", "1:1: quota has nodes and gpus; keep one of them"),
        ("quota: {nodes: 1, limit: 2, rate: 1}", "1:1: quota.limit needs pool"),
        ("quota: {}", "1:1: quota.nodes is missing"),
        ("prot: '1'", '1:1: unknown key "prot"; did you mean port?'),
        ("prefixes: [3]", "1:12: prefixes[0] must be text or a map, not 3"),
    ],
)
def test_problem_is_one_readable_line(text: str, line: str, tmp_path: Path) -> None:
    assert f"values.yaml:{line}" in told(text, tmp_path)


def test_each_key_that_another_needs_is_reported_once(tmp_path: Path) -> None:
    assert len(told("quota: {nodes: 1, limit: 2}", tmp_path)) == 2


def test_all_problems_come_at_once_sorted_by_place(tmp_path: Path) -> None:
    lines = told("nodes: 0\nstep: 1\nenv:\n  B: 2\n  A: 1\n", tmp_path)
    assert [line.split(": ")[0] for line in lines] == [f"values.yaml:{place}" for place in ("1:1", "2:1", "4:3", "5:3")]


def test_good_values_and_global_pass(tmp_path: Path) -> None:
    assert (
        told("nodes: 2.0\nbatch: {global: 2/gpu}\nglobal: {x: 1}\nprefixes: [a, {path: b}]\nimage: ''", tmp_path) == []
    )


@pytest.mark.helm
@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("port: '80'", True),
        ("port: |\n  80\n", False),
        ("port: '\u0661'", False),
        ("batch:\n  global: |\n    2/gpu\n", False),
        ("storage: |\n  gs://x\n", True),
        ("image: |\n  b:1\n", True),
    ],
)
def test_chartgen_and_helm_agree_on_patterns(text: str, fits: bool, tmp_path: Path) -> None:
    """Python's `$` matches before a final line end and its `\\d` other digits; RE2 does neither."""
    chart = Chart(
        "tiny", {"Chart.yaml": CHART_YAML, "values.yaml": "launcher: nemo-1", "values.schema.json": json.dumps(CLOSED)}
    )
    assert (told(text, tmp_path) == []) is fits
    values = load_values([tmp_path / "values.yaml"]).data
    if fits:
        manifests.render(chart, "release", "default", values)
    else:
        with pytest.raises(ChartgenError, match="does not match pattern"):
            manifests.render(chart, "release", "default", values)


def test_references_into_definitions_are_followed(tmp_path: Path) -> None:
    store = {"type": "object", "properties": {"from": {"type": "string"}, "readOnly": {"type": "boolean"}}}
    size = {"type": "integer", "minimum": 1}
    reference = {"$ref": "#/definitions/store"}
    either = {"anyOf": [{"$ref": "#/definitions/size"}, {"type": "boolean"}]}
    properties = {"launcher": {}, "storage": {"properties": {"data": reference}}, "size": either}
    schema = closed({"definitions": {"store": store, "size": size}, "properties": properties})
    assert told("storage: {data: {form: x}}\nreadonly: true\nsize: big", tmp_path, schema) == [
        'values.yaml:1:18: unknown key "form" in storage.data; did you mean from?',
        'values.yaml:2:1: unknown key "readonly"; did you mean storage.data.readOnly?',
        'values.yaml:3:1: size must be a whole number of at least 1 or true or false, not "big"',
    ]


def test_merge_unites_maps_and_lists_in_order() -> None:
    first = {
        "type": "object",
        "required": ["a", "b"],
        "properties": {"a": {"type": "string"}, "n": {"properties": {"x": {}}}},
    }
    second = {"type": "object", "required": ["b", "c"], "properties": {"n": {"properties": {"y": {"minimum": 1}}}}}
    merged = merge_schemas([("first", first), ("second", second)])
    assert merged == {
        "type": "object",
        "required": ["a", "b", "c"],
        "properties": {"a": {"type": "string"}, "n": {"properties": {"x": {}, "y": {"minimum": 1}}}},
    }
    assert list(merged["properties"]["n"]["properties"]) == ["x", "y"]
    assert first["required"] == ["a", "b"]


def test_merge_names_both_sources_of_every_conflict() -> None:
    parts: list[tuple[str, dict[str, Json]]] = [
        ("fragments/a/values.schema.json", {"properties": {"n": {"minimum": 1, "type": "integer"}}}),
        ("fragments/b/values.schema.json", {"properties": {"n": {"minimum": 2}}}),
        ("fragments/c/values.schema.json", {"properties": {"n": {"type": ["integer", "null"], "minimum": True}}}),
    ]
    with pytest.raises(ChartgenError) as caught:
        merge_schemas(parts)
    hint = "fragments/a/values.schema.json; make them equal"
    assert str(caught.value).splitlines() == [
        f"fragments/b/values.schema.json: properties.n.minimum is 2 here but 1 in {hint}",
        f"fragments/c/values.schema.json: properties.n.minimum is True here but 1 in {hint}",
        f"fragments/c/values.schema.json: properties.n.type is ['integer', 'null'] here but 'integer' in {hint}",
    ]


def test_closed_reaches_every_object_but_no_condition() -> None:
    schema = closed(
        {
            "properties": {
                "open": {"type": "object", "additionalProperties": {"properties": {"x": {}}}},
                "free": {"properties": {}, "additionalProperties": True},
                "list": {"items": {"properties": {"x": {}}}},
                "either": {"anyOf": [{"type": "object", "properties": {"x": {}}}, {"properties": {"y": {"const": 1}}}]},
                "properties": {"type": "string"},
            },
            "definitions": {"d": {"properties": {"x": {}}}},
            "if": {"properties": {"a": {"const": 1}}},
            "then": {"properties": {"b": {"minimum": 1}}},
            "allOf": [{"properties": {"c": {}}}],
        }
    )
    properties = schema["properties"]
    assert schema["additionalProperties"] is False
    assert properties["global"] == {"type": "object"}
    assert properties["open"]["additionalProperties"]["additionalProperties"] is False
    assert properties["free"]["additionalProperties"] is True
    assert properties["list"]["items"]["additionalProperties"] is False
    assert [branch.get("additionalProperties") for branch in properties["either"]["anyOf"]] == [False, None]
    assert properties["properties"] == {"type": "string"}
    assert schema["definitions"]["d"]["additionalProperties"] is False
    assert not any("additionalProperties" in part for part in (schema["if"], schema["then"], schema["allOf"][0]))


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("^(?!latest)", "look-around"),
        ("(?<=a)b", "look-around"),
        (r"(a)\1", "back-reference"),
        ("a++", "possessive"),
        (r"a\Z", "escape"),
        (r"\pL", "escape"),
        ("[[:alpha:]]", "POSIX class"),
        ("(?i)a", "inline flag"),
        ("a{1001}", "1000 repeats"),
        ("(a", "missing )"),
    ],
)
def test_pattern_that_go_and_python_read_differently_is_named(pattern: str, reason: str) -> None:
    (finding, *_) = check_patterns({"properties": {"a": {"anyOf": [{"pattern": pattern}]}}})
    assert finding.startswith("#/properties/a/anyOf/0/pattern: ")
    assert reason in finding


def test_plain_patterns_are_portable() -> None:
    assert check_patterns(SCHEMA) == []
    assert (
        check_patterns({"pattern": r"^(?:[a-z0-9]+(?:[._-][a-z0-9]+)*/){0,5}\d+\.\w$", "properties": {"pattern": {}}})
        == []
    )


def test_validation_visits_each_value_once() -> None:
    """A schema of twice the size takes twice the calls, and not the square of them."""
    leaf = {"type": "integer", "minimum": 1, "description": "x"}
    part = {"type": "object", "properties": {f"q{j}": leaf for j in range(8)}}
    counts = []
    for size in (15, 30):
        schema = closed({"type": "object", "properties": {f"p{i}": part for i in range(size)}})
        data = {f"p{i}": {f"q{j}": 3 for j in range(8)} for i in range(size)}
        assert validate_schema(data, schema, lambda _: (None, 0, 0)) == []
        profile = cProfile.Profile()
        profile.runcall(validate_schema, data, schema, lambda _: (None, 0, 0))
        counts.append(sum(entry.callcount for entry in profile.getstats()))
    assert counts[0] < counts[1] < 2.2 * counts[0]


def test_a_hint_follows_no_reference_that_is_none() -> None:
    """What was probably meant is looked for in all of a schema, in parts too that the validator had no use for."""
    broken = {"properties": {"b": {"$ref": 7}}, "additionalProperties": False}
    with pytest.raises(ChartgenError, match="not a sound JSON Schema"):
        validate_schema({"a": 1}, broken, lambda _: (None, 0, 0))
    listed = {"allOf": [{}], "properties": {"b": {"$ref": "#/allOf/0"}}, "additionalProperties": False}
    assert [each.hint for each in validate_schema({"a": 1}, listed, lambda _: (None, 0, 0))] == ["known: b"]


_DATA: tuple[Json, ...] = (
    None,
    True,
    False,
    0,
    1,
    1.0,
    2.5,
    "",
    "a",
    "1",
    [],
    [1],
    [1, True],
    ["a", "a"],
    {"a": 1},
    {},
)
_RULES: tuple[Json, ...] = (
    *({"type": each} for each in ("null", "boolean", "integer", "number", "string", "array", ["object", "null"])),
    *({"enum": [1, "a", False]}, {"const": 0}, {"const": True}, {"uniqueItems": True}, {"items": {"type": "number"}}),
    *({"minimum": 1}, {"maximum": 1}, {"exclusiveMinimum": 0}, {"minLength": 1}, {"maxLength": 0}, {"pattern": "^a"}),
    *({"minItems": 1}, {"maxItems": 1}, {"maxProperties": 0}, {"required": ["a"]}, {"propertyNames": {"minLength": 2}}),
    *({"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}, "additionalProperties": False}, True, False),
    *({"dependencies": {"a": ["b"]}}, {"$ref": "#/definitions/one"}),
)


@pytest.mark.parametrize("rule", _RULES, ids=str)
def test_the_fast_judgement_is_that_of_jsonschema(rule: Json) -> None:
    """What it does not know, it leaves to the library: it answers no value with another verdict."""
    one = {"one": {"type": "integer", "title": "1"}}
    other = {"type": "object"}
    forms = [rule, {"not": rule}, {"if": rule, "then": other}, {"if": rule, "else": other}]
    forms += [{key: [rule, other]} for key in ("anyOf", "oneOf", "allOf")]
    judged = 0
    for schema in ({"definitions": one, "allOf": [form]} for form in forms):
        for data in _DATA:
            with suppress(LookupError):
                assert fits(data, schema, schema) == Draft7Validator(schema).is_valid(data), (schema, data)
                judged += 1
    assert judged > 0.8 * len(forms) * len(_DATA)
    with pytest.raises(LookupError):
        fits({}, {"not": {"additionalProperties": False, "patternProperties": {"a": {}}}}, {})
