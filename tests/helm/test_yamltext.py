"""YAML text to data, as Helm reads it (tests/helm/test_values.py asks Helm itself), with the place of every key."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chartgen.errors import ChartgenError
from chartgen.helm.yaml import load, load_file, read_text, require_map
from chartgen.helm.yaml_nodes import resolve_scalar


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("Null", None), ("nULL", "nULL"),
        ("yes", True), ("Y", True), ("on", True), ("true", True), ("no", False), ("n", False), ("Off", False),
        ("tRUE", "tRUE"),
        ("0", 0), ("-0", 0), ("7", 7), ("+7", 7), ("-7", -7), ("1_000", 1000), ("012", 10), ("0o12", 10), ("0x1F", 31),
        ("0b101", 5), ("-0x1f", -31), ("08", 8.0), ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("1.5", 1.5), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("9.0e-05", 9.0e-05), ("+1.5E+2", 150.0), ("1e", "1e"),
        (".inf", math.inf), ("-.Inf", -math.inf), ("+.INF", math.inf), ("inf", "inf"), ("nan", "nan"),
        ("2024-01-31", "2024-01-31"), ("12:30:45", "12:30:45"), ("1.2.3", "1.2.3"), ("v1", "v1"),
        ("-", "-"), (".", "."),
        ("0x", "0x"), ("1-2", "1-2"), ("_1", "_1"), ("1Gi", "1Gi"), ("=", "="),
    ],
)  # fmt: skip
def test_unquoted_scalar(text: str, value: object) -> None:
    assert resolve_scalar(text) == value
    assert type(resolve_scalar(text)) is type(value)


def test_not_a_number() -> None:
    found = resolve_scalar(".nan")
    assert isinstance(found, float)
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", None),
        ("# nothing\n", None),
        ("a: 'yes'\nb: \"012\"\nc: !!str 12\nd: !!int 12\n", {"a": "yes", "b": "012", "c": "12", "d": 12}),
        ("yes: a\n012: b\nnull: c\n", {"true": "a", "012": "b", "null": "c"}),
        ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", {"a": "x\ny\n", "b": "x y"}),
        ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}),
        ("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
        ("a: &x {b: 1}\nd: {<<: [*x, {b: 2, c: 2}]}\n", {"a": {"b": 1}, "d": {"b": 1, "c": 2}}),
        ("a: &x [*x]\n", {"a": [None]}),
        ("a: &x 5\nb: *x\nc: &y yes\nd: &z !!str 5\n", {"a": 5, "b": 5, "c": True, "d": "5"}),
        ("- a\n-\n- [b, {c: d}]\n", ["a", None, ["b", {"c": "d"}]]),
        ("%YAML 1.1\n---\na: b\n...\n", {"a": "b"}),
        ('a: "\\u00e9\\t"\n', {"a": "é\t"}),
        ("a: {from: gs://bucket/path, b: 012}\n", {"a": {"from": "gs://bucket/path", "b": 10}}),
        ("a: [x:1, no, 'no', c:]\nb: |\n  x\n", {"a": ["x:1", False, "no", "c:"], "b": "x\n"}),
    ],
)
def test_document(text: str, data: object) -> None:
    assert load(text, "x.yaml").data == data


TEXT = """\
# comment
machines:
  a:
    taints:
      - {key: x, value: y}
      - key: z
base: &base {gpus: 8}
more:
  <<: *base
