"""Packaged subcharts, `charts/*.tgz`: how large they are unpacked, and the schemas in them; nothing is unpacked."""

from __future__ import annotations

import gzip
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


class Archives(NamedTuple):
    """What is known of a chart's packaged subcharts.

    Args:
        schemas: Path in the chart, with the path in the archive behind it -> text of a schema.
        findings: Archives that cannot be read, and more than fits.
    """

    schemas: dict[str, str]
    findings: list[Finding]


def read_archives(folder: Path) -> Archives:
    """Read the packaged subcharts of a chart's folder, as much as may be.

    Args:
        folder: The chart's folder; its files are no links out of it.
    """
    schemas: dict[str, str] = {}
    total = 0
    for path in sorted(folder.glob("charts/*.tgz")):
        name = path.relative_to(folder).as_posix()
        try:
            total += _read(path, name, schemas, LARGEST - total)
        except UNREADABLE as error:
            problem = Problem(f"is no archive of a chart: {error}"[:200], name, hint="run helm dependency build again")
            return Archives(schemas, [Finding("chart-files", problem)])
        if total > LARGEST:
            message = f"the packaged subcharts hold more than {LARGEST / 1e6:.0f} MB, all of which Helm reads at once"
            problem = Problem(message, name, hint="remove what the chart does not need")
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


def _read(path: Path, name: str, schemas: dict[str, str], room: int) -> int:
    """Read an archive member by member, take its schemas, and return its unpacked size, or a size above the room."""
    size = 0
    with opened(path) as archive:
        for member in archive:
            size += member.size
            if size > room:
                break
            if member.isfile() and member.name.rpartition("/")[2] == NAME and (file := archive.extractfile(member)):
                schemas[f"{name}/{member.name}"] = file.read().decode("utf-8", "replace")
    return size
