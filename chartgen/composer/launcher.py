"""Launchers: how to start one program on the machines of a chart."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from chartgen.composer.definition import Field, fields_of, read_definition, record_of, stated
from chartgen.composer.library import is_builtin, source_text
from chartgen.errors import ChartgenError, Problem, did_you_mean
from chartgen.helm import gotemplate
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.yaml import Document, load

# The templates of a chart include these by name; config is the native configuration made from portable values, before
# the user's own `config` is merged over it.
# beforeLaunch runs once on each machine, beforeRank in each process; launch changes how the processes are started, and
# files are the user's own, name -> text. A program here is one that the images lack, and other Python files beside
# program.py are its modules.
PROGRAMS = ("program.sh", "program.py")
INCLUDED = (
    "config.yaml",
    "args.yaml",
    "env.yaml",
    "mounts.yaml",
    "files.yaml",
    "beforeLaunch.sh",
    "launch.sh",
    "beforeRank.sh",
)
PARTS = (*INCLUDED, "validate.tpl", *PROGRAMS)
_FILES = {"launcher.yaml", "rules.yaml", "values.yaml", SCHEMA_FILE, *PARTS}


@dataclass(frozen=True, eq=False)
class Launcher:
    """One launcher after reading and checks; its other fields are the keys of launcher.yaml.

    Args:
        own_program: File name of the program in its folder; empty when the image has it.
    """

    name: str
    path: Path
    own_program: str
    description: str = stated("string", "one sentence: which program, in which framework", required=True)
    task: str = stated(
        "string", "its purpose; `data` uses no GPU and no queue", required=True, enum=("train", "data", "test")
    )
    processes: str = stated(
        "string",
        "how many processes: one a GPU, workers, one, or those that the program itself starts through Ray",
        required=True,
        enum=("gpu", "workers", "one", "ray"),
    )
    program: str = stated(
        "string",
        "default path of the program in the image; unset when the folder contains it, empty when users name it",
    )
    image: str = stated("string", "default image with its tag; empty when users build their own")
    same_as: str = stated("string", "the launcher whose image it uses, instead of `image`")
    precisions: tuple[str, ...] = stated("array", "the values of `precision` that it can train in", item="string")
    owns: dict[str, list[str]] = stated(
        "object", "portable key -> the native option, or options, that it sets and that `config` and `args` may not"
    )
    defaults: dict[str, Any] = stated(
        "object", "portable key -> what null means: the value that the launcher or its program takes then"
    )
    sets: dict[str, dict[str, Any]] = stated(
        "object",
        "reason -> {option: value} that the launcher sets besides the values, for the chart's README; text for values "
        "that differ between runs",
        item="object",
    )
    own_model: str = stated(
        "string",
        "the key below launchers.<name> that names a program or recipe with a model of its own: where it is set, the "
        "values of `model` describe nothing",
    )
    step_line: dict[str, list[str]] = stated(
        "object",
        "the line of a step in the program's log, for `run.metricsPort`: regular expressions as in "
        "`launchers.torchrun.metrics`",
        keys={
            "find": Field("array", "all of them match the line", required=True, item="string"),
            "also": Field("array", "they match where the line has what they read", item="string"),
        },
    )
    sources: tuple[str, ...] = stated("array", "the documents that its options come from", required=True, item="string")

    @cached_property
    def parts(self) -> dict[str, str]:
        """Return the template text of each part, by file name."""
        return _read_parts(self.path)

    @property
    def settings(self) -> dict[str, list[str]]:
        """Return what it sets besides the values, as option=value, by reason."""
        return {
            reason: [
                f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in given.items()
            ]
            for reason, given in self.sets.items()
        }

    @property
    def modules(self) -> list[str]:
        """Return the file names of the modules beside program.py."""
        return [name for name in self.parts if name.endswith(".py") and name != self.own_program]

    @property
    def writes_config(self) -> bool:
        """Return whether config.yaml becomes the file that the arguments name, without a files.yaml that writes it."""
        file = f"/etc/chartgen/{self.name}.yaml"
        return {"config.yaml", "files.yaml"} & {*self.parts} == {"config.yaml"} and file in self.parts.get(
            "args.yaml", ""
        )

    @property
    def default_image(self) -> str:
        """Return the default image as a phrase for messages."""
        return self.image or (f"that of {self.same_as}" if self.same_as else "none: build your own")


FIELDS = fields_of(Launcher)


def load_launcher(path: Path) -> Launcher:
    """Read a launcher's folder.

    Raises:
        ChartgenError: All problems of all its files at once.
    """
    document, data = read_definition(path / "launcher.yaml", FIELDS)
    meta: dict[str, Any] = data
    programs = [name for name in PROGRAMS if (path / name).is_file()]
    _check_source(document, meta, programs)
    own = programs[0] if programs else ""
    launcher = record_of(
        Launcher,
        meta,
        name=path.name,
        path=path,
        own_program=own,
        program=f"/etc/chartgen/{own}" if own else meta["program"],
        owns={key: [native] if isinstance(native, str) else native for key, native in meta.get("owns", {}).items()},
    )
    if not is_builtin(path):
        _ = launcher.parts
    return launcher


def _check_source(document: Document, meta: dict[str, Any], programs: list[str]) -> None:
    """Reject a launcher whose program or image has no source, or two."""
    if len(programs) + ("program" in meta) != 1:
        hint = "name the program's path in the image, or put one program.sh or program.py into the folder"
        raise ChartgenError(document.problem("needs exactly one program", ("program",), hint))
    if ("image" in meta) == ("sameAs" in meta):
        raise ChartgenError(document.problem("needs either image or sameAs", ("image",), "remove one, or add one"))


@lru_cache(maxsize=256)
def check_part(text: str, path: Path) -> None:
    """Check the text of one part; chartgen's tests check its own parts, because that is too slow for a build.

    Raises:
        ChartgenError: Unclosed blocks, or invalid YAML.
    """
    if problems := gotemplate.check_blocks(text, path):
        raise ChartgenError(problems)
    if path.suffix == ".yaml":
        load(gotemplate.mask(text), path, allow_duplicates=True)


def _read_parts(path: Path) -> dict[str, str]:
    parts: dict[str, str] = {}
    problems: list[Problem] = []
    for file in sorted(path.iterdir()):
        if file.name in PARTS or (file.suffix == ".py" and (path / "program.py").is_file()):
            try:
                parts[file.name] = source_text(file)
                if not is_builtin(file):
                    check_part(parts[file.name], file)
            except ChartgenError as error:
                problems += error.problems
        # pip compiles every Python file that it installs, so program.py gets a __pycache__ beside it
        elif file.name not in (*_FILES, "__pycache__") and not file.name.startswith("."):
            hint = did_you_mean(file.name, _FILES)
            problems.append(Problem("is not a file that launchers can have", file, hint=hint))
    if problems:
        raise ChartgenError(problems)
    return parts