"""


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ((), (2, 1)),
        (("machines",), (2, 1)),
        (("machines", "a", "taints"), (4, 5)),
        (("machines", "a", "taints", 0, "value"), (5, 18)),
        (("machines", "a", "taints", 1), (6, 9)),
        (("machines", "b", "taints"), (2, 1)),
        (("more", "gpus"), (8, 1)),
        (("nowhere",), (2, 1)),
    ],
)
def test_place_of_a_key_or_of_its_nearest_parent(keys: tuple[str | int, ...], place: tuple[int, int]) -> None:
    assert load(TEXT, "x.yaml").position(keys) == place


def test_span_of_a_value() -> None:
    document = load(TEXT, "x.yaml")
    start, end = document.span(("machines", "a", "taints", 0)) or (0, 0)
    assert TEXT[start:end] == "{key: x, value: y}"
    assert document.span(("machines", "b")) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: b\na: c\n", "2:1: duplicate key 'a'; keep one of the two"),
        ("a:\n  b: 1\n  b: 2\n", "3:3: duplicate key 'b'; keep one of the two"),
        ("yes: b\ntrue: c\n", "2:1: duplicate key 'true'; keep one of the two"),
        ("? [a]\n: b\n", "1:3: a key must be text"),
        ("a: {<<: b}\n", "1:9: only a map can be merged with '<<'"),
        ("a: b\n---\nc: d\n", "2:1: contains more than one YAML document"),
        ("a: *b\n", "1:4: invalid YAML: found undefined alias"),
        ("a:\n\tb: c\n", "2:1: a tab cannot indent YAML; use spaces"),
        ("a: {b: c://d, e?}\n", "1:16: invalid YAML: expected ',' or '}', but got '?' while parsing a flow mapping"),
        ("a: {b: c://d, b: e}\n", "1:15: duplicate key 'b'; keep one of the two"),
        ("a: b: c\n", "1:5: invalid YAML: mapping values are not allowed in this context"),
        (
            "a: [b\nc: d\n",
            "2:2: invalid YAML: did not find expected ',' or ']' while parsing a flow sequence that begins in line 1",
        ),
        (
            'a: "b\n',
            "2:1: invalid YAML: found unexpected end of stream while scanning a quoted scalar that begins in line 1",
        ),
        ("a: " + "[" * 101 + "]" * 101, "1:103: is nested deeper than 100 levels"),
        ("a: " + "{b: " * 60000 + "}" * 60000, "1:400: is nested deeper than 100 levels"),
        ("- " * 60000 + "a\n", "1:201: is nested deeper than 100 levels"),
    ],
)
def test_one_line_says_what_is_wrong_and_where(text: str, problem: str) -> None:
    with pytest.raises(ChartgenError) as caught:
        load(text, "x.yaml")
    assert str(caught.value) == f"x.yaml:{problem}"


def test_all_duplicates_are_told_at_once() -> None:
    with pytest.raises(ChartgenError) as caught:
        load("a: 1\nb: 1\nb: 2\na: 2\n", "x.yaml")
    assert [problem.line for problem in caught.value.problems] == [3, 4]


def test_many_brackets_are_no_depth() -> None:
    text = "a: {from: gs://bucket}\n" + "".join(f"b{n}: {{c: [d]}}\n" for n in range(600))
    data = load(text, "x.yaml").data
    assert isinstance(data, dict)
    assert len(data) == 601


def test_aliases_may_not_grow_without_bound() -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    with pytest.raises(ChartgenError, match=r"^x.yaml: its aliases expand to too much data$"):
        load("a0: &a0 [x]\n" + levels, "x.yaml")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: \xff\n", ": is not UTF-8 text (byte 3); save it as UTF-8"),
        (b"a: b\nc: \0\n", ":2: is not text: it contains a NUL character"),
    ],
)
def test_file_that_is_not_text(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(ChartgenError) as caught:
        load_file(path)
    assert str(caught.value) == f"{path}{problem}"


def test_line_ends_and_byte_order_mark_of_other_systems(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: |\r\n  b\r\nc: d\re: f\r\n")
    assert read_text(path) == "a: |\n  b\nc: d\ne: f\n"
    assert load_file(path).position(("e",)) == (4, 1)


def test_map_is_required() -> None:
    assert require_map(load("", "x.yaml"), "a target") == {}
    with pytest.raises(ChartgenError, match=r"^x.yaml:1:1: a target must be a map of keys, not text$"):
        require_map(load("a\n", "x.yaml"), "a target")


def test_leaves() -> None:
    document = load("a: {b: 1, c: {}}\nd: []\ne: [1]\n", "x.yaml")
    found = [(("a", "b"), 1, 1), (("a", "c"), {}, 1), (("d",), [], 2), (("e",), [1], 3)]
    assert list(document.leaves()) == found


def test_a_pipe_nobody_writes_to_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "values.yaml"
    os.mkfifo(pipe)
    with pytest.raises(ChartgenError, match=r"values\.yaml: is a pipe, not a file; write its content to a file"):
        read_text(pipe)


def test_an_endless_device_and_a_huge_file_are_refused_in_bounded_time(tmp_path: Path) -> None:
    huge = tmp_path / "values.yaml"
    with huge.open("wb") as file:
        file.truncate(10_000_001)
    for path in (Path("/dev/zero"), huge):
        with pytest.raises(ChartgenError, match=r"is larger than 10 MB; keep data out of it"):
            read_text(path)


def test_what_a_shell_hands_over_is_read() -> None:
    code = "import sys, pathlib; from chartgen.helm.yaml import read_text; print(read_text(pathlib.Path(sys.argv[1])))"
    script = f'{sys.executable} -c "{code}" <(echo nodes: 4)'
    assert subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout == "nodes: 4\n\n"


def test_a_file_that_one_may_not_read_gets_one_line(tmp_path: Path) -> None:
    path = tmp_path / "values.yaml"
    path.write_text("nodes: 4\n")
    path.chmod(0)
    own = os.geteuid()
    try:
        if own == 0:  # root reads everything
            os.seteuid(65534)
        with pytest.raises(ChartgenError, match=r"^\S+values\.yaml: cannot be read: Permission denied$"):
            read_text(path)
    finally:
        os.seteuid(own)
