"""Packaged charts: an archive, or one that Helm fetches from a registry or web server, becomes a chart's folder.

Third-party archives are unpacked into a temporary folder, file by file, with the limits of charts in folders;
members that are not plain files below one folder are rejected. Only the user's own argument can name a remote address.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path

from chartgen.errors import ChartgenError, Problem, UsageError
from chartgen.helm.archives import ArchiveMember, path_in_chart, read_members
from chartgen.helm.chart_folder import HELMIGNORE, LARGEST_CHART, MOST_FILES

UNREADABLE = (zlib.error, OSError, EOFError, ValueError)
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


def unpack_chart(archive: Path, name: str, folder: Path) -> Path:
    """Unpack an archive as Helm does, without the first folder of each path, and return the chart's folder.

    Raises:
        ChartgenError: It is not a chart's archive, contains other than plain files below one folder, or is too large.
    """
    chart = folder / "chart"
    try:
        with gzip.open(archive) as stream:
            for path, data in _plain_files(stream, name):
                file = chart / path
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("xb") as copy:
                    copy.write(data)
    except UNREADABLE as error:
        why = "two of its files have one name" if isinstance(error, FileExistsError) else str(error)
        raise ChartgenError(Problem(f"is not an archive of a chart: {why}"[:200], name, hint=_PACKAGE_HINT)) from None
    if not (chart / "Chart.yaml").is_file():
        raise ChartgenError(Problem("is not an archive of a chart: it has no Chart.yaml", name, hint=_PACKAGE_HINT))
    return chart


def _plain_files(stream: BufferedIOBase, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield path in the chart and content of the files of an archive; raise at the first forbidden member."""
    size = 0
    for count, member in enumerate(read_members(stream), 1):
        size += len(member.data)
        try:
            _refuse(member, size, count)
            path = "" if member.is_folder else path_in_chart(member.name)[1]
            _refuse_hidden(path)
        except ValueError as error:
            raise ChartgenError(Problem(str(error), f"{name}:{member.name[:200]}", hint=_PACKAGE_HINT)) from None
        if path and path != HELMIGNORE:  # Helm does not apply that of an archive
            yield path, member.data


def _refuse(member: ArchiveMember, size: int, count: int) -> None:
    if size > LARGEST_CHART or count > MOST_FILES:
        raise ValueError(f"the archive contains more than {LARGEST_CHART / 1e6:.0f} MB or {MOST_FILES:,} files")
    if member.is_link:
        raise ValueError("is a link")
    if not member.is_file and not member.is_folder:
        raise ValueError("is neither a file nor a folder")
    if "\\" in member.name:
        raise ValueError("leads out of the archive")


def _refuse_hidden(path: str) -> None:
    """Refuse what Helm renders from an archive, and skips in the folder that lint makes of it."""
    parts = path.split("/")
    if path.startswith("templates/.") or (parts[0] in ("templates", "crds", "charts") and ".git" in parts):
        raise ValueError("is hidden, which Helm renders from an archive alone")
