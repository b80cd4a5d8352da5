"""`chartgen.yaml` of the working folder: its definitions, and the target, preset and values files of its runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from chartgen.errors import Problem, UsageError

SETTINGS = "chartgen.yaml"
_LISTS = ("path", "values")
_NAMES = ("target", "preset")


@dataclass(frozen=True)
class FolderSettings:
    """The content of a `chartgen.yaml`."""

    path: tuple[Path, ...] = ()  # folders with definitions
    target: str = ""  # target of the runs
    preset: str = ""
    values: tuple[Path, ...] = ()  # their values files


def folder_settings() -> FolderSettings:
    """Return the settings of the working folder; empty ones without the file.

    Raises:
        UsageError: The file, or a path in it, lies elsewhere: a pull request may have written it.
    """
    if not os.path.isfile(SETTINGS):  # noqa: PTH113  the fastest, in every command
        return FolderSettings()
    if not is_here(Path(SETTINGS)):
        raise UsageError(Problem("is a link out of this folder", SETTINGS, hint="replace the link by a copy"))
    from chartgen.composer.definition import read_definition

    document, data = read_definition(Path(SETTINGS), "folder")
    paths = {key: tuple(Path(str(each)) for each in data.get(key) or ()) for key in _LISTS}
    outside = [(key, each) for key in _LISTS for each in paths[key] if not is_here(each)]
    target = str(data.get("target", ""))
    if target.startswith("-") or "://" in target or not is_here(Path(target)):  # no option, and no chart of elsewhere
        outside.append(("target", Path(target)))
    if outside:
        hint = "name what is below this folder; arguments, --path, CHARTGEN_PATH and -f name others"
        raise UsageError(document.problem(f"{each} lies elsewhere", (key,), hint) for key, each in outside)
    if not data.get("target") and (idle := [key for key in ("preset", "values") if data.get(key)]):
        hint = "add target: a preset and a site file belong to one"
        raise UsageError(document.problem(f"{idle[0]} without a target", (idle[0],), hint))
    return FolderSettings(**paths, **{name: str(data.get(name, "")) for name in _NAMES})  # type: ignore[arg-type]


def is_here(path: Path) -> bool:
    """Report whether a path is below the working directory, also after its links."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(Path.cwd()))
    except ValueError:  # a path has no NUL
        return False
