"""A chart's folder, read as Helm reads it: `.helmignore`, links, limits, and packaged subcharts as data."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chartgen.errors import ChartgenError, Problem
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.yaml import load, require_map

# Helm's own limits (helm.sh/helm/v4 pkg/chart/loader/archive: MaxDecompressedFileSize, MaxDecompressedChartSize).
LARGEST_FILE = 5 * 1024 * 1024
LARGEST_CHART = 100 * 1024 * 1024
MOST_FILES = 20_000
# Files that Helm reads besides templates. Helm converts bytes that are not text, and no rule has checked the result.
_TEXTS = frozenset({"Chart.yaml", "values.yaml", SCHEMA_FILE, "requirements.yaml"})
_PART = re.compile(r"(?:charts/[^/]+/)*")  # of a subchart, which may itself be called crds
LINK_OUT = ("is a link out of the chart", "replace the link by a copy")
_CIRCLES = ("is a link to a folder, in which Helm runs in circles", "remove it")


class ChartFolder:
    """The content of a chart's folder that Helm reads, as far as it has been read, in the order of the walk.

    Attributes:
        name: The chart's name; the folder's name when Chart.yaml is broken.
        texts: Its texts, path -> text, without those that `.helmignore` excludes.
        data: Its files that are not text, path -> bytes.
        schemas: Schemas that `.helmignore` excludes but Helm may still apply.
        problems: Faults that keep Helm from reading the folder, or make it read something else.
    """

    def __init__(self, path: Path, root: Path | None) -> None:
        self.path, self.root, self.total, self.count = path, root, 0, 0
        self.name = path.resolve().name
        self.problems: list[Problem] = []
        self.texts: dict[str, str] = {}
        self.data: dict[str, bytes] = {}
        self.schemas: dict[str, str] = {}
        self._digest = hashlib.sha256()

    @property
    def digest(self) -> str:
        """Return what identifies this content."""
        return self._digest.hexdigest()

    def report(self, name: str, message: str, hint: str) -> None:
        """Add a fault of a file."""
        self.problems.append(Problem(message, name, hint=hint))

    def walk(self) -> Iterator[tuple[Path, bool, bool]]:
        """Yield each file and link, whether it leads to a folder above it, and whether `.helmignore` excludes it.

        Links to other folders are followed, as Helm does.
        """
        left = [(self.path, frozenset((os.path.realpath(self.path),)), False)]
        ignored = ignored_by(self.path, self.root)
        while left:
            folder, above, within = left.pop()
            for file in sorted(folder.iterdir()):
                is_folder, real = file.is_dir(), os.path.realpath(file)
                if file.name == ".git" and file.exists():
                    continue
                # Helm reads the target of a link before it checks whether the link is ignored.
                name = file.relative_to(self.path).as_posix()
                left_out = within or (file.exists() and ignored(name, folder=is_folder))
                if file.is_symlink() or not is_folder:
                    yield file, real in above, left_out
                if is_folder and real not in above and not (file.is_symlink() and file_fault(file, self.root)):
                    left.append((file, above | {real}, left_out))

    def take(self, file: Path, *, circles: bool, left_out: bool) -> None:
        """Read a file; of the excluded files, only those that Helm may still read: links, schemas and archives."""
        name = file.relative_to(self.path).as_posix()
        self.count += not left_out
        wrong = _CIRCLES if circles and not left_out else file_fault(file, self.root)
        may_be_read = file.is_symlink() or (not wrong and (file.name == SCHEMA_FILE or file.suffix == ".tgz"))
        if left_out and not may_be_read:
            return
        if wrong:
            self.report(name, *wrong)
        elif file.is_file():
            data = file.read_bytes()
            self.total += len(data)
            self._digest.update(f"{name}\0{len(data)}\0".encode("utf-8", "surrogateescape") + data)
            if not left_out:
                self._sort(name, data)
            elif file.name == SCHEMA_FILE:
                self.schemas[name] = data.decode("utf-8", "replace").removeprefix("\ufeff")

    def _sort(self, name: str, data: bytes) -> None:
        first, file = _PART.sub("", name).split("/")[0], name.rpartition("/")[2]
        if (text := _text(data)) is not None:
            self.texts[name] = text
        elif file in _TEXTS or first in ("templates", "crds"):
            self.report(name, "is not UTF-8 text", "save it as UTF-8")
        else:
            self.data[name] = data


def read_folder(path: Path, *, links_out: bool = False) -> ChartFolder:
    """Read the folder of a chart, without loading files that are too large.

    Args:
        links_out: Whether to follow links that lead out of it, as Helm does; otherwise they are a problem.

    Raises:
        ChartgenError: The folder is not a chart.
    """
    if not (path / "Chart.yaml").is_file():
        raise ChartgenError(Problem("is not a chart: it has no Chart.yaml", path, hint="give the folder of a chart"))
    found = ChartFolder(path, None if links_out else Path(os.path.realpath(path)))
    for file, circles, left_out in found.walk():
        found.take(file, circles=circles, left_out=left_out)
        if found.total > LARGEST_CHART or found.count > MOST_FILES:
            limits = f"more than {LARGEST_CHART / 1e6:.0f} MB or {MOST_FILES:,} files, Helm reads them all"
            found.report("Chart.yaml", f"has {limits}", "move data out of the chart")
            break
    found.texts = dict(sorted(found.texts.items()))
    if "Chart.yaml" not in found.texts and not found.problems:
        found.report("Chart.yaml", "is excluded by .helmignore, and Helm refuses the chart", "correct .helmignore")
    try:
        head = require_map(load(found.texts.get("Chart.yaml", ""), "Chart.yaml"), "Chart.yaml")
        found.name = str(head.get("name", found.name))
    except ChartgenError as error:
        found.problems += error.problems
    return found


def ignored_by(chart: Path, root: Path | None = None) -> Ignored:
    """Return the files that a chart's folder excludes; links must not leave `root`, a resolved folder, if given."""
    file = chart / HELMIGNORE
    return Ignored(_text(file.read_bytes()) or "" if file.is_file() and not file_fault(file, root) else "")


