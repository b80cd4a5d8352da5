"""Packaged subcharts, `charts/*.tgz`: how large they are unpacked, and the schemas in them; nothing is unpacked.

Helm reads them too, by Go's rules and its own (helm.sh/helm/v4 pkg/chart/loader/archive). An archive that the two could
read differently is refused: what lint does not see, Helm must not use.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from chartgen.errors import Problem
from chartgen.findings import Finding
from chartgen.linter.schema_references import NAME

UNREADABLE = (tarfile.TarError, zlib.error, OSError, EOFError, ValueError)
# All subcharts of a chart together; Helm bounds each of them by that (pkg/chart/loader/archive), and reads them all.
LARGEST = 100 * 1024 * 1024
_DEEPEST = 10  # archives within archives; `helm package` writes none, other tools one
_COMMENT = "comment"  # what `git archive` writes for all members


class Archives(NamedTuple):
    """What is known of a chart's packaged subcharts.

    Args:
        schemas: Path in the chart, with the path in the archive behind it -> text of a schema.
        findings: Archives that cannot be read, and more than fits.
    """

    schemas: dict[str, str]
    findings: list[Finding]


class _TooMuchError(Exception):
    """The archives unpack to more than may be."""


def read_archives(folder: Path) -> Archives:
    """Read the packaged subcharts of a chart's folder and of the subcharts in it, as much as may be.

    Args:
        folder: The chart's folder; its files are no links out of it.
    """
    schemas: dict[str, str] = {}
    room = LARGEST
    for path in sorted(folder.rglob("charts/*.tgz")):
        name = path.relative_to(folder).as_posix()
        try:
            room = _read(path.read_bytes(), name, schemas, room)
        except _TooMuchError:
            message = f"the packaged subcharts hold more than {LARGEST / 1e6:.0f} MB, all of which Helm reads at once"
            problem = Problem(message, name, hint="remove what the chart does not need")
            return Archives(schemas, [Finding("chart-files", problem)])
        except UNREADABLE as error:
            problem = Problem(f"is no archive of a chart: {error}"[:200], name, hint="run helm dependency build again")
            return Archives(schemas, [Finding("chart-files", problem)])
    return Archives(schemas, [])


@contextmanager
def opened(path: Path) -> Iterator[tarfile.TarFile]:
    """Open an archive to be read from front to end, member by member.

    Not with `r|gz`: that cannot read the header that Helm writes (python/cpython, tarfile._Stream._init_read_gz: the
    extra field is read as if it were compressed), and takes the archive for a broken one.
    """
    with gzip.open(path) as plain, tarfile.open(fileobj=plain, mode="r|") as archive:
        yield archive


def _read(packed: bytes, name: str, schemas: dict[str, str], room: int, depth: int = 1) -> int:
    """Read an archive and those in it, take their schemas, and return the room that is left."""
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} archives lie in one another")
    with gzip.open(io.BytesIO(packed)) as stream:
        data = stream.read(room + 1)
    room -= len(data)
    if room < 0:
        raise _TooMuchError
    for path, content in _members(data):
        file = path.rpartition("/")[2]
        if file == NAME:
            schemas[f"{name}/{path}"] = content.decode("utf-8", "replace").removeprefix("\ufeff")
        elif file.endswith(".tgz"):
            room = _read(content, f"{name}/{path}", schemas, room, depth + 1)
    return room


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file of an archive, the path as Helm reads it: with `/`, and without `.` or `..`.

    Raises:
        ValueError: Go would read another archive.
    """
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            if {*archive.pax_headers} - {_COMMENT}:
                raise ValueError("it names its members by a header for all of them, which Helm does not heed")
            # Of a type that nobody knows, both readers take the content for a file's.
            if file := archive.extractfile(member) if member.type not in _LINKS else None:
                yield posixpath.normpath(member.name.replace("\\", "/")), file.read(len(data))
        if data[archive.offset :].strip(b"\0"):
            raise ValueError("it holds more behind its end")


_LINKS = (tarfile.LNKTYPE, tarfile.SYMTYPE)
