"""Launchers: how to start one program on the machines of a chart."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from chartgen.composer.definition import is_builtin, read_definition, record_of, source_text
from chartgen.composer.pod_files import LAUNCHERS_FIELDS, slot_texts
from chartgen.composer.slots import column_of, dedented
from chartgen.errors import ChartgenError, Problem, did_you_mean, refuse
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
# args and env were files of their own in the earlier form of launchers, which works too.
CONTAINER = "container.yaml"
FILES = (CONTAINER, *(name for name in PARTS if name not in LAUNCHERS_FIELDS.values()))
_NAMES = {"launcher.yaml", "rules.yaml", "values.yaml", SCHEMA_FILE, *FILES}


@dataclass(frozen=True)
class Launcher:
    """One launcher after reading and checks; its other fields are the keys of launcher.yaml."""

    name: str
    path: Path
    own_program: str  # file name of the program in its folder; empty when the image has it
    description: str
    task: str
    processes: str
    sources: tuple[str, ...]
    program: str = ""
    image: str = ""
    same_as: str = ""
    precisions: tuple[str, ...] = ()
    owns: dict[str, list[str]] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    sets: dict[str, dict[str, Any]] = field(default_factory=dict)
    own_model: str = ""
    sharding: dict[str, Any] = field(default_factory=dict)
    step_line: dict[str, list[str]] = field(default_factory=dict)

    @cached_property
    def parts(self) -> dict[str, str]:
        """Return the template text of each part, by file name."""
        return _read_parts(self.path)

    @cached_property
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


def load_launcher(path: Path) -> Launcher:
    """Read a launcher's folder; raise ChartgenError with all problems of all its files."""
    document, data = read_definition(path / "launcher.yaml", "launcher")
    programs = [name for name in PROGRAMS if (path / name).is_file()]
    _check_source(document, data, programs)
    own = programs[0] if programs else ""
    launcher = record_of(
        Launcher,
        data,
        name=path.name,
        path=path,
        own_program=own,
        program=f"/etc/chartgen/{own}" if own else data["program"],
        owns={key: [native] if isinstance(native, str) else native for key, native in data.get("owns", {}).items()},
    )
    if not is_builtin(path):
        _ = launcher.parts
    return launcher


def _check_source(document: Document, data: dict[str, Any], programs: list[str]) -> None:
    """Reject a launcher whose program or image has no source, or two."""
    if len(programs) + ("program" in data) != 1:
        hint = "name the program's path in the image, or put one program.sh or program.py into the folder"
        raise ChartgenError(document.problem("needs exactly one program", ("program",), hint))
    if ("image" in data) == ("sameAs" in data):
        raise ChartgenError(document.problem("needs either image or sameAs", ("image",), "remove one, or add one"))


@lru_cache(maxsize=256)
def check_part(text: str, path: Path) -> None:
    """Raise ChartgenError for unclosed blocks or invalid YAML in a part: tests check chartgen's, too slow in builds."""
    refuse(gotemplate.check_blocks(text, path))
    if path.suffix == ".yaml":
        load(gotemplate.mask(text), path, allow_duplicates=True)


def _fields(file: Path) -> dict[str, str]:
    """Return the fields of container.yaml as parts: without the columns before them, but with the lines."""
    texts = slot_texts(file, source_text(file), launcher=True)
    return {name: dedented(part, column_of(part)) for name, part in texts.items()}


def _read_parts(path: Path) -> dict[str, str]:
    parts: dict[str, str] = {}
    problems: list[Problem] = []
    for file in sorted(path.iterdir()):
        if file.name in (*PARTS, CONTAINER) or (file.suffix == ".py" and (path / "program.py").is_file()):
            try:
                for name, text in (_fields(file) if file.name == CONTAINER else {file.name: source_text(file)}).items():
                    if name in parts:
                        problems.append(Problem(f"{name} is there too", file, hint="keep one of the two"))
                    parts[name] = text
                    if not is_builtin(file):
                        check_part(text, file)
            except ChartgenError as error:
                problems += error.problems
        # pip compiles every Python file that it installs, so program.py gets a __pycache__ beside it
        elif file.name not in (*_NAMES, "__pycache__") and not file.name.startswith("."):
            hint = did_you_mean(file.name, _NAMES)
            problems.append(Problem("is not a file that launchers can have", file, hint=hint))
    refuse(problems)
    return parts
