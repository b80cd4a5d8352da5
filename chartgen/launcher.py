"""Launchers: how one program is started on the machines that a chart asks for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen import gotemplate
from chartgen.definition import Field, read_definition
from chartgen.errors import ChartgenError, Problem, did_you_mean
from chartgen.yamltext import load, read_text

FIELDS = {
    "description": Field("string", "one sentence: which program, in which framework", required=True),
    "task": Field(
        "string", "what it does; `data` uses no GPU and no queue", required=True, enum=("train", "data", "test")
    ),
    "processes": Field(
        "string", "how many processes: one a GPU, workers, or one", required=True, enum=("gpu", "workers", "one")
    ),
    "program": Field("string", "default path of the program in the image", required=True),
    "image": Field("string", "default image with its tag", required=True),
    "precisions": Field("array", "the values of `precision` that it can train in", required=True, of="string"),
    "owns": Field(
        "object", "portable key -> the native option that it sets and that `config` and `args` may not", of="string"
    ),
    "sources": Field("array", "the documents that its options come from", required=True, of="string"),
}
# args, env and beforeLaunch become named templates of the chart; config is the native configuration that portable
# values make, before the user's own `config` is merged over it.
PARTS = ("args.yaml", "config.yaml", "env.yaml", "beforeLaunch.sh")
_FILES = {"launcher.yaml", "values.yaml", "values.schema.json", *PARTS}


@dataclass(frozen=True)
class Launcher:
    """One launcher, read and checked; `parts` are its template texts by file name."""

    name: str
    path: Path
    description: str
    task: str
    processes: str
    program: str
    image: str
    precisions: tuple[str, ...]
    owns: dict[str, str]
    sources: tuple[str, ...]
    parts: dict[str, str]


def load_launcher(path: Path) -> Launcher:
    """Read a launcher's folder.

    Raises:
        ChartgenError: All problems of all its files at once.
    """
    _, data = read_definition(path / "launcher.yaml", FIELDS)
    meta: dict[str, Any] = data
    return Launcher(
        name=path.name,
        path=path,
        description=meta["description"],
        task=meta["task"],
        processes=meta["processes"],
        program=meta["program"],
        image=meta["image"],
        precisions=tuple(meta["precisions"]),
        owns=meta.get("owns", {}),
        sources=tuple(meta["sources"]),
        parts=_read_parts(path),
    )


@lru_cache(maxsize=256)
def _check_part(text: str, path: Path) -> None:
    if problems := gotemplate.check_blocks(text, path):
        raise ChartgenError(problems)
    if path.suffix == ".yaml":
        load(gotemplate.mask(text), path, allow_duplicates=True)


def _read_parts(path: Path) -> dict[str, str]:
    parts: dict[str, str] = {}
    problems: list[Problem] = []
    for file in sorted(path.iterdir()):
        if file.name in PARTS:
            try:
                parts[file.name] = read_text(file)
                _check_part(parts[file.name], file)
            except ChartgenError as error:
                problems += error.problems
        elif file.name not in _FILES and not file.name.startswith("."):
            hint = did_you_mean(file.name, _FILES)
            problems.append(Problem("is not a file that launchers can have", file, hint=hint))
    if problems:
        raise ChartgenError(problems)
    return parts
