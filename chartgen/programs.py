"""Find the programs that chartgen runs: in a variable, PATH, or the cache of engines."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from chartgen.errors import MissingToolError, Problem, UsageError
from chartgen.files import checkout, home_expanded

# Called with one line for each step of a slow operation.
Progress: TypeAlias = Callable[[str], None]


def cache_dir() -> Path:
    """Return the folder for files that chartgen builds once; it need not exist.

    `$CHARTGEN_CACHE`, else `$XDG_CACHE_HOME/chartgen`, else `~/.cache/chartgen`.

    Raises:
        UsageError: A variable names a folder that the author of a checkout can fill: programs of it would run.
    """
    own, shared = os.environ.get("CHARTGEN_CACHE"), home_expanded(os.environ.get("XDG_CACHE_HOME") or "")
    if own:
        name, base, folder = "CHARTGEN_CACHE", home_expanded(own), home_expanded(own)
    elif shared.is_absolute():
        name, base, folder = "XDG_CACHE_HOME", shared, shared / "chartgen"
    else:  # a relative one is ignored, as the XDG Base Directory Specification 0.8 wants
        name, base, folder = "HOME", home_expanded("~"), home_expanded("~") / ".cache" / "chartgen"
    if not base.is_absolute():
        raise UsageError(f"{name}={base} is not an absolute path; set one outside of the checkout")
    if (root := checkout()) and folder.resolve().is_relative_to(root):
        raise UsageError(f"{name}={base} is in the checkout {root}; set CHARTGEN_CACHE to a folder outside of it")
    return folder


def find_tool(name: str, fits: Callable[[Path], bool] | None = None, built: Path | None = None) -> Path | None:
    """Find a program: `$CHARTGEN_<NAME>`, then PATH, then the cache.

    The cache contains `engines/<name>-<version>-<os>-<arch>/bin/<name>`, written by `chartgen engines`.

    Args:
        name: The program, for example `helm`.
        fits: Accepts a program from PATH; without it any is accepted. A program from the variable is always accepted.
        built: The accepted program of the cache, whose file name is also searched on PATH; without it the newest.

    Raises:
        MissingToolError: The variable is set but does not name a program.
    """
    if own := chosen(name):
        return own
    found = on_path(built.name if built else name)
    if found and (fits is None or fits(found)):
        return found
    cached = _cached(name) if built is None else built if built.is_file() else None
    if cached:
        _check_owner(cached)
    return cached


def on_path(name: str) -> Path | None:
    """Find a program on PATH, but for its relative entries: a stranger may be the author of the working directory."""
    found = shutil.which(name, path=os.pathsep.join(filter(os.path.isabs, os.get_exec_path())))
    return Path(found) if found else None


def _check_owner(program: Path) -> None:
    """Reject a program of the cache that another user can have written.

    Its checksum is compared when it is downloaded or built: to hash 60 MB at each start takes longer than a command.
    """
    for path in (program, *program.parents[:4]):  # bin, the engine's folder, engines, the cache
        found = path.stat()
        shared = 0o002 if found.st_gid == os.getuid() else 0o022  # a group of the user's own has the same number
        if found.st_uid not in (0, os.getuid()) or found.st_mode & shared:
            hint = f"remove it, or set {variable(program.name)} to the program"
            raise MissingToolError(Problem("not run: other users can write it", path, hint=hint))


def variable(name: str) -> str:
    """Return the variable that chooses a program."""
    return "CHARTGEN_" + name.upper().replace("-", "_")


def chosen(name: str) -> Path | None:
    """Return the program of `$CHARTGEN_<NAME>`, None if unset; raise MissingToolError if it does not name one."""
    program = os.environ.get(variable(name))
    if not program:
        return None
    if found := shutil.which(program):
        return Path(found)
    raise MissingToolError(f"{variable(name)}={program} is not an executable file; correct or unset it")


def _cached(name: str) -> Path | None:
    built = [path for path in cache_dir().glob(f"engines/{name}-*/bin/{name}") if os.access(path, os.X_OK)]
    return max(built, key=lambda path: _version_key(path.parent.parent.name.removeprefix(f"{name}-")), default=None)


def _version_key(folder: str) -> list[int]:
    version = folder.partition("-")[0]
    return [int(number) for number in re.findall(r"[0-9]+", version)]
