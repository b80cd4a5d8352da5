"""Files and folders written as a whole or not at all: a full disk, a killed process or two writers leave no half."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    if not path.parent.is_dir():
        raise ChartgenError(Problem("cannot be written: there is no such folder", path, hint="make the folder first"))
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


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Return an empty folder to fill, which takes the place of another in one step when the `with` block ends well.

    A process that is killed leaves the old folder or the new one, and a draft that the next call clears away.

    Args:
        path: The folder to be replaced; it need not exist.

    Raises:
        OSError: It cannot be written; what was there is still there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _clear_drafts(path)
    draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=_DRAFT, dir=path.parent))
    with _locked(draft):
        try:
            yield draft
            draft.chmod(0o755)
            if path.exists():
                _swap(draft, path)
            else:
                draft.rename(path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)


_DRAFT = ".draft"
_SECONDS = 60
# renameat2 with RENAME_EXCHANGE (linux/fs.h), renamex_np with RENAME_SWAP (macOS, sys/stdio.h): both are 2.
_EXCHANGE = 2
_AT_FDCWD = -100


def _swap(one: Path, other: Path) -> None:
    """Exchange two folders; where the file system cannot, the old one steps aside for a moment."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin":
        failed = libc.renamex_np(first, second, _EXCHANGE)
    else:
        call = getattr(libc, "renameat2", None)  # glibc 2.28 and musl 1.2.5 have it
        failed = call(_AT_FDCWD, first, _AT_FDCWD, second, _EXCHANGE) if call else -1
    if failed:
        aside = one.with_name(f"{one.name}{_DRAFT}")  # a draft too, so that it is cleared away
        other.rename(aside)
        try:
            one.rename(other)
        except OSError:
            aside.rename(other)
            raise
        shutil.rmtree(aside, ignore_errors=True)


def _clear_drafts(path: Path) -> None:
    """Remove drafts of this folder that no process works on any more, nor is only about to lock."""
    for draft in path.parent.glob(f".{path.name}.*{_DRAFT}"):
        with suppress(OSError), _locked(draft) as free:
            if free and time.time() - draft.stat().st_mtime > _SECONDS:
                shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder for a `with` block; gives False where another process holds it, or it is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)
