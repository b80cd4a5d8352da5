"""Values that try to become more than one scalar: a text stays a text, whatever blanks, colons or braces are in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import pytest
from rendered import chart

from chartgen.checks import check_values
from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values

pytestmark = pytest.mark.helm

# Each begins as its pattern may ask for. The first dropped half of NeMo's settings at commit e0791ee.
TEXTS = (
    "/a\nmodel:\t#",
    "/a\tb: c #",
    "/{{ fail }}",
    '/"x": [',
    "/a\u2028model: x",
    "/a\u0085b",
    "a\nb: c",
    "a: b",
    "a #b",
    "[a",
    "{a",
    "&a",
    "*a",
    "!a",
    "'a",
    '"a',
    "gs://bucket/a\nb: c",
    "pvc://claim/a\nb: c",
    "nfs://host/a\nb: c",
    "1e3",
    "0x1F",
    "null",
    "-",
    "=",
)


MOST = 4  # of those texts for each key: each check takes milliseconds


def texts(node: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Find the keys of a schema that take free text."""
    for name, part in node.get("properties", {}).items():
        kinds = part.get("type", [])
        if "string" in ([kinds] if isinstance(kinds, str) else kinds) and "enum" not in part:
            yield (*at, name)
        yield from texts(part, (*at, name))


def nested(keys: tuple[str, ...], value: str) -> dict[str, Any]:
    data: Any = value
    for key in reversed(keys):
        data = {key: data}
    return dict(data)


def refusal(made: Chart, values: Values) -> str:
    """Render, and return the sentence with which the chart refuses; empty when all of it is there."""
    try:
        found = json.dumps(objects(render(made, "r", "default", values.data)))
    except ChartgenError as error:
        return str(error)
    assert "num_layers=" in found or "--num-layers" in found
    return ""


def together(made: Chart, base: dict[str, Any], taken: list[dict[str, Any]]) -> int:
    """Render values together, halved until what is refused stands alone; return how many the chart renders."""
    if not taken:
        return 0
    values = Values(reduce(merged, taken, base))
    why = refusal(made, values)
    # what a chart itself refuses is a sentence of its own, and no broken YAML
    assert not re.search(r"YAML|yaml:|error converting", why), (values.data, why)
    if not why or len(taken) == 1:
        return 0 if why else len(taken)
    half = len(taken) // 2
    return together(made, base, taken[:half]) + together(made, base, taken[half:])


@pytest.mark.threat(8)
@pytest.mark.parametrize("launcher", ["nemo-1", "megatron-lm"])
def test_a_text_stays_one_scalar(launcher: str) -> None:
    made = chart()
    base = {"launcher": launcher, "tokenizer": {"kind": "gpt2", "path": "/x"}}
    rounds: list[list[dict[str, Any]]] = [[] for _ in range(MOST)]
    for keys in texts(json.loads(made.files["values.schema.json"])):
        if keys[0] not in ("setup", "launcher"):
            drawn = (nested(keys, text) for text in TEXTS)
            taken = (values for values in drawn if not check_values(made, Values(merged(base, values))))
            for values, those in zip(taken, rounds, strict=False):
                those.append(values)
    assert sum(together(made, base, values) for values in rounds) > 50


def merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return result


@pytest.mark.threat(8)
def test_settings_that_are_no_yaml_end_the_render() -> None:
    """A line of a template that forgot to quote: fromYaml gives its error for a map, and dropped the settings."""
    made = chart()
    quoted = '{{ printf "%s/tokenizer.model" $path | toJson }}'
    path = next(path for path, text in made.files.items() if quoted in text)
    text = made.files[path].replace(quoted, '"{{ $path }}')
    broken = replace(made, files={**made.files, path: text})
    values = Values({"launcher": "nemo-1", "tokenizer": {"kind": "sentencepiece", "path": "/a"}})
    assert re.search("not YAML|not a map", refusal(broken, values))
    assert refusal(made, values) == ""


@pytest.mark.threat(8)
@pytest.mark.parametrize("character", "\x7f\x85\x9f\ufffe\uffff")
def test_what_helm_cannot_write_as_yaml_is_refused(character: str) -> None:
    """toYaml is empty then, and the whole list or map was missing without a word."""
    made, text = chart(), f"a{character}b"
    base: dict[str, Any] = {"launcher": "nemo-1", "tokenizer": {"kind": "gpt2", "path": "/x"}}
    cases: dict[str, dict[str, Any]] = {
        "extraContainers[0].args[0]": {"extraContainers": [{"name": "a", "image": "a:1", "args": [text]}]},
        "podAnnotations.x": {"podAnnotations": {"x": text}},
        "launchers.nemo-1.config": {"launchers": {"nemo-1": {"config": {text: 1}}}},
    }
    for at, given in cases.items():
        values = Values({**base, **given})
        assert [problem.message.partition(":")[0] for problem in check_values(made, values)] == [at]
        assert "U+007F" in refusal(made, values)
    assert check_values(made, Values({"podAnnotations": {"x": "a\x01\u2028\ufeff\U0001f600"}})) == []
