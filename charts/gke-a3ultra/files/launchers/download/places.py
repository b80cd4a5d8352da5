"""Where files go: below their directory, each at a place of its own, whatever names a stranger gave them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

PACKED = (".xz", ".gz", ".zst")
LONGEST = 255  # bytes of a file's name, on ext4, XFS, NFS and Lustre alike
PART = ".part"  # a file that is not complete yet


def unpacked(target: Path) -> Path:
    """Return the file that a fetched one becomes."""
    return target.with_suffix("") if target.suffix in PACKED else target


def written_paths(target: Path) -> list[Path]:
    """Return every path that is written for one file: itself, its unpacked form, and its incomplete part."""
    return [path.with_name(path.name + end) for path in dict.fromkeys((target, unpacked(target))) for end in ("", PART)]


def name_fault(name: str, directory: Path) -> str:
    """Return why a name is not taken, or nothing. Names come from listings that strangers write."""
    parts = name.split("/")
    if name.startswith("/") or ".." in parts:
        return f"its name leads out of {directory}"
    if "" in parts or "." in parts:
        return "its name has an empty part"
    if not name.isprintable():
        return "its name has control characters"
    try:  # encoded as Linux keeps names: what is no UTF-8 stays what it is
        longest = max(len(os.fsencode(part)) for part in parts)
    except UnicodeError:
        longest = LONGEST
    if longest + len(PART) > LONGEST:
        return f"a part of its name is longer than {LONGEST - len(PART)} bytes, or is not text"
    return _on_disk(directory / name, directory)


def clashes(targets: Iterable[Path]) -> Iterator[str]:
    """Report files that would overwrite each other, or be file and folder at once.

    Names that differ only in case count as the same: not every storage distinguishes them.
    """
    owners: dict[str, Path] = {}
    folders: dict[str, Path] = {}
    for target in targets:
        for path in written_paths(target):
            key = str(path).casefold()
            other = owners.setdefault(key, target)
            if other != target:
                yield f"{other} and {target} would overwrite each other"
        for folder in target.parents:
            key = str(folder).casefold()
            if str(folders.setdefault(key, folder)) != str(folder):
                yield f"the folders {folders[key]} and {folder} differ only in case"
    for key in sorted(owners.keys() & folders.keys()):
        yield f"{owners[key]} would be a file and a folder"


def _on_disk(target: Path, directory: Path) -> str:
    """Return what an earlier program left at a place that makes it another place."""
    try:
        root = directory.resolve()
        for path in written_paths(target):
            if not path.resolve().is_relative_to(root):
                return f"a link leads from {path} out of {directory}"
            if path.exists() and not path.is_file():
                return f"{path} already exists, but is not a file"
    except (OSError, RuntimeError) as error:  # a loop of links, for one
        return str(error)
    return ""
