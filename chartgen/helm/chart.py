"""A chart in memory, path -> text, written completely or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from chartgen.errors import ChartgenError, Problem
from chartgen.files import linked_within, whole_folder

_BUILT = ("templates", "files")  # folders that a build fills and clears of an earlier build's files


@dataclass(frozen=True)
class Chart:
    """A Helm chart.

    Args:
        name: The name of the chart and of its folder.
        files: Relative path -> text, sorted by path.
        origin: Its target, in the composer's terms; None when unknown, as for a chart read from a folder.
    """

    name: str
    files: dict[str, str]
    origin: object = field(default=None, compare=False, repr=False)

    @classmethod
    def read(cls, directory: Path) -> Chart:
        """Read a chart from a folder, as Helm reads it; bytes outside UTF-8 become lone surrogates.

        Raises:
            ChartgenError: The folder is not a chart, or Helm cannot read it.
        """
        from chartgen.helm.chart_folder import read_folder

        try:
            read = read_folder(directory, links_out=True)
        except OSError as error:
            raise ChartgenError(Problem(f"cannot be read: {error.strerror}", error.filename or directory)) from None
        if read.problems:
            raise ChartgenError(problem._replace(path=directory / str(problem.path)) for problem in read.problems)
        data = {path: content.decode("utf-8", "surrogateescape") for path, content in read.data.items()}
        return cls(read.name, dict(sorted((read.texts | data).items())))

    def write(self, directory: Path, *, prune: bool = False) -> bool:
        """Write the chart into a separate folder; replace the existing content in one step.

        Args:
            directory: The chart's folder, usually named like the chart.
            prune: Whether to remove templates and files that are not in the chart, such as those of earlier builds.

        Returns:
            Whether anything changed on disk.

        Raises:
            ChartgenError: The folder is not writable, or contains files that a build did not make; it stays unchanged.
        """
        _refuse_leaving(self.files, directory)
        directory = linked_within(directory)  # replace the target of a link, not the link
        self._refuse_foreign(directory, prune=prune)
        try:
            if _files(directory) == self.files:
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
        """Return a unified diff from a folder's content to this chart; empty when they are equal.

        Raises:
            ChartgenError: The folder is a link that leads elsewhere.
        """
        import difflib

        there = _files(linked_within(directory))
        lines: list[str] = []
        for path in sorted(there.keys() | self.files.keys()):
            old, new = there.get(path), self.files.get(path)
            if old != new:
                names = (f"{directory / path}" if old is not None else "/dev/null", f"{directory / path} (built)")
                before, after = (old or "").splitlines(keepends=True), (new or "").splitlines(keepends=True)
                lines += difflib.unified_diff(before, after, *names)
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)

    def _refuse_foreign(self, directory: Path, *, prune: bool) -> None:
        """Raise an error for files outside the chart before they are lost: an earlier build may not have made them."""
        hint = "nothing was written; move it, or choose another folder"
        if directory.exists() and not directory.is_dir():
            raise ChartgenError(Problem("is not a folder", directory, hint=hint))
        entries = (path for path in directory.rglob("*") if path.is_symlink() or not path.is_dir())
        there = sorted(path.relative_to(directory) for path in entries)
        foreign = [path for path in there if path.as_posix() not in self.files]
        foreign = [path for path in foreign if not prune or path.parts[0] not in _BUILT]
        if foreign:
            hint += ", or --prune to remove it" if foreign[0].parts[0] in _BUILT else ""
            more = f" and {len(foreign) - 1} more" if foreign[1:] else ""
            raise ChartgenError(Problem(f"contains {foreign[0]}{more}, not part of the chart", directory, hint=hint))
        if there and Path("Chart.yaml") not in there:
            raise ChartgenError(Problem("contains files that are not a chart", directory, hint=hint))


def is_remote(name: str) -> bool:
    """Report whether the name of a chart is a remote address."""
    return name.startswith(("oci://", "https://", "http://"))


def is_archive(path: Path) -> bool:
    """Report whether a file has the name of a packaged chart."""
    return path.name.endswith((".tgz", ".tar.gz"))


def _refuse_leaving(paths: Iterable[str], directory: Path) -> None:
    """Raise an error for paths that lead out of the folder: those of a chart stored in a cluster are not trusted."""
    for path in paths:
        parts = PurePosixPath(path).parts
        if not parts or ".." in parts or path.startswith("/") or "\0" in path:
            hint = "nothing was written; rename the file in the chart"
            raise ChartgenError(Problem(f"the chart's file {path!r} leads out of its folder", directory, hint=hint))


def _files(directory: Path) -> dict[str, str]:
    """Return all files and links of a folder as a build compares them, also those that `.helmignore` excludes."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file() or path.is_symlink())
    return {path.relative_to(directory).as_posix(): _text(path) for path in paths}


def _text(path: Path) -> str:
    """Return a file's text; a link, which no build makes, is not followed: a stranger's may lead to any file."""
    return f"a link to {path.readlink()}\n" if path.is_symlink() else path.read_text("utf-8", "surrogateescape")
