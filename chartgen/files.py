"""Files written as a whole or not at all: a full disk, a killed process or two writers leave no half of one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from chartgen.errors import ChartgenError, Problem


def write_whole(path: Path, text: str) -> None:
    """Write a text file in one step: beside it first, then in its place.

    What a link stands for is replaced, not the link; a device or pipe, such as /dev/stdout, is written as it is.

    Args:
        path: The file; its folder exists.
        text: Its content, as UTF-8 with the line ends that it has.

    Raises:
        ChartgenError: It cannot be written; what was there is still there.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8", newline="\n")
        else:
            _exchange(Path(os.path.realpath(path)), text)
    except OSError as error:
        hint = "nothing was changed; choose another file"
        raise ChartgenError(Problem(f"cannot be written: {error.strerror}", path, hint=hint)) from None


def _exchange(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        Path(draft).chmod(mode)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
