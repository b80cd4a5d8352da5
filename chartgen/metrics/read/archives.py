"""Logs inside archives (tar, gzip-compressed or not, and zip), which strangers may have written.

Nothing is unpacked to a file: members are read as streams, links are not followed, and members and unpacked bytes are
counted. Tar is read here block by block: tarfile keeps extended headers of any size in memory, and takes a damaged
header for the end of the archive.
"""

from __future__ import annotations

import gzip
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BufferedReader, RawIOBase
from math import inf
from pathlib import PurePosixPath
from typing import Any

from chartgen.metrics.read.lines import is_packed

_DAMAGED = (EOFError, UnicodeError, NotImplementedError, struct.error, zlib.error, tarfile.TarError, zipfile.BadZipFile)
UNREADABLE: tuple[type[Exception], ...] = (OSError, *_DAMAGED)
MOST = 10_000  # members
LARGEST = 1 << 34  # unpacked bytes: the logs of a thousand ranks are some gigabytes
_EMPTY = b"123456"  # links, devices and folders have no content
_EXTENDED = b"xgLKX"  # headers of pax, GNU (long name and link) and Solaris
_LONGEST = 1 << 20  # bytes of such a header
_FILES = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others reserve as much memory as the archive requests
_PAX = re.compile(rb"^\d+ (path=.*|size=\d{1,20})$", re.MULTILINE)


class _Counted(RawIOBase):
    """A part of a stream; what is read of it reduces the room of the whole archive."""

    def __init__(self, read: Callable[[int], bytes], room: list[int], size: float = inf) -> None:
        self._read, self._room, self._left, self._done = read, room, size, 0

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._done

    def readinto(self, buffer: Any) -> int:
        piece = self._read(int(min(len(buffer), self._left)))
        if not piece and 0 < self._left < inf:
            raise EOFError("it is truncated")
        buffer[: len(piece)] = piece
        self._left, self._done = self._left - len(piece), self._done + len(piece)
        self._room[0] -= len(piece)
        if self._room[0] < 0:
            raise OSError(f"its files have more than {LARGEST >> 30} GB")
        return len(piece)


def read_members(place: str, archive: BufferedReader) -> Iterator[tuple[str, BufferedReader[Any]]]:
    """Yield the name, `ARCHIVE:PATH`, and the unpacked stream of each file; read a stream before the next is asked for.

    Raises:
        OSError, or another one of UNREADABLE: It cannot be read, or is too large.
    """
    room, found = [LARGEST], False
    members = _zip(archive, room) if place.endswith(".zip") else _tar(archive, room)
    for number, (name, stream) in enumerate(members):
        if number == MOST:
            raise OSError(f"it has more than {MOST:,} files")
        if stream and not PurePosixPath(name).name.startswith("."):
            found = True
            plain = _Counted(gzip.GzipFile(fileobj=stream).read, room) if is_packed(stream) else None
            yield f"{place}:{name}", BufferedReader(plain) if plain else stream
    if not found:
        raise OSError("it has no files")


def _zip(archive: BufferedReader, room: list[int]) -> Iterator[tuple[str, BufferedReader[Any] | None]]:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            if member.flag_bits & 1 or member.compress_type not in _METHODS:
                raise OSError(f"{member.filename} is encrypted, or compressed by another method than deflate")
            with opened.open(member) as stream:
                is_file = not member.is_dir() and member.external_attr >> 28 in (0, 8)  # the type in a Unix file mode
                yield member.filename, BufferedReader(_Counted(stream.read, room)) if is_file else None


def _tar(archive: BufferedReader, room: list[int]) -> Iterator[tuple[str, BufferedReader[Any] | None]]:
    plain = gzip.GzipFile(fileobj=archive).read if is_packed(archive) else archive.read
    stream, own = BufferedReader(_Counted(plain, room)), dict[bytes, bytes]()
    while (header := stream.read(tarfile.BLOCKSIZE)).strip(b"\0"):
        member = tarfile.TarInfo.frombuf(header, "utf-8", "replace")
        size = 0 if member.type in _EMPTY else int(own.get(b"size", member.size))
        if size < 0 or member.type == tarfile.GNUTYPE_SPARSE:
            raise OSError(f"{member.name} has a size below zero, or is a sparse file")
        content = BufferedReader(_Counted(stream.read, [size], size))
        if member.type in _EXTENDED:
            text = content.read(_LONGEST + 1)
            if len(text) > _LONGEST:
                raise OSError(f"{member.name} has a header of {size:,} bytes")
            if member.type == tarfile.GNUTYPE_LONGNAME:
                own[b"path"] = text.rstrip(b"\0")
            elif member.type in b"xX":
                own |= dict(item.split(b"=", 1) for item in _PAX.findall(text))
        else:
            name = own.pop(b"path", b"").decode("utf-8", "replace") or member.name
            yield name, content if member.type in _FILES else None
            own.clear()
        while content.read(_LONGEST):
            pass
        stream.read(-size % tarfile.BLOCKSIZE)
    if not header:
        raise EOFError("it is truncated")
