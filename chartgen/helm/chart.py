"""A chart in memory, path -> text; written as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from chartgen.errors import ChartgenError, Problem
from chartgen.files import whole_folder
from chartgen.helm.yaml import read_text

if TYPE_CHECKING:
    from chartgen.composer.origin import Origin


_TEXTS = {("Chart.yaml",), ("values.yaml",), ("values.schema.json",)}  # beside templates/, what chartgen itself reads


@dataclass(frozen=True)
class Chart:
    """A Helm chart.

    Args:
        name: The chart's name, which is also its folder's.
        files: Relative path -> text, sorted by path.
        origin: What it was composed from; None while nobody has looked it up, as in a chart that was read.
    """

    name: str
    files: dict[str, str]
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @classmethod
    def read(cls, directory: Path) -> Chart:
        """Read a chart from a folder.

        Packaged subcharts and other data keep their bytes; bytes that are not UTF-8 are lone surrogates of the text.

        Raises:
            ChartgenError: The folder is not a chart, or one of its templates or YAML files is not text.
        """
        if not (directory / "Chart.yaml").is_file():
            raise ChartgenError(Problem("is not a chart: it has no Chart.yaml", directory))
        paths = sorted(path for path in directory.rglob("*") if path.is_file())
        return cls(directory.name, {path.relative_to(directory).as_posix(): _read(path, directory) for path in paths})

    def write(self, directory: Path, *, prune: bool = False) -> bool:
        """Write the chart into a folder of its own, replacing what is there in one step.

        Args:
            directory: The chart's folder, usually named like the chart.
            prune: Whether templates that the chart does not have are removed, as earlier builds may have left them.

        Returns:
            Whether anything changed on disk.

        Raises:
            ChartgenError: The folder cannot be written, or holds what no build has made; it is left as it was.
        """
        _refuse_leaving(self.files, directory)
        directory = Path(os.path.realpath(directory))  # what a link stands for is replaced, not the link
        self._refuse_foreign(directory, prune=prune)
        try:
            if (directory / "Chart.yaml").is_file() and Chart.read(directory).files == self.files:
                return False
            with whole_folder(directory) as draft:
                for path, text in self.files.items():
                    file = draft / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(text, encoding="utf-8", errors="surrogateescape", newline="\n")
        except OSError as error:
            hint = "choose another folder"
            raise ChartgenError(Problem(f"cannot be written: {error.strerror}", directory, hint=hint)) from None
        return True

    def diff(self, directory: Path) -> str:
        """Compare with a folder: a unified diff from what is there to this chart, empty when they are equal."""
        import difflib

        there = Chart.read(directory).files if (directory / "Chart.yaml").is_file() else {}
        lines: list[str] = []
        for path in sorted(there.keys() | self.files.keys()):
            old, new = there.get(path), self.files.get(path)
            if old != new:
                names = (f"{directory / path}" if old is not None else "/dev/null", f"{directory / path} (built)")
                before, after = (old or "").splitlines(keepends=True), (new or "").splitlines(keepends=True)
                lines += difflib.unified_diff(before, after, *names)
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)

    def _refuse_foreign(self, directory: Path, *, prune: bool) -> None:
        """Stop before a file is lost that is not in the chart: nobody can tell whether an earlier build made it."""
        hint = "nothing was written; move it, or choose another folder"
        if directory.exists() and not directory.is_dir():
            raise ChartgenError(Problem("is not a folder", directory, hint=hint))
        if not directory.is_dir():
            return
        there = sorted(path.relative_to(directory) for path in directory.rglob("*") if not path.is_dir())
        foreign = [path for path in there if path.as_posix() not in self.files]
        foreign = [path for path in foreign if not prune or path.parts[0] != "templates"]
        if foreign:
            hint += ", or --prune to remove it" if foreign[0].parts[0] == "templates" else ""
            more = f" and {len(foreign) - 1} more" if foreign[1:] else ""
            raise ChartgenError(Problem(f"holds {foreign[0]}{more}, not part of the chart", directory, hint=hint))
        if there and Path("Chart.yaml") not in there:
            raise ChartgenError(Problem("holds files that are not a chart", directory, hint=hint))


def _refuse_leaving(paths: Iterable[str], directory: Path) -> None:
    """Stop before a file is written elsewhere: the paths of a chart that a cluster has kept are what somebody wrote."""
    for path in paths:
        parts = PurePosixPath(path).parts
        if not parts or ".." in parts or path.startswith("/") or "\0" in path:
            hint = "nothing was written; rename the file in the chart"
            raise ChartgenError(Problem(f"the chart's file {path!r} leads out of its folder", directory, hint=hint))


def _read(path: Path, directory: Path) -> str:
    place = path.relative_to(directory).parts
    if place[0] == "templates" or place in _TEXTS:
        return read_text(path)
    return path.read_bytes().decode("utf-8", "surrogateescape")
