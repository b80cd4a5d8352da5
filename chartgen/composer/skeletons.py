"""Skeletons of targets, fragments, launchers and workload kinds: commented definitions that build and lint clean."""

from __future__ import annotations

import os
import re
from pathlib import Path

from chartgen.composer.library import NAME, Library
from chartgen.data import DATA
from chartgen.errors import Problem, UsageError
from chartgen.files import write_whole
from chartgen.helm.yaml import read_text

_FOLDER = DATA / "skeletons"


def write_skeleton(kind: str, name: str, folder: Path, library: Library) -> list[Path]:
    """Write the skeleton of a definition.

    Args:
        kind: `target`, `fragment`, `launcher` or `workload`.
        folder: The folder of own definitions; it need not exist.
        library: The definitions whose names are taken.

    Returns:
        The written files.

    Raises:
        UsageError: An invalid name, a name that is taken, or a file that exists.
    """
    if not NAME.fullmatch(name):
        hint = "use at most 53 lower-case letters, digits and '-'"
        raise UsageError(Problem(f"{name!r} cannot be the name of a {kind}", hint=hint))
    files = {folder / path: text for path, text in _texts(kind, name).items()}
    taken = [*library.search(kind, name), *(path for path in files if os.path.lexists(path))]
    if taken:
        raise UsageError(Problem(f"there is already a {kind} {name!r}", taken[0], hint="choose another name"))
    for path, text in files.items():
        write_whole(path, text, parents=True)
    return sorted(files)


def _texts(kind: str, name: str) -> dict[str, str]:
    first, *rest = re.split("-+", name)
    key = first + "".join(word.capitalize() for word in rest)
    # a key of values is a name in rules, and no name begins with a digit
    words = {"NAME": name, "KEY": key if key[0].isalpha() else f"own{key}"}
    root = _FOLDER / kind
    return {
        str(path.relative_to(root)).replace("NAME", name): re.sub(
            r"\b(NAME|KEY)\b", lambda word: words[word[1]], read_text(path)
        )
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }
