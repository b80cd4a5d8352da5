"""Packaged charts: an archive, or one that Helm fetches from a registry or a web server, linted as its folder would be.

An archive is a stranger's: it is unpacked into a temporary folder, file by file, by the same limits as charts in
folders; what is no plain file below one folder is refused. Only a user's own argument names a place in the network.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from chartgen.errors import ChartgenError, Problem, UsageError
from chartgen.findings import Finding
from chartgen.helm.program import find_helm
from chartgen.linter.archives import UNREADABLE, opened
from chartgen.linter.chart_files import LARGEST_CHART, LARGEST_FILE, MOST_FILES

_ENDINGS = (".tgz", ".tar.gz")
_REMOTE = re.compile(r"(?:oci|https?)://")
# An address without user and password, and what distinguishes a version: a tag, a digest, or an archive's own name.
_OCI = re.compile(
    r"(?P<chart>oci://[A-Za-z0-9.-]{1,253}(?::\d{1,5})?(?:/[a-z0-9][a-z0-9._-]{0,127})+)"
    r"(?::(?P<version>[A-Za-z0-9][A-Za-z0-9._-]{0,127})|@sha256:[0-9a-f]{64})?"
)
_ARCHIVE = re.compile(r"https://[A-Za-z0-9.-]{1,253}(?::\d{1,5})?/[^\s?#@]{1,1000}\.tgz")
_HINT = "give oci://REGISTRY/CHART:VERSION, or https://HOST/CHART-VERSION.tgz"
_AGAIN = "package it with helm package"


def is_remote(name: str) -> bool:
    """Report whether a name is an address in the network."""
    return bool(_REMOTE.match(name))


def is_archive(path: Path) -> bool:
    """Report whether a file is named as a packaged chart is."""
    return path.name.endswith(_ENDINGS)


def fetched(name: str, folder: Path, *, limit: float, plain_http: bool = False) -> Path:
    """Fetch a packaged chart with the user's own Helm and what that is logged in to.

    Args:
        name: Its address, as the user's own argument.
        folder: An empty folder.
        limit: Seconds that it may take.
        plain_http: Whether a registry is asked without TLS.

    Returns:
        The archive.

    Raises:
        UsageError: The address is none of a chart.
        MissingToolError: It cannot be reached, or there is no fitting Helm.
        ChartgenError: There is no such chart, the user may not have it, or it is too large.
    """
    found = _OCI.fullmatch(name)
    if not found and not _ARCHIVE.fullmatch(name):
        raise UsageError(Problem(f"{name!r} is no address of a chart", hint=_HINT))
    version = ["--version", found["version"].replace("_", "+")] if found and found["version"] else []
    address = found["chart"] if found and found["version"] else name
    flags = ["--destination", str(folder), *version, *(["--plain-http"] if plain_http else [])]
    find_helm().pull([*flags, "--", address], limit, LARGEST_CHART)
    return next(iter(sorted(folder.iterdir())))


def unpacked(archive: Path, name: str, folder: Path) -> Path:
    """Unpack an archive as Helm reads it: the first folder of each path is left out.

    Args:
        archive: The file.
        name: What it is called in messages.
        folder: An empty folder.

    Returns:
        The chart's folder.

    Raises:
        ChartgenError: It is no archive of a chart, holds what is no plain file below one folder, or too much.
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
        raise ChartgenError(Problem(f"is no archive of a chart: {why}"[:200], name, hint=_AGAIN)) from None
    if not (chart / "Chart.yaml").is_file():
        raise ChartgenError(Problem("is no archive of a chart: it has no Chart.yaml", name, hint=_AGAIN))
    return chart


def _plain_files(members: tarfile.TarFile, name: str) -> Iterator[tuple[tarfile.TarInfo, PurePosixPath]]:
    """Walk the files of an archive, and stop at the first that a chart must not have."""
    size = count = 0
    for member in members:
        size, count = size + member.size, count + 1
        if fault := _fault(member, size, count):
            raise ChartgenError(Problem(fault, f"{name}:{member.name[:200]}", hint=_AGAIN))
        if member.isfile():
            yield member, PurePosixPath(*PurePosixPath(member.name).parts[1:])


def _fault(member: tarfile.TarInfo, size: int, count: int) -> str:
    """Report why a member of an archive is refused; empty when it is taken."""
    path = PurePosixPath(member.name)
    if size > LARGEST_CHART or count > MOST_FILES:
        return f"the archive holds more than {LARGEST_CHART / 1e6:.0f} MB or {MOST_FILES:,} files"
    if member.size > LARGEST_FILE:
        return f"has {member.size / 1e6:.0f} MB, Helm reads at most {LARGEST_FILE / 1e6:.0f} MB of a file"
    if member.issym() or member.islnk():
        return "is a link"
    if not member.isfile() and not member.isdir():
        return "is neither a file nor a folder"
    if path.is_absolute() or ".." in path.parts or "\\" in member.name or ":" in path.parts[0]:
        return "leads out of the archive"
    return "is not in the chart's folder" if member.isfile() and len(path.parts) == 1 else ""


def named(finding: Finding, name: str, chart: Path) -> Finding:
    """Return a finding in an unpacked chart with the place in its archive: `x.tgz:templates/a.yaml`."""
    problem = finding.problem
    path = problem.path
    if isinstance(path, Path) and path.is_relative_to(chart):
        path = f"{name}:{path.relative_to(chart).as_posix()}"
    message, hint = (
        text.replace(f"{chart}/", "").replace(str(chart), name) for text in (problem.message, problem.hint)
    )
    return replace(finding, problem=problem._replace(message=message, path=path, hint=hint))