def file_fault(file: Path, root: Path | None) -> tuple[str, str] | None:
    """Return why Helm cannot read a file, or a link out of `root`, a resolved folder, and its fix; None if it can."""
    if file.is_symlink():
        real = Path(os.path.realpath(file))
        if not real.exists():
            return "is a link to nothing", "remove it"
        if root and not real.is_relative_to(root):
            return LINK_OUT
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


# `.helmignore` by the rules of helm/helm @ e9b85e4, pkg/ignore/rules.go: patterns of Go's filepath.Match; the first
# match decides. They differ from .gitignore: a line with `!` ignores everything that it does not match.
HELMIGNORE = ".helmignore"
# Helm's own addition: hidden files among the templates.
_DEFAULTS = "templates/.?*"


@dataclass(frozen=True)
class Pattern:
    """A line of the file."""

    parts: tuple[re.Pattern[str], ...]  # the patterns of the path's parts; of its last part when the line has no slash
    whole: bool
    negate: bool  # whether it ignores paths that it does not match
    folders: bool

    def matches(self, path: str) -> bool:
        """Report whether the pattern matches a path."""
        names = path.split("/")[0 if self.whole else -1 :]
        return len(names) == len(self.parts) and all(map(re.Pattern.match, self.parts, names))


class Ignored:
    """The files that a chart excludes, by its `.helmignore`'s text, if any; lines that Helm rejects are skipped."""

    def __init__(self, text: str) -> None:
        lines = [*text.removeprefix("\ufeff").split("\n"), _DEFAULTS]
        self.patterns = [pattern for line in lines if (pattern := _pattern(line.strip()))]

    def __call__(self, path: str, *, folder: bool = False) -> bool:
        """Report whether a file, or a folder with its content, is excluded; its path in the chart has slashes."""
        for pattern in self.patterns:
            if pattern.negate:
                if (pattern.folders and not folder) or not pattern.matches(path):
                    return True
            elif (folder or not pattern.folders) and pattern.matches(path):
                return True
        return False


def _pattern(line: str) -> Pattern | None:
    if not line or line.startswith("#") or "**" in line:
        return None
    negate, folders = line.startswith("!"), line.endswith("/")
    line = line.removeprefix("!").removesuffix("/")
    parts = tuple(_compiled(part) for part in line.removeprefix("/").split("/"))
    return Pattern(parts, "/" in line, negate, folders)


def _compiled(part: str) -> re.Pattern[str]:
    """Compile Go's pattern for one part of a path to a Python expression that does not backtrack."""
    return re.compile(fnmatch.translate(re.sub(r"\\(.)", r"[\1]", part).replace("[^", "[!")))
