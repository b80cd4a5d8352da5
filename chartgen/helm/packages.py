"""Packaged charts: an archive, or one that Helm fetches from a registry or web server, becomes a chart's folder.

Third-party archives are unpacked into a temporary folder, file by file, with the limits of charts in folders;
members that are not plain files below one folder are rejected. Only the user's own argument can name a remote address.
"""

from __future__ import annotations

import gzip
import re
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from chartgen.errors import ChartgenError, Problem, UsageError
from chartgen.helm.chart_folder import LARGEST_CHART, LARGEST_FILE, MOST_FILES

UNREADABLE = (tarfile.TarError, zlib.error, OSError, EOFError, ValueError)
# An address without user and password, and the part that identifies a version: a tag, a digest, or the archive's name.
_OCI = re.compile(
    r"(?P<chart>oci://[A-Za-z0-9.-]{1,253}(?::\d{1,5})?(?:/[a-z0-9][a-z0-9._-]{0,127})+)"
    r"(?::(?P<version>[A-Za-z0-9][A-Za-z0-9._-]{0,127})|@sha256:[0-9a-f]{64})?"
)
# A registry on this machine rarely has a certificate; Helm 3 and Docker ask it without TLS too.
_HERE = re.compile(r"oci://(?:localhost|127(?:\.\d+){3})[:/]")
_ARCHIVE = re.compile(r"https://[A-Za-z0-9.-]{1,253}(?::\d{1,5})?/[^\s?#@]{1,1000}\.tgz")
_HINT = "give oci://REGISTRY/CHART:VERSION, or https://HOST/CHART-VERSION.tgz"
_PACKAGE_HINT = "package it with helm package"


def fetched(name: str, folder: Path, *, limit: float, plain_http: bool = False) -> Path:
    """Fetch a packaged chart with the user's own Helm and its logins, and return the archive.

    Args:
        name: Its address, as the user's own argument.
        folder: An empty folder.
        limit: Seconds.
        plain_http: Whether to query a registry without TLS; one on this machine always is.

    Raises:
        UsageError: The address does not name a chart.
        MissingToolError: It cannot be reached, or no suitable Helm is found.
        ChartgenError: The chart does not exist, the user has no access, or it is too large.
    """
    found = _OCI.fullmatch(name)
    if not found and not _ARCHIVE.fullmatch(name):
        raise UsageError(Problem(f"{name!r} is not an address of a chart", hint=_HINT))
    version = ["--version", found["version"].replace("_", "+")] if found and found["version"] else []
    address = found["chart"] if found and found["version"] else name
    plain = plain_http or bool(_HERE.match(name))
    flags = ["--destination", str(folder), *version, *(["--plain-http"] if plain else [])]
    from chartgen.helm.program import find_helm

    find_helm().pull([*flags, "--", address], limit, LARGEST_CHART)
    return next(iter(sorted(folder.iterdir())))


@contextmanager
def opened(path: Path) -> Iterator[tarfile.TarFile]:
    """Open an archive to read it from front to end, member by member.

    Mode `r|gz` does not work: it cannot read the header that Helm writes (python/cpython,
    tarfile._Stream._init_read_gz: the extra field is read as if it were compressed), and reports a broken archive.
    """
    with gzip.open(path) as plain, tarfile.open(fileobj=plain, mode="r|") as archive:
        yield archive


def unpack_chart(archive: Path, name: str, folder: Path) -> Path:
    """Unpack an archive as Helm does, without the first folder of each path, and return the chart's folder.

    Raises:
        ChartgenError: It is not a chart's archive, contains other than plain files below one folder, or is too large.
    """
    chart = folder / "chart"
    try:
        with opened(archive) as members:
            for member, path in _plain_files(members, name):
                file = chart / path
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("xb") as copy:
                    source = members.extractfile(member)
                    copy.write(source.read(LARGEST_FILE + 1) if source else b"")
    except UNREADABLE as error:
        why = "two of its files have one name" if isinstance(error, FileExistsError) else str(error)
        raise ChartgenError(Problem(f"is not an archive of a chart: {why}"[:200], name, hint=_PACKAGE_HINT)) from None
    if not (chart / "Chart.yaml").is_file():
        raise ChartgenError(Problem("is not an archive of a chart: it has no Chart.yaml", name, hint=_PACKAGE_HINT))
    return chart


def _plain_files(members: tarfile.TarFile, name: str) -> Iterator[tuple[tarfile.TarInfo, PurePosixPath]]:
    """Yield the files of an archive; raise at the first forbidden member."""
    size = count = 0
    for member in members:
        size, count = size + member.size, count + 1
        if fault := _fault(member, size, count):
            raise ChartgenError(Problem(fault, f"{name}:{member.name[:200]}", hint=_PACKAGE_HINT))
        if member.isfile():
            yield member, PurePosixPath(*PurePosixPath(member.name).parts[1:])


def _fault(member: tarfile.TarInfo, size: int, count: int) -> str:
    """Report why a member of an archive is rejected; empty when it is accepted."""
    path = PurePosixPath(member.name)
    if size > LARGEST_CHART or count > MOST_FILES:
        return f"the archive contains more than {LARGEST_CHART / 1e6:.0f} MB or {MOST_FILES:,} files"
    if member.size > LARGEST_FILE:
        return f"has {member.size / 1e6:.0f} MB, Helm reads at most {LARGEST_FILE / 1e6:.0f} MB of a file"
    if member.issym() or member.islnk():
        return "is a link"
    # of the content of a folder, Python and Go make different files
    if not member.isfile() and (not member.isdir() or member.size):
        return "is neither a file nor a folder"
    if path.is_absolute() or ".." in path.parts or "\\" in member.name or ":" in path.parts[0]:
        return "leads out of the archive"
    return "is not in the chart's folder" if member.isfile() and len(path.parts) == 1 else ""
