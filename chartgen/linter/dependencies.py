"""Dependencies in Chart.yaml that `charts/` lacks: report them once, and lint the chart without them.

Helm rejects such a chart, and a checkout of a repository rarely contains them.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from chartgen.errors import ChartgenError
from chartgen.findings import NOT_RENDERED, Finding, Rule
from chartgen.helm.chart import Chart
from chartgen.helm.values import to_json
from chartgen.helm.yaml import Document, Plain, load, require_map

DEPENDENCIES = Rule(
    "dependencies-are-there",
    "Subcharts that Chart.yaml names are not in charts/, so that the chart was checked without what they render.",
    "run helm dependency build",
    severity="unchecked",
)
REQUIREMENTS = "requirements.yaml"
# Messages of Go's templates about a missing definition (text/template, and Helm's include).
_UNDEFINED = re.compile(r'no template "|template "[^"]*" not defined|<\.Subcharts')


def dependencies(chart: Chart) -> list[Plain]:
    """Return a chart's list of dependencies, with malformed entries."""
    data = _head(chart).data
    found = data.get("dependencies") if isinstance(data, dict) else None
    return found if isinstance(found, list) else []


def subchart_keys(chart: Chart) -> set[str]:
    """Return the keys of the subcharts' values."""
    named = [dependency for dependency in dependencies(chart) if isinstance(dependency, dict)]
    folders = {path.split("/")[1] for path in chart.files if path.startswith("charts/")}
    return folders | {str(each.get("alias") or each.get("name")) for each in named}


def dependency_keys(chart: Chart) -> set[str]:
    """Return the first keys of values that Helm itself reads for dependencies: conditions, tags, imported values."""
    keys = set()
    for entry in (dependency for dependency in dependencies(chart) if isinstance(dependency, dict)):
        paths = str(entry.get("condition") or "").split(",")
        imports = entry.get("import-values")
        named = imports if isinstance(imports, list) else []
        paths += [str(each.get("parent")) for each in named if isinstance(each, dict)]
        keys |= {path.strip().partition(".")[0] for path in paths} | ({"tags"} if entry.get("tags") else set())
    return keys


def missing_dependencies(chart: Chart, folder: Path | None) -> list[str]:
    """Return the names of missing dependencies, in the order of Chart.yaml.

    Args:
        folder: Its folder, with packaged subcharts; None for a chart in memory, which has none.
    """
    files = {path.name for path in (folder / "charts").glob("*.tgz")} if folder else set()
    there = {_name(path, text) for path, text in chart.files.items() if re.fullmatch(r"charts/[^/]+/Chart\.yaml", path)}
    named = dict.fromkeys(str(entry.get("name")) for entry in dependencies(chart) if isinstance(entry, dict))
    return [name for name in named if name not in there and not any(_packs(file, name) for file in files)]


def about_missing(chart: Chart, missing: Sequence[str], *, rendered: bool) -> Iterator[Finding]:
    """Report missing dependencies in one finding, however many presets and templates they block.

    Args:
        missing: Names of dependencies.
        rendered: Whether the chart could be rendered without them.
    """
    if missing:
        what = "they render" if missing[1:] else "it renders"
        left = f"what {what} was not checked" if rendered else "nothing could be rendered and checked"
        problem = _head(chart).problem(
            f"charts/ lacks {', '.join(missing)}; {left}", ("dependencies",), DEPENDENCIES.remedy
        )
        yield Finding(DEPENDENCIES.id if rendered else NOT_RENDERED, problem, "unchecked")


def needs_missing(message: str, missing: Sequence[str]) -> bool:
    """Report whether Helm failed because a missing dependency defines the templates or `.Subcharts.NAME` in use."""
    place = message.partition(" at <")[2]
    asks = any(f'"{name}"' in place or f".{name}" in place for name in missing)
    return bool(missing) and (asks or bool(_UNDEFINED.search(message)))


@contextmanager
def without(chart: Chart, folder: Path, missing: Sequence[str]) -> Iterator[Path]:
    """Copy a chart's folder without the missing dependencies, for the duration of a `with` block."""
    head = _head(chart)
    kept = [each for each in dependencies(chart) if not isinstance(each, dict) or each.get("name") not in missing]
    less = to_json({**require_map(head, str(head.path)), "dependencies": kept})
    with tempfile.TemporaryDirectory(prefix="chartgen-") as scratch:
        path = Path(scratch, "chart")  # the chart's name may contain a path
        shutil.copytree(folder, path, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        file = path / str(head.path)
        file.unlink()  # it may be a link
        file.write_text(less, encoding="utf-8")
        yield path


def _name(path: str, head: str) -> str:
    """Return the name of an unpacked subchart; the name of its folder if its Chart.yaml is broken."""
    try:
        return str(require_map(load(head, path), path).get("name"))
    except ChartgenError:
        return path.split("/")[1]


def _head(chart: Chart) -> Document:
    """Return the file that lists the dependencies; charts of apiVersion v1 have a separate one."""
    name = REQUIREMENTS if REQUIREMENTS in chart.files else "Chart.yaml"
    return load(chart.files.get(name, ""), name)


def _packs(file: str, name: str) -> bool:
    return bool(re.match(rf"{re.escape(name)}-v?\d", file)) or file == f"{name}.tgz"
