"""Recipes whose values have other types than anybody expects are refused or listed, and never end in a traceback."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from chartgen.composer import assembly
from chartgen.composer.target import load_target
from chartgen.errors import ChartgenError
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load_file
from chartgen.linter.recipes.convert import convert_recipe

FOLDER = Path(__file__).parents[1] / "data" / "recipes" / "a3mega"
BAD: tuple[Any, ...] = (None, 3, -1, "x", "", [], {}, [1], {"a": 1}, True, "${a}", [["a"]], [{"a": [1]}])
COUNT = 100


def paths(node: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    pairs = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    for key, value in pairs:
        yield (*at, key)
        yield from paths(value, (*at, key))


def broken(data: Any, random: Random) -> Any:
    """The data with another value at one of its paths."""
    made: Any = copy.deepcopy(data)
    *keys, last = random.choice(sorted(paths(data), key=str))
    inner = made
    for key in keys:
        inner = inner[key]
    inner[last] = random.choice(BAD)
    return made


def test_no_value_ends_in_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values: Any = load_file(FOLDER / "values.yaml").data
    config: Any = load_file(FOLDER / "nemo.yaml").data
    values |= {"gcsDownload": {"source": "gs://a/b", "target": "/ssd/x"}, "nodeSelector": {"a": "b"}}
    values["workload"]["arguments"] = ["model.seed=3"]
    config["model"]["data"] |= {"data_impl": "mmap", "data_prefix": [1.0, "/ssd/x/y"]}
    # the target's chart is the same each time, and takes longer than all else
    interface = assembly.compose_interface(load_target("gke-a3mega"))
    monkeypatch.setattr(assembly, "compose_interface", lambda _target: interface)
    random, refused = Random(17), 0  # noqa: S311
    paths_of = (tmp_path / "values.yaml", tmp_path / "nemo.yaml")
    for number in range(COUNT):
        both = (broken(values, random), config) if number % 2 else (values, broken(config, random))
        for path, data in zip(paths_of, both, strict=True):
            path.write_text(json.dumps(data))
        try:
            convert_recipe(load_values([paths_of[0]]), paths_of[1], target="gke-a3mega")
        except ChartgenError:
            refused += 1
    assert COUNT / 10 < refused < COUNT
