"""The boundary of a repository: paths in its own settings and links must lie inside it."""

from __future__ import annotations

import os
from pathlib import Path

from chartgen.errors import Problem

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
