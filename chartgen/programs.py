"""Where programs that chartgen runs are found: a variable, PATH, then the cache of engines that chartgen built."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from chartgen.errors import MissingToolError

# Gets one line for each step of something that takes longer than a moment.
Progress: TypeAlias = Callable[[str], None]


def cache_dir() -> Path:
    """Return the folder for what chartgen builds once; it need not exist.

    `$CHARTGEN_CACHE`, else `$XDG_CACHE_HOME/chartgen`, else `~/.cache/chartgen`.
    """
    if own := os.environ.get("CHARTGEN_CACHE"):
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "chartgen"


def find_tool(name: str, fits: Callable[[Path], bool] | None = None) -> Path | None:
    """Find a program: `$CHARTGEN_<NAME>`, then PATH, then the newest one in the cache.

    The cache holds `engines/<name>-<version>-<os>-<arch>/bin/<name>`, as `chartgen engines build` leaves them.

    Args:
        name: The program, for example `helm`.
        fits: Whether one on PATH will do; without it any will. What the variable names counts in any case.

    Raises:
        MissingToolError: The variable is set but names no program.
    """
    if chosen := chosen_tool(name):
        return chosen
    found = shutil.which(name)
    if found and (fits is None or fits(Path(found))):
        return Path(found)
    return _cached(name)


def chosen_tool(name: str) -> Path | None:
    """Return the program that `$CHARTGEN_<NAME>` names; None when the variable is not set.

    Raises:
        MissingToolError: The variable is set but names no program.
    """
    variable = "CHARTGEN_" + name.upper().replace("-", "_")
    chosen = os.environ.get(variable)
    if not chosen:
        return None
    if found := shutil.which(chosen):
        return Path(found)
    raise MissingToolError(f"{variable}={chosen} is not an executable file; correct or unset it")


def _cached(name: str) -> Path | None:
    built = [path for path in cache_dir().glob(f"engines/{name}-*/bin/{name}") if os.access(path, os.X_OK)]
    return max(built, key=lambda path: _version_key(path.parent.parent.name.removeprefix(f"{name}-")), default=None)


def _version_key(folder: str) -> list[int]:
    version = folder.partition("-")[0]
    return [int(number) for number in re.findall(r"[0-9]+", version)]
