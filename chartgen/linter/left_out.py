"""What a call of lint leaves out: reported, because a pull request could leave out a chart that it adds."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from chartgen.errors import Problem
from chartgen.findings import LEFT_OUT, Finding
from chartgen.helm.chart_folder import Ignored, ignored_by
from chartgen.linter.chart_files import is_crd

_MOST = 50_000  # folders that are searched; a repository of Kubernetes has about 6,000
_PRESETS = "values"


def left_out(roots: Iterable[Path], linted: Collection[str], ends: float) -> Iterator[Finding]:
    """Report the charts below folders that are neither linted nor subcharts of a linted chart.

    Hidden folders are not searched: they contain tools, such as virtual environments with charts of their own.

    Args:
        linted: The resolved folders of the linted charts.
        ends: When the search ends at the latest, by `time.monotonic`.
    """
    ignored = lru_cache(maxsize=1)(ignored_by)  # a chart can have thousands of subcharts
    for root in dict.fromkeys(roots):
        for number, (folder, is_chart) in enumerate(_folders(root)):
            if number == _MOST or time.monotonic() > ends:
                searched = f"{number:,}, until the limit or the deadline"
                message = f"not all of its folders were searched for charts: {searched}"
                yield _finding(message, root, "name each chart on the command line")
                break
            real = os.path.realpath(folder)
            # a subchart may be a link, which Helm follows
            whole = (_whole(real, linted) or _whole(_named(folder), linted)) if is_chart else ""
            if is_chart and (not whole or _ignores(ignored(Path(whole)), Path(whole), Path(real), ends)):
                hint = "name its folder on the command line, or remove it"
                yield _finding("is a chart that was not checked", folder / "Chart.yaml", hint)


def late(name: str, seconds: float) -> Finding:
    """Return the finding of a chart for which no time is left."""
    return _finding(f"was not checked: the call took {seconds:g} s", name, "give more time with --deadline")


def other_presets(folder: Path, presets: Path) -> Iterator[Finding]:
    """Report the usual folder of presets if the settings name another one in its place."""
    usual = folder / _PRESETS
    if usual.is_dir() and os.path.realpath(usual) != os.path.realpath(folder / presets):
        hint = "name the folder on the command line, with --presets"
        yield _finding("these presets were not checked: the settings name others", usual, hint)


def _folders(root: Path) -> Iterator[tuple[Path, bool]]:
    for folder, below, files in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        yield Path(folder), "Chart.yaml" in files
        for link in (Path(folder, name) for name in below):
            if link.is_symlink() and _leads_to_hidden(link):
                yield from _folders(link)
            elif link.is_symlink() and (link / "Chart.yaml").is_file():
                yield link, True


def _leads_to_hidden(link: Path) -> bool:
    """Report whether a link leads to a folder that the search passes over, and that is not above the link."""
    real = os.path.realpath(link)
    hidden = any(part.startswith(".") for part in Path(os.path.relpath(real, link.parent)).parts if part != "..")
    return hidden and not Path(os.path.realpath(link.parent)).is_relative_to(real)


def _named(folder: Path) -> str:
    """Return the path of a folder that may be a link, which is not followed, below folders that are."""
    return os.path.join(os.path.realpath(folder.parent), folder.name)  # noqa: PTH118


def _whole(folder: str, linted: Collection[str]) -> str:
    """Return the linted chart that a chart is, or is a subchart of; Helm skips those whose names begin with `_`."""
    place, name = os.path.split(folder)
    above, charts = os.path.split(place)
    if folder in linted:
        return folder
    return _whole(above, linted) if charts == "charts" and name[:1] != "_" else ""


def _ignores(ignored: Ignored, whole: Path, subchart: Path, ends: float) -> bool:
    """Report whether a `.helmignore` keeps Helm from reading a subchart or objects of it, or may, without time left."""
    if whole == subchart or not ignored.patterns:
        return False
    found = (file for name in ("templates", "crds") for file in (subchart / name).rglob("*"))
    # of hidden files, such as .gitkeep, Helm takes manifests alone, from crds/
    inner = (file for file in found if file.name[:1] != "." or is_crd(f"crds/{file.name}"))
    return any(
        time.monotonic() > ends or ignored(file.relative_to(whole).as_posix(), folder=file.is_dir())
        for each in (subchart / "Chart.yaml", *inner)
        for file in (each, *each.parents)
        if whole in file.parents
    )


def _finding(message: str, place: Path | str, hint: str) -> Finding:
    return Finding(LEFT_OUT, Problem(message, place, hint=hint), "unchecked")
