"""Logs as blocks of whole lines: files, gzip, folders of per-rank files, standard input; archives.py reads archives."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import IO, cast

from chartgen.errors import ChartgenError, Problem, UsageError
from chartgen.files import files_in, refuse_pipe

STDIN = "-"
BLOCK = 1 << 18
# Longer than any line of a log, even a list of all step times; a longer line is not text.
_LONGEST = 1 << 24
_GZIP = b"\x1f\x8b"
_EVENTS = "tfevents"


def find_logs(places: Iterable[str]) -> list[str]:
    """Return the logs at some places: files unchanged, the files of a folder by name, `-` for standard input.

    Raises:
        ChartgenError: A place does not exist, or a folder is empty.
    """
    found: list[str] = []
    for place in places:
        path = Path(place)
        refuse_pipe(path)
        if place == STDIN or path.is_file() or path.is_fifo() or path.is_char_device():
            found.append(place)
        elif path.is_dir():
            if not (files := files_in(path)):
                raise ChartgenError(Problem("the folder has no files", path, hint="name those that links there name"))
            found += sorted(map(str, files))
        else:
            raise UsageError(Problem("no such log", place, hint="name a file, folder or archive, or - for the input"))
    return found


def is_events(place: str) -> bool:
    """Report whether a file is an event file, by its name, as TensorBoard does."""
    return _EVENTS in Path(place).name


def read_blocks(place: str) -> Iterator[bytes]:
    """Yield a log in blocks of whole lines, in constant memory; carriage returns end lines too.

    Raises:
        ChartgenError: It is unreadable, truncated within gzip, or not text.
    """
    try:
        with nullcontext(sys.stdin.buffer) if place == STDIN else Path(place).open("rb") as stream:
            plain = stream if place == STDIN else unpacked(cast(BufferedReader, stream))
            yield from split_blocks(iter(partial(plain.read, BLOCK), b""), place)
    except (OSError, EOFError, zlib.error) as error:
        text = (error.strerror if isinstance(error, OSError) else None) or str(error).rstrip(".")
        raise ChartgenError(Problem(f"cannot be read: {text}", place)) from error


def split_blocks(pieces: Iterable[bytes], place: str = STDIN) -> Iterator[bytes]:
    """Yield pieces of a log, text or else ChartgenError, as blocks of whole lines; a last one needs no end."""
    rest: list[bytes] = []
    size = 0
    for piece in pieces:
        text = piece.replace(b"\r", b"\n")
        rest.append(text)
        size += len(text)
        end = text.rfind(b"\n") + 1
        if end and size >= BLOCK:
            rest[-1] = text[:end]
            yield b"".join(rest)
            rest, size = [text[end:]], len(text) - end
        elif size > _LONGEST:
            problem = f"has no line end within {_LONGEST >> 20} MB, so it is not a log"
            raise ChartgenError(Problem(problem, place, hint="name the program's text log"))
    if last := b"".join(rest):
        yield last if last.endswith(b"\n") else last + b"\n"


def unpacked(stream: BufferedReader) -> IO[bytes]:
    """Return a stream without its compression by gzip, if it has one."""
    if stream.peek(len(_GZIP))[: len(_GZIP)] != _GZIP:
        return stream
    import gzip

    return cast(IO[bytes], gzip.GzipFile(fileobj=stream))
