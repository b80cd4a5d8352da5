"""A chart's folder before Helm reads it: what it must not hold, and its texts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from chartgen.errors import ChartgenError, Problem
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.helm.yaml import Document, Keys, load, require_map
from chartgen.linter.archives import read_archives
from chartgen.linter.helmignore import NAME as HELMIGNORE
from chartgen.linter.helmignore import Ignored
from chartgen.linter.schema_references import NAME as SCHEMA

# Helm's own limits (helm.sh/helm/v4 pkg/chart/loader/archive: MaxDecompressedFileSize, MaxDecompressedChartSize).
LARGEST_FILE = 5 * 1024 * 1024
LARGEST_CHART = 100 * 1024 * 1024
MOST_FILES = 20_000
_FOLDER = "file://"
# What Helm itself reads beside templates. Of bytes that are no text it makes one of its own, which no rule has seen.
_TEXTS = frozenset({"Chart.yaml", "values.yaml", SCHEMA, "requirements.yaml"})
_CIRCLES = ("is a link to a folder, in which Helm runs in circles", "remove it")


class Folder(NamedTuple):
    """A chart as its folder has it.

    Args:
        chart: Its texts, without those that `.helmignore` leaves out.
        findings: What keeps Helm from reading it, or makes it read something else than is there.
        digest: Tells this content from any other, that of files which are not text included.
        data: Its files that are not text, path -> bytes; those of subcharts are left out.
        schemas: What `chart` does not have of the schemas that Helm may apply: those of packaged subcharts, and those
            that a stranger's `.helmignore` leaves out, as lint reads it.
    """

    chart: Chart
    findings: list[Finding]
    digest: str
    data: dict[str, bytes]
    schemas: dict[str, str]


class _Entry(NamedTuple):
    """A file or a link in a chart's folder.

    Args:
        path: Where it is.
        circles: Whether it is a link that leads to a folder above it.
        left_out: Whether `.helmignore` leaves it out.
    """

    path: Path
    circles: bool
    left_out: bool


def read_chart(path: Path) -> Folder:
    """Read the folder of any chart, without following links or loading what is too large.

    Raises:
        ChartgenError: The folder is not a chart.
    """
    if not (path / "Chart.yaml").is_file():
        raise ChartgenError(Problem("is not a chart: it has no Chart.yaml", path, hint="give the folder of a chart"))
    reading = _Reading(path)
    for entry in _walk(path, _ignored(path)):
        reading.take(entry)
        if reading.total > LARGEST_CHART or reading.count > MOST_FILES:
            limits = f"more than {LARGEST_CHART / 1e6:.0f} MB or {MOST_FILES:,} files, Helm reads them all"
            reading.report("Chart.yaml", f"holds {limits}", "move data out of the chart")
            break
    findings, schemas = reading.findings, reading.schemas
    if not findings:
        packaged = read_archives(path)
        findings, schemas = packaged.findings, schemas | packaged.schemas
    name = _name(reading.texts.get("Chart.yaml", ""), path, findings)
    findings += _circles(path)
    chart = Chart(name, dict(sorted(reading.texts.items())))
    return Folder(chart, findings, reading.digest.hexdigest(), reading.others, schemas)


class _Reading:
    """What has been read of a chart's folder, in the order of its walk."""

    def __init__(self, path: Path) -> None:
        self.path, self.total, self.count = path, 0, 0
        self.findings: list[Finding] = []
        self.texts: dict[str, str] = {}
        self.others: dict[str, bytes] = {}
        self.schemas: dict[str, str] = {}
        self.digest = hashlib.sha256()

    def report(self, name: str, message: str, hint: str) -> None:
        self.findings.append(Finding("chart-files", Problem(message, name, hint=hint)))

    def take(self, entry: _Entry) -> None:
        """Read a file; of those that are left out, what Helm may read all the same: links, schemas and archives."""
        file, name = entry.path, entry.path.relative_to(self.path).as_posix()
        self.count += not entry.left_out
        fault = _CIRCLES if entry.circles and not entry.left_out else _fault(file, self.path)
        if entry.left_out and not file.is_symlink() and (fault or not _read_anyway(file)):
            return
        if fault:
            self.report(name, *fault)
        elif file.is_file():
            data = file.read_bytes()
            self.total += len(data)
            self.digest.update(f"{name}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
            if not entry.left_out:
                self._sort(name, data)
            elif file.name == SCHEMA:
                self.schemas[name] = data.decode("utf-8", "replace").removeprefix("\ufeff")

    def _sort(self, name: str, data: bytes) -> None:
        *folders, file = name.split("/")
        if (text := _text(data)) is not None:
            self.texts[name] = text
        elif file in _TEXTS or "templates" in folders:
            self.report(name, "is not UTF-8 text", "save it as UTF-8")
        elif folders[:1] != ["charts"]:
            self.others[name] = data


def _read_anyway(file: Path) -> bool:
    return file.name == SCHEMA or file.suffix == ".tgz"


def _name(head: str, path: Path, findings: list[Finding]) -> str:
    """Return the chart's name; the folder's where Chart.yaml is broken."""
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
    """Return the folders that a chart's dependencies are in, with their places; none where Chart.yaml is broken."""
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


def _ignored(path: Path) -> Ignored:
    file = path / HELMIGNORE
    if not file.is_file() or _fault(file, path):
        return Ignored("")
    return Ignored(_text(file.read_bytes()) or "")


def _walk(path: Path, ignored: Ignored) -> Iterator[_Entry]:
    """Walk a chart's folder. Links to other folders of the chart are followed, as Helm does."""
    left = [(path, frozenset((os.path.realpath(path),)), False)]
    while left:
        folder, above, within = left.pop()
        for file in sorted(folder.iterdir()):
            is_folder, real = file.is_dir(), os.path.realpath(file)
            if file.name == ".git" and file.exists():
                continue
            # Helm reads where a link leads before it looks whether it is ignored.
            left_out = within or (file.exists() and ignored(file.relative_to(path).as_posix(), folder=is_folder))
            if file.is_symlink() or not is_folder:
                yield _Entry(file, real in above, left_out)
            if is_folder and real not in above and not (file.is_symlink() and _fault(file, path)):
                left.append((file, above | {real}, left_out))


def _fault(file: Path, root: Path) -> tuple[str, str] | None:
    """Say what is wrong with a file, and what to do; None when Helm may read it."""
    if file.is_symlink():
        real = Path(os.path.realpath(file))
        if not real.exists():
            return "is a link to nothing", "remove it"
        if not real.is_relative_to(os.path.realpath(root)):
            return "is a link out of the chart", "copy what it stands for into the chart"
    if not file.is_file():
        return None if file.is_dir() else ("is neither a file nor a folder", "remove it")
    if (size := file.stat().st_size) > LARGEST_FILE:
        return f"has {size / 1e6:.0f} MB, Helm reads at most {LARGEST_FILE / 1e6:.0f} MB of a file", "move it out"
    return None


def _text(data: bytes) -> str | None:
    try:
        return data.decode("utf-8").removeprefix("\ufeff")  # as Helm's loader does
    except UnicodeDecodeError:
        return None
