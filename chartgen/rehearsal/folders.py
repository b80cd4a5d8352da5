"""Private folders of control planes, each held by a lock that the system releases when its supervisor ends."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_PREFIX = "chartgen-plane-"
_ORPHAN_AGE = 3600.0  # seconds after which a folder without a lock file is the leftover of a crash


@dataclass(frozen=True)
class Folder:
    """A new folder and its open, locked lock file, for a process that inherits the file and so the lock."""

    path: Path
    lock: IO[str]


@contextmanager
def new_folder() -> Iterator[Folder]:
    """Make a folder that only its owner can read; it is removed when the block fails.

    When the block ends this process lets go of the lock, so that whoever inherited it holds it alone.
    """
    import fcntl

    path = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    try:
        with (path / "lock.new").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (path / "lock.new").rename(path / "lock")  # only a locked file ever has the name that `sweep` looks at
            yield Folder(path, lock)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def is_alive(folder: Path) -> bool:
    """Report whether the supervisor of a folder lives: it holds the folder's lock, which no crash can leave behind."""
    import fcntl

    try:
        with (folder / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def sweep() -> None:
    """Remove the folders of control planes whose supervisor was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if _is_left_over(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_left_over(folder: Path) -> bool:
    try:
        status = folder.stat()
    except OSError:  # another process removed it in between
        return False
    fresh = not (folder / "lock").exists() and time.time() - status.st_mtime < _ORPHAN_AGE
    return status.st_uid == os.getuid() and not fresh and not is_alive(folder)
