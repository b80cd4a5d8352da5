"""Logs inside archives (tar, gzip-compressed or not, and zip), which strangers may have written.

Nothing is unpacked to a file and no link is followed: files are read as streams, and they and their bytes are counted.
"""

from __future__ import annotations

import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from io import BufferedReader, RawIOBase
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, cast

from chartgen.metrics.read.lines import unpacked

if TYPE_CHECKING:
    from typing_extensions import Self

MOST = 10_000  # files
LARGEST = 1 << 34  # unpacked bytes: the logs of a thousand ranks are some gigabytes
DAMAGED = (UnicodeError, NotImplementedError, struct.error, zlib.error, tarfile.TarError, zipfile.BadZipFile)
_HEADER = 1 << 20  # bytes of an extended header, which contains a name
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others reserve as much memory as the archive requests


class _Member(tarfile.TarInfo):
    """A header; tarfile keeps some whole in memory, of any size, and takes a damaged one for the archive's end."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        try:
            member = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf.strip(b"\0"):
                raise OSError(str(error)) from None
            raise  # the end
        if member.type == tarfile.GNUTYPE_SPARSE or not 0 <= member.size <= (LARGEST if member.isreg() else _HEADER):
            raise OSError(f"{member.name} is sparse, or its size of {member.size:,} bytes is not possible")
        return member

    def _proc_gnusparse_10(self, *_: object) -> None:
        raise OSError(f"{self.name} is sparse")


def read_members(name: str, archive: BufferedReader) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the path in the archive and the unpacked stream of each file, which must be read before the next.

    Raises:
        OSError, EOFError, or one of DAMAGED: It cannot be read, or is too large.
    """
    size = count = 0
    for path, length, stream in _zip(archive) if name.endswith(".zip") else _tar(archive):
        count += 1
        if size + length > LARGEST or count > MOST:
            raise OSError(f"it has more than {LARGEST >> 30} GB, or {MOST:,} files")
        if not PurePosixPath(path).name.startswith("."):
            plain = unpacked(stream)
            yield path, plain
            size += max(0, plain.tell() - length)
        size += length
    if not count:
        raise OSError("it has no files")


def _zip(archive: BufferedReader) -> Iterator[tuple[str, int, BufferedReader]]:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            if member.flag_bits & 1 or member.compress_type not in _METHODS:
                raise OSError(f"{member.filename} is encrypted, or compressed by another method than deflate")
            if not member.is_dir() and member.external_attr >> 28 in (0, 8):  # the type of file in a Unix mode
                with opened.open(member) as stream:
                    yield member.filename, member.file_size, BufferedReader(cast(RawIOBase, stream))


def _tar(archive: BufferedReader) -> Iterator[tuple[str, int, BufferedReader]]:
    with tarfile.open(fileobj=unpacked(archive), mode="r|", tarinfo=_Member) as opened:
        for member in opened:
            if member.isreg() and (stream := opened.extractfile(member)):
                yield member.name, member.size, cast(BufferedReader, stream)
