"""Lint settings of a repository: `[tool.chartgen.lint]` in pyproject.toml, or `[lint]` in chartgen.toml.

Paths in them, and links, must lie inside the repository.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any, get_args

from chartgen.errors import Problem, UsageError, did_you_mean
from chartgen.findings import Level
from chartgen.helm.yaml import read_text, type_name
from chartgen.linter.limits import OutOfTimeError, limited
from chartgen.linter.selection import NEVER

_HINT = "name a file or folder of this repository"
# Far below PATH_MAX, since paths are joined; NAME_MAX of Linux (limits.h).
_LONGEST, _LONGEST_PART = 1024, 255


def escapes(path: Path, root: Path) -> bool:
    """Report whether a path below a folder leads out of it through a link.

    Args:
        path: A path; one that a user wrote outside of the folder (`../charts`) does not escape.
    """
    named = Path(os.path.normpath(Path.cwd() / path))
    below = named.is_relative_to(os.path.normpath(Path.cwd() / root))
    return below and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def path_fault(name: str, root: Path) -> str:
    """Report why a path in a repository's own settings is rejected; empty when it is accepted."""
    longest = max(len(os.fsencode(part)) for part in name.split("/"))
    if "\0" in name or len(os.fsencode(name)) > _LONGEST or longest > _LONGEST_PART:
        return f"{name[:60]!r} is not a path that a file system accepts"
    if "://" in name:
        return f"{name!r} would be fetched from the network, which only an argument of yours may ask for"
    if name.startswith("-"):
        return f"{name!r} would be read as a flag"
    if Path(name).is_absolute() or ".." in Path(name).parts:
        return f"{name!r} is outside of the repository"
    return f"{name!r} is a link out of the repository" if escapes(root / name, root) else ""


def rejected_path(name: str, why: str, path: Path | str) -> Problem:
    """Return the problem of a rejected path."""
    return Problem(f"{name}: {why}", path, hint=_HINT)


_FILES = {"chartgen.toml": ("lint",), "pyproject.toml": ("tool", "chartgen", "lint")}
_LISTS = ("charts", "select", "ignore", "kubernetes")
_LARGEST, _PATIENCE = 1_000_000, 5
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True)
class Config:
    """Lint settings of a repository; options of the command line override them."""

    # Folders of charts, folders that contain charts, or targets; used when the command line names none
    charts: tuple[str, ...] = ()
    presets: Path = Path("values")  # folder of presets
    select: tuple[str, ...] = ()  # rules to report; empty for all
    ignore: tuple[str, ...] = ()  # rules not to report
    # Kubernetes versions to render for; empty for the oldest and newest that a chart supports
    kubernetes: tuple[str, ...] = ()
    strict: bool = False  # whether warnings also fail
    baseline: Path | None = None  # file with the known findings
    # Which findings to report: `breaks`, or good practice too; None for the default of each chart
    level: Level | None = None


def read_config(folder: Path) -> Config:
    """Read the settings of a folder; return the defaults if it has none.

    Raises:
        UsageError: A file that is not TOML, an unknown setting, or one that leads out of the repository.
    """
    for name, keys in _FILES.items():
        path = folder / name
        if escapes(path, folder):
            raise UsageError(rejected_path("settings", "the file is a link out of the repository", path))
        if os.path.lexists(path) and (table := _table(path, keys)) is not None:
            return _config(table, path)
    return Config()


def _table(path: Path, keys: tuple[str, ...]) -> dict[str, Any] | None:
    # Python 3.10 has no TOML reader; the package has the same code.
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    text = read_text(path)
    if len(text) > _LARGEST:
        raise UsageError(Problem(f"is larger than {_LARGEST / 1e6:.0f} MB", path, hint="keep data out of it"))
    try:
        # Both take time quadratic in the number of a key's parts.
        with limited(_PATIENCE) if current_thread() is main_thread() else nullcontext():
            node: Any = toml.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(Problem(f"is not TOML: {error}", path)) from None
    except OutOfTimeError:
        hint = "write tables instead of keys of many parts"
        raise UsageError(Problem(f"could not be read within {_PATIENCE} s", path, hint=hint)) from None
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node if isinstance(node, dict) else None


def _config(table: dict[str, Any], path: Path) -> Config:
    problems = [_problem(key, value, path) for key, value in table.items()]
    if found := [problem for problem in problems if problem]:
        raise UsageError(found)
    fields: dict[str, Any] = {key: tuple(table[key]) for key in _LISTS if key in table}
    if fields.get("select"):
        fields["select"] += tuple(sorted(NEVER))
    fields |= {key: path.parent / table[key] for key in ("presets", "baseline") if key in table}
    return Config(**fields, strict=table.get("strict", False), level=table.get("level"))


_TYPES: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(_LISTS, (list, "a list of strings")),
    "presets": (str, "a string"),
    "baseline": (str, "a string"),
    "strict": (bool, "true or false"),
    "level": (str, " or ".join(LEVELS)),
}


def _problem(key: str, value: Any, path: Path) -> Problem | None:
    if key not in _TYPES:
        return Problem(f"lint has no setting {key!r}", path, hint=did_you_mean(key, _TYPES))
    wanted, name = _TYPES[key]
    if not isinstance(value, wanted) or (wanted is list and not all(isinstance(each, str) for each in value)):
        return Problem(f"{key} must be {name}, not {type_name(value)}", path)
    if key == "level" and value not in LEVELS:
        return Problem(f"level must be {name}, not {value!r}", path)
    if key == "ignore" and (never := sorted(NEVER.intersection(each.partition(":")[0] for each in value))):
        return Problem(f"settings cannot ignore {never[0]}", path, hint="whoever runs lint may, with --ignore")
    return _outside(key, value if wanted is list else [str(value)], path)


def _outside(key: str, values: list[str], path: Path) -> Problem | None:
    """Reject a path in the settings that leads out of the repository: lint reads only files inside it."""
    named = values if key in ("charts", "presets", "baseline") else []
    faults = (why for name in named if (why := path_fault(name, path.parent)))
    return next((rejected_path(key, why, path) for why in faults), None)
