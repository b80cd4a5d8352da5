"""Write files and folders whole or not at all, even on a full disk, after a kill or with two writers."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chartgen.errors import ChartgenError, Problem, UsageError


def write_whole(path: Path, content: str | bytes, *, parents: bool = False) -> None:
    """Write a file in one step: first a draft beside it, then a rename.

    A device or pipe, such as /dev/stdout, is written directly.

    Args:
        content: Its content; text is written as UTF-8 with its line ends unchanged.
        parents: Whether to make its folder; else the folder must exist.

    Raises:
        ChartgenError: It cannot be written, or a link leads out of its folder; the old content is kept.
    """
    data = content.encode() if isinstance(content, str) else content
    hint = "nothing was changed; choose another file"
    try:
        stream = str(path.parent) in _STREAMS
        real = path if stream else linked_within(path)
        if parents:
            real.parent.mkdir(parents=True, exist_ok=True)
        elif not real.parent.is_dir():
            raise ChartgenError(Problem("cannot be written: no such folder", path, hint="create the folder first"))
        if stream or (real.exists() and not real.is_file()):
            real.write_bytes(data)
        else:
            replace_file(real, data)
    except OSError as error:
        raise ChartgenError(Problem(f"cannot be written: {error.strerror}", path, hint=hint)) from None


def checkout(path: Path | None = None) -> Path | None:
    """Return the root of the Git checkout around a folder, by default the working one; a stranger may be its author."""
    here = path.resolve() if path else Path.cwd()
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), None)


def linked_within(path: Path) -> Path:
    """Return the real path of a file or folder to write, with links followed inside its folder only.

    In a third-party checkout its name may be a link to any file of the user. Links above the checkout, or above the
    working directory outside of one, are the user's own.

    Raises:
        ChartgenError: A link leads out of the folder that the path names, or out of the checkout.
    """
    named, here = Path(os.path.abspath(path)), checkout() or Path.cwd()  # noqa: PTH100  resolve() would follow the links
    real = Path(os.path.realpath(named))
    roots = [named.parent, *([here] if named.is_relative_to(here) else [])]
    if all(real.is_relative_to(os.path.realpath(root)) for root in roots):
        return real
    raise ChartgenError(Problem("a link leads out of its folder", path, hint=f"remove the link, or name {real}"))


def home_expanded(path: str | Path) -> Path:
    """Return a path with the home folder in place of its `~`; UsageError if that folder is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(Problem("the home folder is unknown", path, hint="set HOME to an absolute path")) from None


def refuse_pipe(path: Path) -> None:
    """Refuse a named pipe: its writer may never come; the pipe that a shell opens for <(command) has one."""
    if path.is_fifo() and not path.is_relative_to("/dev") and not path.is_relative_to("/proc"):
        raise ChartgenError(Problem("is a pipe, not a file", path, hint="write its content to a file"))


def files_in(folder: Path) -> list[Path]:
    """Return the visible files below a folder by name, without those that a link there takes from elsewhere."""
    whole = folder.resolve()
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return sorted(path for path in found if not path.is_symlink() or path.resolve().is_relative_to(whole))


def replace_file(path: Path, content: str | bytes) -> None:
    """Replace a file, or a link, in one step; the new file keeps the permissions of the old one, but to execute it.

    Raises:
        OSError: It cannot be written; the old content is kept.
    """
    import tempfile

    mode = path.stat().st_mode & 0o666 if path.exists() else 0o666 & ~_umask()
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(descriptor)
        Path(draft).chmod(mode)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return the umask of the process, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Return an empty folder to fill; it replaces the folder at `path` in one step when the `with` block succeeds.

    If the process is killed, either the old or the new folder remains, and a draft that the next call removes.

    Args:
        path: The folder to replace; it need not exist.

    Raises:
        OSError: It cannot be written; the old content is kept.
    """
    import shutil
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    _clear_drafts(path)
    draft = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=_DRAFT, dir=path.parent))
    with locked(draft):
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
# Links of the system to what the process writes to: /dev/stdout, and >(command) of a shell.
_STREAMS = ("/dev", "/dev/fd")
_SECONDS = 60
# renameat2 with RENAME_EXCHANGE (linux/fs.h), renamex_np with RENAME_SWAP (macOS, sys/stdio.h): both are 2.
_EXCHANGE = 2
_AT_FDCWD = -100


def _swap(one: Path, other: Path) -> None:
    """Exchange two folders; if the file system cannot, move the old one aside first."""
    import ctypes
    import shutil

    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin":
        failed = libc.renamex_np(first, second, _EXCHANGE)
    else:
        call = getattr(libc, "renameat2", None)  # needs glibc 2.28 or musl 1.2.5
        failed = call(_AT_FDCWD, first, _AT_FDCWD, second, _EXCHANGE) if call else -1
    if failed:
        aside = one.with_name(f"{one.name}{_DRAFT}")  # also a draft, so it is cleaned up
        other.rename(aside)
        try:
            one.rename(other)
        except OSError:
            aside.rename(other)
            raise
        shutil.rmtree(aside, ignore_errors=True)


def _clear_drafts(path: Path) -> None:
    """Remove drafts of this folder that no running process uses or is about to lock."""
    import shutil

    for draft in path.parent.glob(f".{path.name}.*{_DRAFT}"):
        with suppress(OSError), locked(draft) as free:
            if free and time.time() - draft.stat().st_mtime > _SECONDS:
                shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def locked(path: Path, waiting: Callable[[], None] | None = None) -> Iterator[bool]:
    """Lock a file or folder for a `with` block; the system releases it when the process ends.

    Args:
        path: The file or folder.
        waiting: Called before waiting for another process's lock; without it, the call does not wait.

    Returns:
        False if the path cannot be opened, or if another process has locked it and `waiting` is missing.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        yield _lock(descriptor, waiting)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, waiting: Callable[[], None] | None) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if waiting is None:
            return False
        waiting()
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    return True
