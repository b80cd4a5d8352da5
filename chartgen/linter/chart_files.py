"""Read any chart before Helm does: its folder, packaged subcharts, and circular subcharts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from chartgen.errors import ChartgenError
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.helm.chart_folder import file_fault, read_folder
from chartgen.helm.yaml import Document, Keys, load, require_map
from chartgen.linter.archives import is_crd, read_archives

_FOLDER = "file://"


class FolderChart(NamedTuple):
    """A chart read from its folder.

    Args:
        chart: The chart's text files, without those that `.helmignore` excludes.
        findings: Faults that keep Helm from reading it, or change what Helm reads.
        digest: Identifies this content, including files which are not text.
        data: Its binary files, path -> bytes; those of subcharts are left out.
        schemas: Further schemas that Helm may apply: those of packaged subcharts, and those that a
            third-party `.helmignore` excludes by lint's reading.
        crds: Objects that Helm installs without rendering, `crds/` of the chart and of its subcharts, path -> text.
    """

    chart: Chart
    findings: list[Finding]
    digest: str
    data: dict[str, bytes]
    schemas: dict[str, str]
    crds: dict[str, str]


def read_chart(path: Path) -> FolderChart:
    """Read the folder of any chart; do not follow links out of it, and do not load oversized files.

    Raises:
        ChartgenError: The folder is not a chart.
    """
    read = read_folder(path)
    findings, schemas = [Finding("chart-files", problem) for problem in read.problems], read.schemas
    crds = {name: text for name, text in read.texts.items() if is_crd(name)}
    if not findings:
        packaged = read_archives(path)
        findings, schemas, crds = packaged.findings, schemas | packaged.schemas, crds | packaged.crds
    data = {name: content for name, content in read.data.items() if not name.startswith("charts/")}
    return FolderChart(Chart(read.name, read.texts), [*findings, *_circles(path)], read.digest, data, schemas, crds)


def _circles(path: Path) -> Iterator[Finding]:
    """Find subcharts in folders that lead back to the chart: Helm would pack it into itself."""
    chart = path.resolve()
    for keys, folder, head in _subcharts(chart):
        seen, left = set[Path](), [folder]
        while left:
            each = left.pop()
            if each not in seen:
                seen.add(each)
                left += [further for _, further, _ in _subcharts(each)]
        if chart in seen:
            message = "the subchart depends on this chart in turn"
            problem = head.problem(message, keys, "let one of the two do without the other")
            yield Finding("chart-files", problem)


def _subcharts(chart: Path) -> Iterator[tuple[Keys, Path, Document]]:
    """Return the folders of a chart's dependencies, with their places; empty if Chart.yaml is broken."""
    file = chart / "Chart.yaml"
    if file_fault(file, chart):
        return
    try:
        head = load(file.read_text(encoding="utf-8"), file.name)
        listed = require_map(head, file.name).get("dependencies")
    except (OSError, UnicodeDecodeError, ChartgenError):
        return
    for index, entry in enumerate(listed if isinstance(listed, list) else ()):
        place = str(entry.get("repository", "")) if isinstance(entry, dict) else ""
        if place.startswith(_FOLDER):
            yield ("dependencies", index), (chart / place.removeprefix(_FOLDER)).resolve(), head
