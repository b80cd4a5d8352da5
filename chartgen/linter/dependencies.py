"""What Helm does not render: missing dependencies, its refusals, and objects that it installs unchanged.

Helm rejects a chart whose `charts/` lacks dependencies, as a checkout of a repository often does: lint leaves them out.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from chartgen.errors import ChartgenError, Problem
from chartgen.findings import NOT_RENDERED, Finding, Rule
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import SEPARATOR
from chartgen.helm.values import to_json
from chartgen.helm.yaml import Document, Plain, load, require_map
from chartgen.linter.render import Preset, RefusedRender, with_preset
from chartgen.visible import one_line

DEPENDENCIES = Rule(
    "dependencies-are-there",
    "Subcharts that Chart.yaml names are not in charts/, so that the chart was checked without what they render.",
    "run helm dependency build",
    severity="unchecked",
)
REQUIREMENTS = "requirements.yaml"
# Messages of Go's templates about a missing definition (text/template, and Helm's include).
# A variable such as $its.auth may be the values of a missing subchart, whose defaults come with it.
_UNDEFINED = re.compile(r'no template "|template "[^"]*" not defined|<\.Subcharts|<\$\w[^>]*>: nil pointer')


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
    """Return the names of missing dependencies, in the order of Chart.yaml."""
    files = {path.name for path in (folder / "charts").glob("*.tgz")} if folder else set()
    there = {_name(path, text) for path, text in chart.files.items() if re.fullmatch(r"charts/[^/]+/Chart\.yaml", path)}
    named = dict.fromkeys(str(entry.get("name")) for entry in dependencies(chart) if isinstance(entry, dict))
    packed = {
        name for name in named for file in files if file == f"{name}.tgz" or re.match(rf"{re.escape(name)}-v?\d", file)
    }
    return [name for name in named if name not in there | packed]


def about_missing(chart: Chart, missing: Sequence[str], *, rendered: bool) -> Iterator[Finding]:
    """Report missing dependencies in one finding, however many presets and templates they block."""
    if missing:
        what = "they render" if missing[1:] else "it renders"
        left = f"what {what} was not checked" if rendered else "nothing could be rendered and checked"
        message = f"charts/ lacks {', '.join(missing)}; {left}"
        problem = _head(chart).problem(message, ("dependencies",), DEPENDENCIES.remedy)
        yield Finding(DEPENDENCIES.id if rendered else NOT_RENDERED, problem, "unchecked")


def needs_missing(message: str, missing: Sequence[str]) -> bool:
    """Report whether Helm failed because a missing dependency defines the templates, values or `.Subcharts` in use."""
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


_HINT = "give values with -f, or keep some in ci/*-values.yaml"
# A list below a key may begin in the column of the key.
_KEY = re.compile(r"[A-Za-z]+:|- ")
_NAMED = 2  # presets in one message; a chart may have 20


def unrendered_findings(
    renders: Iterable[RefusedRender], missing: Sequence[str], *, asks: bool, cluster: bool
) -> Iterator[Finding]:
    """Report why Helm did not render, except for reasons that missing dependencies explain.

    Args:
        asks: Whether the chart may require values; chartgen's own charts render without any.
        cluster: Whether the chart may ask a cluster, which lint has none of, before it refuses values.
    """
    reasons: dict[tuple[object, ...], tuple[Problem, list[RefusedRender]]] = {}
    for render in renders:
        for problem in render.problems:
            if not needs_missing(problem.message, missing):
                mark = (problem.message, problem.path, problem.line, asks and render.asks)
                reasons.setdefault(mark, (problem, []))[1].append(render)
    for (*_, waits), (problem, group) in reasons.items():
        presets = list(dict.fromkeys(render.preset for render in group))
        place = with_preset(problem, replace(presets[0], name=_names(presets)))
        if waits and (cluster or not any(preset.name for preset in presets)):
            yield Finding(NOT_RENDERED, place._replace(hint=place.hint or _HINT), "unchecked")
        else:
            yield Finding("helm-template", place)


def unrendered_objects(chart: Chart, crds: Mapping[str, str]) -> str:
    """Return the objects of `crds/` in the form of Helm's output, without what is just a CustomResourceDefinition."""
    parts = ((path, part) for path, text in crds.items() for part in SEPARATOR.split(text) if part.strip())
    kept = ((path, part) for path, part in parts if not _is_definition(part))
    return "".join(f"---\n# Source: {chart.name}/{one_line(path)}\n{part}\n" for path, part in kept)


def _is_definition(text: str) -> bool:
    """Report whether a text is plainly a CustomResourceDefinition; those of operators take seconds to read as YAML."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    top = [line for line in lines if not line[0].isspace()]
    kinds = [line.rstrip() for line in top if line.startswith("kind:")]
    plain = lines[:1] == top[:1] and all(_KEY.match(line) for line in top)
    is_list = any(line.startswith("items:") for line in top)  # which Helm creates, whatever the kind
    return plain and not is_list and kinds == ["kind: CustomResourceDefinition"]


def _names(presets: Sequence[Preset]) -> str:
    names = [preset.name or "no values" for preset in presets]
    more = len(names) - _NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_NAMED])} and {more} more"
