"""Members of a chart's archive, read by the rules of Helm and Go, which differ from those of Python's tarfile.

Headers that only the two would read differently are rejected: Helm must not use content that lint does not see.
Sources: go1.26, src/archive/tar/reader.go and strconv.go; helm.sh/helm/v4, pkg/chart/loader/archive.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from io import BufferedIOBase
from typing import NamedTuple

from chartgen.helm.chart_folder import LARGEST_FILE

_BLOCK = 512
_LONG_NAME, _LONG_LINK, _PAX, _PAX_FOR_ALL = b"L", b"K", b"x", b"g"
_REGULAR, _OLD, _FOLDER, _SPARSE = b"0", b"\0", b"5", b"S"
_LINKS = (b"1", b"2")
_EMPTY = (*_LINKS, b"3", b"4", _FOLDER, b"6")  # types without content
_RECORD = re.compile(rb"([1-9]\d{0,6}) ([^=]+)=")
_TWICE = "two programs read it differently: "


class ArchiveMember(NamedTuple):
    """A member of an archive."""

    name: str
    kind: bytes  # type of its header
    data: bytes

    @property
    def is_file(self) -> bool:
        """Report whether it is a plain file."""
        return self.kind == _REGULAR

    @property
    def is_folder(self) -> bool:
        """Report whether it is a folder, which Helm skips."""
        return self.kind == _FOLDER

    @property
    def is_link(self) -> bool:
        """Report whether it is a link."""
        return self.kind in _LINKS


def read_members(stream: BufferedIOBase) -> Iterator[ArchiveMember]:
    """Yield the members of an unpacked archive from front to end.

    Raises:
        ValueError: Helm cannot read it, or other programs read it differently.
    """
    given: dict[bytes, str] = {}  # what the headers before a member give it, by their type
    for_all = False
    while (header := stream.read(_BLOCK)).strip(b"\0"):
        kind, size = _checked(header)
        padded = stream.read(size + -size % _BLOCK)
        if len(padded) % _BLOCK or len(padded) < size:
            raise ValueError("it is cut off")
        data = padded[:size]
        if kind in (_LONG_NAME, _LONG_LINK, _PAX, _PAX_FOR_ALL):
            if kind in given or {kind, *given} >= {_PAX, _LONG_NAME} or (kind == _PAX_FOR_ALL and (given or for_all)):
                raise ValueError(f"{_TWICE}several headers name one member")
            if padded[size:].strip(b"\0"):
                raise ValueError(f"{_TWICE}a header has more text behind its end")
            for_all = for_all or kind == _PAX_FOR_ALL  # its names are for no member, by Go's rules
            given |= {} if kind == _PAX_FOR_ALL else {kind: _pax_name(data) if kind == _PAX else _text(data)}
            continue
        name = given.get(_LONG_NAME) or given.get(_PAX) or _own_name(header)
        if kind == _OLD:
            if given:  # whether it is a folder, some readers decide by the name in the member's own header
                raise ValueError(f"{_TWICE}a header of an old form has a second name")
            kind = _FOLDER if name.endswith("/") else _REGULAR
        given = {}
        if kind in _EMPTY and size:
            raise ValueError(f"{_TWICE}a folder or link in it has content")
        if kind == _REGULAR and _number(header[100:108]) & ~0o7777 == 0o40000:
            raise ValueError(f"{_TWICE}a file in it has the mode of a folder")
        yield ArchiveMember(name, kind, data)


def path_in_chart(name: str) -> tuple[str, str]:
    """Return a file's first folder, which Helm leaves out whatever it is, and its path in the chart.

    Raises:
        ValueError: Helm rejects the name, or it leads out of the archive.
    """
    if {"/", "\\"} <= set(name):
        raise ValueError("has a name with both / and \\, which Helm shortens")
    first, _, rest = name.replace("\\", "/").partition("/")
    path = posixpath.normpath(rest)
    if first in ("", "..") or ":" in first or rest.startswith("/") or path.startswith(".."):
        raise ValueError("leads out of the archive")
    if path == ".":
        raise ValueError("is not in the chart's folder")
    return first, path


def _checked(header: bytes) -> tuple[bytes, int]:
    """Return a member's type and size; raise for a header that is damaged, or of a form that readers disagree on."""
    if len(header) < _BLOCK:
        raise ValueError("it is cut off")
    if sum(header[:148]) + sum(b" " * 8) + sum(header[156:]) != _number(header[148:156]):
        raise ValueError("a header in it is damaged")
    # of other forms, some readers take the part behind for the beginning of a name, others for times
    if header[500 if _is_ustar(header) else 345 :].strip(b"\0"):
        raise ValueError(f"{_TWICE}a header of an old form has a second part of a name")
    kind, size = header[156:157], _number(header[124:136])
    if kind == _SPARSE:
        raise ValueError(f"{_TWICE}a file in it has holes")
    if size > LARGEST_FILE:
        limit = LARGEST_FILE / 1e6
        raise ValueError(f"a file in it has {size / 1e6:.0f} MB, Helm reads at most {limit:.0f} MB of a file")
    return kind, size


def _is_ustar(header: bytes) -> bool:
    return header[257:263] == b"ustar\0"


def _number(field: bytes) -> int:
    text = field.strip(b" \0")
    if not re.fullmatch(rb"[0-7]*", text):
        raise ValueError("a header in it has a number that is not octal")
    return int(text or b"0", 8)


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _own_name(header: bytes) -> str:
    prefix = _text(header[345:500]) if _is_ustar(header) else ""
    return f"{prefix}/{_text(header[:100])}" if prefix else _text(header[:100])


def _pax_name(data: bytes) -> str:
    """Return the name that records of a pax header give; empty for none."""
    name = b""
    while data:
        found = _RECORD.match(data)
        record = data[: int(found[1])] if found else b""
        if not found or len(record) < int(found[1]) or found.end() >= len(record) or not record.endswith(b"\n"):
            raise ValueError("a pax header in it is damaged")
        data, key, value = data[len(record) :], found[2], record[found.end() : -1]
        if key == b"size" or key.startswith(b"GNU.sparse") or (key == b"path" and (not value or b"\0" in value)):
            raise ValueError(f"{_TWICE}a pax header changes a size, or gives no name")
        name = value if key == b"path" else name
    return name.decode("utf-8", "surrogateescape")
