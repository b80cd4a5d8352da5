"""Private folders of control planes, each with a lock that the system releases when its supervisor ends."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from chartgen.errors import MissingToolError, Problem
from chartgen.files import locked

_PREFIX = "chartgen-plane-"
_ORPHAN_AGE = 3600.0  # seconds after which a folder without a lock file is the leftover of a crash


@dataclass(frozen=True)
class LockedFolder:
    """A new folder and its open, locked lock file, for a process that inherits the file and so the lock."""

    path: Path
    lock: IO[str]


@contextmanager
def new_folder() -> Iterator[LockedFolder]:
    """Make a folder that only its owner can read; remove it when the block fails.

    At the end of the block this process releases the lock, so that only the inheriting process keeps it.
    """
    import fcntl

    path = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    try:
        with (path / "lock.new").open("w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (path / "lock.new").rename(path / "lock")  # only a locked file ever has the name that `sweep` checks
            yield LockedFolder(path, lock)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def is_alive(folder: Path) -> bool:
    """Report whether the supervisor of a folder is alive: it holds the lock of the folder, which a crash releases."""
    import fcntl

    try:
        with (folder / "lock").open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def sweep_folders() -> None:
    """Remove the folders of control planes whose supervisor was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        if _is_left_over(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_left_over(folder: Path) -> bool:
    try:
        status = folder.stat()
    except OSError:  # another process has removed it
        return False
    fresh = not (folder / "lock").exists() and time.time() - status.st_mtime < _ORPHAN_AGE
    return status.st_uid == os.getuid() and not fresh and not is_alive(folder)


@contextmanager
def cache_lock(folder: Path, name: str, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Let one process at a time change an item in a folder of the cache.

    Args:
        folder: The folder, which is created if missing.
        waiting: Called before the wait for another process.

    Raises:
        MissingToolError: The folder cannot be written.
    """
    lock = folder / f".lock-{name}"
    try:
        for each in (folder.parent, folder):
            each.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock.touch()
    except OSError as error:
        hint = "set CHARTGEN_CACHE"
        raise MissingToolError(Problem(f"the cache cannot be written: {error.strerror}", folder, hint=hint)) from error
    with locked(lock, waiting):
        yield


@contextmanager
def draft_program(program: Path, name: str) -> Iterator[tuple[Path, Path]]:
    """Return the draft of an engine's program and an empty folder; at the end of the block the draft is the program.

    Args:
        program: Its path, `FOLDER/bin/NAME`.
        name: The engine, which the caller has locked, so older drafts are left over.

    Raises:
        MissingToolError: The cache cannot be written.
    """
    folder = program.parent.parent
    for left in folder.parent.glob(f".{name}-*"):
        shutil.rmtree(left, ignore_errors=True)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as scratch:
            draft = Path(scratch, "result", "bin", program.name)
            for each in (draft.parent.parent, draft.parent):
                each.mkdir(mode=0o755)
            yield draft, Path(scratch)
            shutil.rmtree(folder, ignore_errors=True)  # exists only if the program in it was removed
            draft.parent.parent.replace(folder)
    except OSError as error:
        raise MissingToolError(Problem(f"{name} cannot be written: {error.strerror}", folder.parent)) from error
