"""A chart's folder before Helm reads it: what it must not hold, and its texts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from chartgen.chart import Chart
from chartgen.errors import ChartgenError, Problem
from chartgen.findings import Finding
from chartgen.linter.archives import read_archives
from chartgen.linter.helmignore import NAME as HELMIGNORE
from chartgen.linter.helmignore import Ignored
from chartgen.yamltext import Document, Keys, load, require_map

# Helm's own limits (helm.sh/helm/v4 pkg/chart/loader/archive: MaxDecompressedFileSize, MaxDecompressedChartSize).
LARGEST_FILE = 5 * 1024 * 1024
LARGEST_CHART = 100 * 1024 * 1024
MOST_FILES = 20_000
_FOLDER = "file://"
_SCHEMA = "values.schema.json"
# What Helm itself reads beside templates. Of bytes that are no text it makes one of its own, which no rule has seen.
_TEXTS = frozenset({"Chart.yaml", "values.yaml", _SCHEMA, "requirements.yaml"})
_CIRCLES = ("is a link to a folder, in which Helm runs in circles", "remove it")


class Folder(NamedTuple):
    """A chart as its folder has it.

    Args:
        chart: Its texts, without those that `.helmignore` leaves out.
        findings: What keeps Helm from reading it, or makes it read something else than is there.
        digest: Tells this content from any other, that of files which are not text included.
        data: Its files that are not text, path -> bytes; those of subcharts are left out.
    """

    chart: Chart
    findings: list[Finding]
    digest: str
    data: dict[str, bytes]


def read_chart(path: Path) -> Folder:
    """Read the folder of any chart, without following links or loading what is too large.

    Raises:
        ChartgenError: The folder is not a chart.
    """
    if not (path / "Chart.yaml").is_file():
        raise ChartgenError(Problem("is not a chart: it has no Chart.yaml", path, hint="give the folder of a chart"))
    findings: list[Finding] = []
    files: dict[str, str] = {}
    others: dict[str, bytes] = {}
    total, digest = 0, hashlib.sha256()
    for count, (file, circles) in enumerate(_walk(path, _ignored(path)), 1):
        if total > LARGEST_CHART or count > MOST_FILES:
            message = f"holds more than {LARGEST_CHART / 1e6:.0f} MB or {MOST_FILES:,} files, Helm reads them all"
            findings.append(Finding("chart-files", Problem(message, "Chart.yaml", hint="move data out of the chart")))
            break
        name = file.relative_to(path).as_posix()
        if fault := _CIRCLES if circles else _fault(file, path):
            findings.append(Finding("chart-files", Problem(fault[0], name, hint=fault[1])))
        elif file.is_file():
            data = file.read_bytes()
            total += len(data)
            digest.update(f"{name}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
            if (text := _text(data)) is not None:
                files[name] = text
            elif file.name in _TEXTS or "templates" in file.relative_to(path).parts[:-1]:
                problem = Problem("is not UTF-8 text", name, hint="save it as UTF-8")
                findings.append(Finding("chart-files", problem))
            elif not name.startswith("charts/"):
                others[name] = data
    findings += _links_out(path, {str(each.problem.path) for each in findings})
    if not findings:
        findings += read_archives(path).findings
    name = _name(files.get("Chart.yaml", ""), path, findings)
    findings += _circles(path)
    return Folder(Chart(name, dict(sorted(files.items()))), findings, digest.hexdigest(), others)


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


def _ignored(path: Path) -> Ignored:
    file = path / HELMIGNORE
    if not file.is_file() or _fault(file, path):
        return Ignored("")
    return Ignored(_text(file.read_bytes()) or "")


def schemas_below(path: Path) -> dict[str, str]:
    """Return all schemas in a chart's folder, those of subcharts and those that it ignores among them.

    What a stranger's `.helmignore` leaves out is Helm's to decide; a schema that Helm applies and lint has not seen
    could make it fetch what the schema refers to.
    """
    every = (file for file, _ in _walk(path, Ignored("")) if file.name == _SCHEMA and not _fault(file, path))
    texts = {file.relative_to(path).as_posix(): file.read_text("utf-8", "replace") for file in every}
    return {name: text.removeprefix("\ufeff") for name, text in texts.items()}


def _links_out(path: Path, seen: Collection[str]) -> Iterator[Finding]:
    """Find the faulty links that a chart's `.helmignore` leaves out, as lint reads it: Helm may read it otherwise."""
    for file, _ in _walk(path, Ignored("")):
        name = file.relative_to(path).as_posix()
        if name not in seen and file.is_symlink() and (fault := _fault(file, path)):
            yield Finding("chart-files", Problem(fault[0], name, hint=fault[1]))


def _walk(path: Path, ignored: Ignored) -> Iterator[tuple[Path, bool]]:
    """Walk what Helm reads of a chart's folder: files and links, each with whether it is a link that leads to itself.

    Links to other folders of the chart are followed, as Helm does.
    """
    left = [(path, frozenset((os.path.realpath(path),)))]
    while left:
        folder, above = left.pop()
        for file in sorted(folder.iterdir()):
            is_folder, real = file.is_dir(), os.path.realpath(file)
            left_out = file.name == ".git" or ignored(file.relative_to(path).as_posix(), folder=is_folder)
            if left_out and file.exists():  # Helm reads where a link leads before it looks whether it is ignored
                continue
            if file.is_symlink() or not is_folder:
                yield file, real in above
            if is_folder and real not in above and not (file.is_symlink() and _fault(file, path)):
                left.append((file, above | {real}))


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
