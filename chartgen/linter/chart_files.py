"""Read any chart before Helm does: its folder and packaged subcharts.

Packaged subcharts, `charts/*.tgz`, are not unpacked. Helm reads them by Go's rules and its own (helm.sh/helm/v4
pkg/chart/loader/archive). An archive that the two could read differently is rejected: Helm must not use content that
lint does not see.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from chartgen.errors import Problem
from chartgen.files import checkout
from chartgen.findings import NOT_RENDERED, Finding
from chartgen.helm.archives import path_in_chart, read_members
from chartgen.helm.chart import Chart
from chartgen.helm.chart_folder import LINK_OUT, read_folder
from chartgen.helm.packages import UNREADABLE
from chartgen.helm.schema import SCHEMA_FILE


class FolderChart(NamedTuple):
    """A chart read from its folder."""

    chart: Chart  # the chart's text files, without those that `.helmignore` excludes
    findings: list[Finding]  # faults that keep Helm from reading it, or change what Helm reads
    digest: str  # identifies this content, including files which are not text
    data: dict[str, bytes]  # its binary files, path -> bytes; those of subcharts are left out
    # Further schemas that Helm may apply: those of packaged subcharts, and those that a third-party `.helmignore`
    # excludes by lint's reading
    schemas: dict[str, str]
    # Objects that Helm installs without rendering, `crds/` of the chart and of its subcharts, path -> text
    crds: dict[str, str]
    # Templates of packaged subcharts that have the word `lookup`, by the path of an unpacked subchart
    packaged: dict[str, str]


def read_chart(path: Path) -> FolderChart:
    """Read any chart's folder, else ChartgenError; do not follow links out of it, or load oversized files."""
    read = read_folder(path)
    findings, schemas = [_fault(path, problem) for problem in read.problems], read.schemas
    packaged = Archives({}, {}, {}, [])
    crds = {name: text for name, text in read.texts.items() if is_crd(name)}
    if not findings:
        packaged = read_archives(path)
        findings, schemas, crds = packaged.findings, schemas | packaged.schemas, crds | packaged.crds
    data = {name: content for name, content in read.data.items() if not name.startswith("charts/")}
    return FolderChart(Chart(read.name, read.texts), findings, read.digest, data, schemas, crds, packaged.templates)


def _fault(chart: Path, problem: Problem) -> Finding:
    """Return the finding of a fault; Helm follows a link to another folder of the checkout, which lint must not."""
    root, real = checkout(chart), Path(os.path.realpath(chart / str(problem.path)))
    if problem.message == LINK_OUT[0] and root and real.is_relative_to(root):
        hint = "lint the package, helm package follows the link; or replace it by a copy"
        return Finding(NOT_RENDERED, problem._replace(hint=hint), "unchecked")
    return Finding("chart-files", problem)


# All subcharts of a chart together; Helm applies the limit to each (pkg/chart/loader/archive), and reads them all.
LARGEST = 100 * 1024 * 1024
_DEEPEST = 10  # nested archives; `helm package` writes none, other tools one level
# helm.sh/helm/v4 pkg/chart/v2: CRDObjects, hasManifestExtension; the folder of an archive lies between.
_CRDS = re.compile(r"(?:charts/(?:[^/]+\.tgz/)?[^/]+/)*crds/.*\.(?i:ya?ml|json)", re.DOTALL)
_ARCHIVE = re.compile(r"[^/]+\.tgz/")


class Archives(NamedTuple):
    """Content of a chart's packaged subcharts."""

    schemas: dict[str, str]  # path in the chart, followed by the path in the archive -> text of a schema
    crds: dict[str, str]  # the same of the objects that Helm installs without rendering
    templates: dict[str, str]  # those with the word `lookup`, by the path of an unpacked subchart
    findings: list[Finding]


class _TooMuchError(Exception):
    """The archives exceed the limit when unpacked."""


def is_crd(path: str) -> bool:
    """Report whether a path in a chart is a file that Helm installs unchanged, of the chart or of a subchart."""
    return bool(_CRDS.fullmatch(path))


def read_archives(folder: Path) -> Archives:
    """Read the packaged subcharts of a chart's folder and of its subcharts, up to the limits."""
    read = Archives({}, {}, {}, [])
    room = LARGEST
    for path in sorted(folder.rglob("charts/*.tgz")):
        name = path.relative_to(folder).as_posix()
        try:
            room = _read(path.read_bytes(), name, read, room)
        except (_TooMuchError, *UNREADABLE) as error:
            message, hint = f"is not an archive of a chart: {error}"[:200], "run helm dependency build again"
            if isinstance(error, _TooMuchError):
                message = f"the packaged subcharts contain more than {LARGEST / 1e6:.0f} MB, which Helm reads at once"
                hint = "remove what the chart does not need"
            return read._replace(findings=[Finding("chart-files", Problem(message, name, hint=hint))])
    return read


def named_in_archive(finding: Finding, name: str, chart: Path) -> Finding:
    """Return a finding of an unpacked chart with its place in the archive: `x.tgz:templates/a.yaml`."""
    problem = finding.problem
    path = problem.path
    if isinstance(path, Path) and path.is_relative_to(chart):
        path = f"{name}:{path.relative_to(chart).as_posix()}"
    message, hint = (
        text.replace(f"{chart}/", "").replace(str(chart), name) for text in (problem.message, problem.hint)
    )
    return finding._replace(problem=problem._replace(message=message, path=path, hint=hint))


def _read(packed: bytes, name: str, read: Archives, room: int, depth: int = 1) -> int:
    """Read an archive and its nested archives, collect their texts, and return the remaining room."""
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} archives lie in one another")
    with gzip.open(io.BytesIO(packed)) as stream:
        data = stream.read(room + 1)
    room -= len(data)
    if room < 0:
        raise _TooMuchError
    for path, content in _members(data):
        file, whole = path.rpartition("/")[2], f"{name}/{path}"
        if file.endswith(".tgz"):
            room = _read(content, whole, read, room, depth + 1)
        elif file == SCHEMA_FILE or is_crd(whole):
            texts = read.schemas if file == SCHEMA_FILE else read.crds
            texts[whole] = content.decode("utf-8", "replace").removeprefix("\ufeff")
        elif "templates/" in path and b"lookup" in content:
            read.templates[_ARCHIVE.sub("", whole)] = content.decode("utf-8", "replace")
    return room


def _members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file of an archive, its path as Helm reads it, behind its first folder.

    Helm takes the content of an unknown type for that of a file.
    """
    for member in read_members(io.BytesIO(data)):
        if not member.is_folder and not member.is_link:
            yield "/".join(path_in_chart(member.name)), member.data
