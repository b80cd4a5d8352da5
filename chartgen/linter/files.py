"""A chart's folder before Helm reads it: what it must not hold, and its texts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from chartgen.chart import Chart
from chartgen.errors import ChartgenError, Problem
from chartgen.findings import Finding
from chartgen.linter.archives import read_archives
from chartgen.yamltext import Document, Keys, load, require_map

# Helm's own limits (helm.sh/helm/v4 pkg/chart/loader/archive: MaxDecompressedFileSize, MaxDecompressedChartSize).
LARGEST_FILE = 5 * 1024 * 1024
LARGEST_CHART = 100 * 1024 * 1024
MOST_FILES = 20_000
_FOLDER = "file://"
# What Helm reads as text whatever its bytes are: a schema that is none here would be applied by Helm, unseen.
_TEXTS = ("Chart.yaml", "values.yaml", "values.schema.json")


class Folder(NamedTuple):
    """A chart as its folder has it.

    Args:
        chart: Its texts; files that are not text are left out.
        findings: What keeps Helm from reading it, or makes it read something else than is there.
        digest: Tells this content from any other, that of files which are not text included.
    """

    chart: Chart
    findings: list[Finding]
    digest: str


def read_chart(path: Path) -> Folder:
    """Read the folder of any chart, without following links or loading what is too large.

    Raises:
        ChartgenError: The folder is not a chart.
    """
    if not (path / "Chart.yaml").is_file():
        raise ChartgenError(Problem("is not a chart: it has no Chart.yaml", path, hint="give the folder of a chart"))
    findings: list[Finding] = []
    files: dict[str, str] = {}
    total, digest = 0, hashlib.sha256()
    for count, file in enumerate(_walk(path), 1):
        if total > LARGEST_CHART or count > MOST_FILES:
            message = f"holds more than {LARGEST_CHART / 1e6:.0f} MB or {MOST_FILES:,} files, Helm reads them all"
            findings.append(Finding("chart-files", Problem(message, "Chart.yaml", hint="move data out of the chart")))
            break
        name = file.relative_to(path).as_posix()
        if fault := _fault(file, path):
            findings.append(Finding("chart-files", Problem(fault[0], name, hint=fault[1])))
        elif file.is_file():
            data = file.read_bytes()
            total += len(data)
            digest.update(f"{name}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
            if (text := _text(data)) is not None:
                files[name] = text
            elif file.name in _TEXTS:
                findings.append(Finding("chart-files", Problem("is not UTF-8 text", name, hint="save it as UTF-8")))
    if not findings:
        findings += read_archives(path).findings
    name = _name(files.get("Chart.yaml", ""), path, findings)
    findings += _circles(path)
    return Folder(Chart(name, dict(sorted(files.items()))), findings, digest.hexdigest())


def _name(head: str, path: Path, findings: list[Finding]) -> str:
    """Give the chart's name; the folder's where Chart.yaml is broken."""
    try:
        return str(require_map(load(head, "Chart.yaml"), "Chart.yaml").get("name", path.resolve().name))
    except ChartgenError as error:
        findings += [Finding("chart-files", problem) for problem in error.problems]
        return path.resolve().name


def _circles(path: Path) -> Iterator[Finding]:
    """Find subcharts in folders of their own that lead back to the chart: Helm would pack it into itself."""
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
    """Give the folders that a chart's dependencies are in, with their places; none where Chart.yaml is broken."""
    file = chart / "Chart.yaml"
    if _fault(file, chart):
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


def _walk(path: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name != ".git")
        yield from (Path(folder, name) for name in folders if Path(folder, name).is_symlink())
        yield from (Path(folder, name) for name in sorted(names))


def _fault(file: Path, root: Path) -> tuple[str, str] | None:
    """Say what is wrong with a file, and what to do; None when Helm may read it."""
    if file.is_symlink():
        real = Path(os.path.realpath(file))
        if not real.exists():
            return "is a link to nothing", "remove it"
        if not real.is_relative_to(os.path.realpath(root)):
            return "is a link out of the chart", "copy what it stands for into the chart"
        return ("is a link to a folder, in which Helm runs in circles", "remove it") if real.is_dir() else None
    if not file.is_file():
        return "is neither a file nor a folder", "remove it"
    if (size := file.stat().st_size) > LARGEST_FILE:
        return f"has {size / 1e6:.0f} MB, Helm reads at most {LARGEST_FILE / 1e6:.0f} MB of a file", "move it out"
    return None


def _text(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
