"""Values files layer as in Helm, remember where each value came from, and fail with one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mini_charts import Json, echo

from chartgen.errors import ChartgenError
from chartgen.helm import yaml
from chartgen.helm.program import find_helm
from chartgen.helm.values import coalesce, load_values, merge_values, to_json

DEFAULTS = """\
scalar: 1
text: "007"
map: {a: 1, b: {c: 2, d: null}, gone: {x: 1}}
list: [1, 2, {a: 1}]
absent: null
null-map: {only: null}
deep: {one: {two: {three: 3, four: null}}}
"""

# Each: files to lay over the defaults, lowest first.
LAYERS = [
    ["scalar: 2"],
    ["scalar: null"],
    ["map: null"],
    ["map: {a: null}"],
    ["map: {b: {c: null, d: null}}"],
    ["map: {gone: null, new: null}"],
    ["map: 7"],
    ["scalar: {now: a map}"],
    ["list: [3]", "list: [4, {b: 2}]"],
    ["list: null", "list: []"],
    ["map: null", "map: {a: 2}"],
    ["map: {a: 2}", "map: null"],
    ["{absent: null, new: null}"],
    ["absent: 1"],
    ["new: {deep: {y: null, x: null}}"],
    ["null-map: {only: 1}", "null-map: {other: null}"],
    ["null-map: null"],
    ["deep: {one: {two: {three: null}}}"],
    ["deep: {one: {two: null}}", "deep: {one: {two: {four: null, five: 5}}}"],
    ["deep: {one: {two: [1]}}"],
    ["base: &b {x: 1}\nuse: {<<: *b, y: 2}\nagain: *b", "use: {x: 3}"],
    ["flag: yes\noff: NO\noctal: 012\nexp: 1e3\ndate: 2026-01-01\ntime: 1:30\nversion: 25.10\ny: 1"],
    ["big: 1000000\nhuge: 146484375\nsmall: 9.0e-05\nunder: 1_000\nhex: 0x1F"],
    ["text: |\n  line\n  $(x) 'y' \"z\"\nother: >-\n  folded\n  text"],
    ["# nothing"],
    ["{}"],
]


def write(folder: Path, *texts: str) -> list[Path]:
    """Write values files and give their paths."""
    paths = [folder / f"{index}.yaml" for index in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    return paths


def plain(text: str) -> Json:
    return yaml.load(text, "defaults").data


def told(values: Json) -> Json:
    """Return values for comparison: Helm 3 keeps nulls where Helm 4 removes them, and templates cannot tell."""
    if find_helm().version[0] >= 4 or not isinstance(values, dict):
        return values
    return {key: told(value) for key, value in values.items() if value is not None}


@pytest.mark.helm
@pytest.mark.parametrize("layers", LAYERS, ids=" | ".join)
def test_templates_see_what_coalesce_gives(layers: list[str], tmp_path: Path) -> None:
    paths = write(tmp_path, *layers)
    values = load_values(paths)
    by_files = echo(tmp_path / "tiny", DEFAULTS, [word for path in paths for word in ("--values", str(path))])
    by_stdin = echo(tmp_path / "tiny", DEFAULTS, ["--values", "-"], to_json(values.data))
    assert told(coalesce(plain(DEFAULTS), values.data)) == told(by_files) == told(by_stdin)


LEAVES = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab:#'\"\\ \u2028\u0085\ufeff\U0001f600\n", max_size=4)
)
TREES = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner), max_leaves=6
    ),
    max_size=3,
)


@pytest.mark.helm
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(defaults=TREES, low=TREES, high=TREES)
def test_any_layers_are_helms(defaults: Json, low: Json, high: Json, tmp_path: Path) -> None:
    values = merge_values(low, high)
    (tmp_path / "low.yaml").write_text(to_json(low), "utf-8")
    arguments = ["--values", str(tmp_path / "low.yaml"), "--values", "-"]
    seen = echo(tmp_path / "tiny", to_json(defaults), arguments, to_json(high))
    again = echo(tmp_path / "tiny", to_json(defaults), ["--values", "-"], to_json(values))
    assert told(coalesce(defaults, values)) == told(seen) == told(again)


def test_origin_survives_layering(tmp_path: Path) -> None:
    low, high = write(tmp_path, "nodes: 1\nmap:\n  a: 1\n  b: 2\nlist:\n- x: 1\n", "map:\n  b: 3\n")
    values = load_values([low, high], set_values=["map.c=4,list[0].y=2"], set_json=['{"deep": {"er": 1}}'])
    assert values.data == {"nodes": 1, "map": {"a": 1, "b": 3, "c": 4}, "list": [{"x": 1, "y": 2}], "deep": {"er": 1}}
    flag = "--set map.c=4,list[0].y=2"
    assert values.origin(("nodes",)) == (low, 1, 1)
    assert values.origin(("map", "a")) == (low, 3, 3)
    assert values.origin(("map", "b")) == (high, 2, 3)
    assert values.origin(("map", "c")) == (flag, 0, 0)
    assert values.origin(("list", 0, "x")) == (low, 6, 3)
    assert values.origin(("list", 0, "y")) == (flag, 0, 0)
    assert values.origin(("deep", "er")) == ('--set-json {"deep": {"er": 1}}', 0, 0)


def test_origin_of_a_missing_key_is_its_parents(tmp_path: Path) -> None:
    (path,) = write(tmp_path, "a: 1\nmap:\n  b: 2\n")
    assert load_values([path]).origin(("map", "missing", "deep")) == (path, 2, 1)
    assert load_values().origin(("map",)) == (None, 0, 0)


def test_nulls_are_kept_for_helm(tmp_path: Path) -> None:
    paths = write(tmp_path, "a: {b: 1, c: null}", "a: {b: null}")
    assert load_values(paths, set_values=["d=null"]).data == {"a": {"b": None, "c": None}, "d": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", ":1:1: a values file must be a map of keys, not a list"),
        ("just text", ":1:1: a values file must be a map of keys, not text"),
        ("a: 1\nb: {c: 1\n", "0.yaml:3:1: "),
        ("a: 1\na: 2\n", ":2:1: duplicate key 'a'; keep one of the two"),
        ("a: 1\n---\nb: 2\n", "more than one YAML document"),
        # Helm reads {"a": 1, "c": 2}: it loses a letter of each later key
        ("\ufeff\ufeffa: 1\nbc: 2\n", "begins with two byte order marks; save it as UTF-8 without any"),
    ],
)
def test_bad_content_gets_one_line_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ChartgenError) as caught:
        load_values(write(tmp_path, text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_unreadable_files_are_named_at_once(tmp_path: Path) -> None:
    (binary,) = write(tmp_path, "")
    binary.write_bytes(b"a: \xff\n")
    with pytest.raises(ChartgenError) as caught:
        load_values([tmp_path / "missing.yaml", tmp_path, binary])
    assert str(caught.value).splitlines() == [
        f"{tmp_path}: is a folder, not a file",
        f"{binary}: is not UTF-8 text (byte 3); save it as UTF-8",
        f"{tmp_path / 'missing.yaml'}: no such file; check the path",
    ]


def test_path_through_a_file_gets_one_line(tmp_path: Path) -> None:
    (path,) = write(tmp_path, "a: 1")
    with pytest.raises(ChartgenError, match="cannot be read: Not a directory"):
        load_values([path / "child.yaml"])


def test_not_a_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ChartgenError, match=r"\.inf or \.nan, which Helm refuses"):
        to_json(load_values(write(tmp_path, "a: .inf")).data)


def test_json_is_read_back_unchanged() -> None:
    data: dict[str, Json] = {"a": 'q"\\\n\t\x85\u2028\ufeff\U0001f600', "b": [1, None, True, 2.5]}
    assert json.loads(to_json(data)) == data
    assert yaml.load(to_json(data), "stdin").data == data
