"""Composes a chart: fragments' slot texts into the skeleton of a workload kind, values and schemas into one each.

The skeleton and the fragments are Helm text; jinja2 with `<% %>` only joins them, so that their Go templates, comments
and order survive. Nothing is written here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from chartgen import __version__
from chartgen.composer.fragment import Fragment, check_combination
from chartgen.composer.kube_linter import exceptions
from chartgen.composer.launcher import Launcher
from chartgen.composer.library import BUILTIN
from chartgen.composer.origin import Composed
from chartgen.composer.provenance import Marks, Source
from chartgen.composer.schema import chart_schema, schema_text
from chartgen.composer.slots import SLOTS, Segment, SlotText, resolve
from chartgen.composer.tags import fill
from chartgen.composer.target import Target
from chartgen.composer.value_docs import Row
from chartgen.composer.values import Part, check_parts, join_parts, place_of, with_defaults
from chartgen.composer.workload import Workload, load_workload
from chartgen.data.compatibility import lock, queue_needs
from chartgen.errors import ChartgenError, Problem, UsageError, did_you_mean
from chartgen.helm.chart import Chart
from chartgen.helm.schema import validate
from chartgen.helm.yaml import load, read_text, require_map

COMMON = BUILTIN / "workloads" / "common"
SETUP = BUILTIN / "workloads" / "setup"
_PROGRAMS = ("transport.py",)
_MODELINE = "# yaml-language-server: $schema=values.schema.json\n"
_DEFINE = re.compile(r'\{\{-?\s*define\s+"([^"]+)"')
# A fact of the target or the launcher and nothing else, as most files that do have a tag.
_FACT = re.compile(r"<%= (target|launcher)\.([a-z_.]+) %>")
_INCLUDE = re.compile(r'\binclude\s+"([^"]+)"')
_COMMON_IN_SETUP = ("_helpers.tpl", "_settings.tpl")


def compose(target: Target, workload: str | None = None) -> Chart:
    """Compose the run chart of a target.

    Args:
        target: The target.
        workload: Another workload kind than the target's own; the same fragments fill it.

    Returns:
        The chart in memory, named after the target; with another workload kind, `<target>-<workload>`.

    Raises:
        UsageError: Unknown workload kind.
        ChartgenError: Fragments that cannot stand together, slots that clash, text that does not render.
    """
    return _Composer(target, _workload(target, workload or target.workload)).run_chart()


def compose_interface(target: Target, workload: str | None = None) -> Chart:
    """Compose only what says which values a run chart takes: enough to check values, in a fraction of the time.

    Returns:
        A chart without templates: values.yaml and values.schema.json.
    """
    return _Composer(target, _workload(target, workload or target.workload)).interface()


def compose_setup(target: Target) -> Chart | None:
    """Compose the setup chart of a target, which takes the same values; None when no fragment has setup templates."""
    if not any(fragment.setup for fragment in target.fragments):
        return None
    return _Composer(target, _workload(target, target.workload)).setup_chart()


def compose_sources(composed: Composed) -> dict[str, list[tuple[str, Source | None]]]:
    """Return where the lines of a chart's templates come from: path in the chart -> each line and its source.

    Raises:
        ChartgenError: As `compose`.
    """
    marks = Marks()
    composer = _Composer(composed.target, _workload(composed.target, composed.workload), marks)
    files = composer.setup_templates() if composed.setup else composer.run_templates()
    return {path: marks.read(_tidy(text)) for path, text in files.items()}


class _Composer:
    def __init__(self, target: Target, workload: Workload, marks: Marks | None = None) -> None:
        self.target, self.workload, self.marks = target, workload, marks
        check_combination(target.fragments, target.document, workload.name, workload.requires)
        self.chart = target.name if workload.name == target.workload else f"{target.name}-{workload.name}"
        self.guarded = True
        self.sources: dict[str, Path] = {}

    def run_chart(self) -> Chart:
        """Compose the chart of runs."""
        return self._finish(self.run_templates(), COMMON / "README.md", f"Training on {self.target.description}")

    def run_templates(self) -> dict[str, str]:
        """Compose the templates of the chart of runs."""
        # a kind's own file replaces the common one of its name
        for folder in (COMMON / "templates", self.workload.path / "templates"):
            self.sources |= {_template_name(file): file for file in sorted(folder.iterdir())}
        files = {name: self._render(read_text(file), file) for name, file in self.sources.items()}
        for fragment in self.target.fragments:
            for name, text in fragment.manifests.items():
                files |= self._template(name, text, fragment.path / "manifests" / name)
            files |= self._helpers(fragment)
        _check_defined_once(files, self.sources)
        return files

    def setup_chart(self) -> Chart:
        """Compose the chart of what is installed once."""
        files = self.setup_templates()
        return self._finish(files, SETUP / "README.md", f"Queues and storage for training on {self.target.description}")

    def setup_templates(self) -> dict[str, str]:
        """Compose the templates of the chart of what is installed once."""
        self.chart = f"{self.chart}-setup"
        # the setup chart has no launcher to ask whether GPUs are in use: its objects are for runs that use them
        self.guarded = False
        files = {f"templates/{name}": self._common(f"templates/{name}") for name in _COMMON_IN_SETUP}
        files["templates/NOTES.txt"] = self._render(
            read_text(SETUP / "templates/NOTES.txt"), SETUP / "templates/NOTES.txt"
        )
        for fragment in self.target.fragments:
            for name, text in fragment.setup.items():
                files |= self._template(name, text, fragment.path / "setup" / name)
        self._add_helpers(files)
        return files

    def interface(self) -> Chart:
        """Compose the values and their schema."""
        files, _ = self._interface()
        return Chart(self.chart, files, self._origin)

    def _interface(self) -> tuple[dict[str, str], list[Row]]:
        """Compose values.yaml and its schema, and give a row for each value."""
        folders = [COMMON, self.workload.path, *(fragment.path for fragment in self.target.fragments)]
        parts = [self._values_of(folder) for folder in folders if (folder / "values.yaml").is_file()]
        check_parts(parts)
        text, table = with_defaults(self._values(parts), self.target.document, self.target.values)
        schema = chart_schema(self.target, folders, table)
        self._check_defaults(text, schema, parts)
        return {"values.yaml": _MODELINE + text, "values.schema.json": schema_text(schema) + "\n"}, table

    def _finish(self, files: dict[str, str], readme: Path, description: str) -> Chart:
        interface, table = self._interface()
        files |= {
            "Chart.yaml": self._common("Chart.yaml", description=description),
            "LICENSE": read_text(COMMON / "LICENSE"),
            ".helmignore": read_text(COMMON / "helmignore"),
            "README.md": self._render(read_text(readme), readme, description=description, values_table=table),
            **interface,
        }
        return Chart(self.chart, {path: _tidy(files[path]) for path in sorted(files)}, self._origin)

    @property
    def _origin(self) -> Composed:
        return Composed(self.target, self.workload.name, setup=not self.guarded)

    def _common(self, name: str, **more: object) -> str:
        return self._render(read_text(COMMON / name), COMMON / name, **more)

    def _helpers(self, fragment: Fragment) -> dict[str, str]:
        slot = fragment.slots.get("helpers.tpl")
        return self._template(f"_{fragment.name}.tpl", _text(slot.segments), slot.path) if slot else {}

    def _add_helpers(self, files: dict[str, str]) -> None:
        """Add the helpers that the files include, and those that these include in turn."""
        left = [fragment for fragment in self.target.fragments if "helpers.tpl" in fragment.slots]
        while True:
            included = {name for text in files.values() for name in _INCLUDE.findall(text)}
            wanted = [fragment for fragment in left if included & self._defined(fragment)]
            if not wanted:
                return
            for fragment in wanted:
                files |= self._helpers(fragment)
                left.remove(fragment)

    def _defined(self, fragment: Fragment) -> set[str]:
        slot = fragment.slots["helpers.tpl"]
        return set(_DEFINE.findall(self._render(_text(slot.segments), slot.path)))

    def _template(self, name: str, text: str, path: Path) -> dict[str, str]:
        name = f"templates/{name}"
        if name in self.sources:
            hint = "rename it" if path.suffix == ".yaml" else "rename the fragment"
            raise ChartgenError(
                Problem(f"{name} of the chart already comes from {self.sources[name]}", path, hint=hint)
            )
        self.sources[name] = path
        return {name: self._render(text, path)}

    # -- slots

    def _slot(self, name: str, indent: int, provides: str = "") -> str:
        """Join what the fragments put into a slot, or only those that provide a capability."""
        if name not in SLOTS:
            raise ValueError(f"unknown slot {name!r}; {did_you_mean(name, SLOTS)}")
        chunks, guard_open = [], False
        for text, segments in self._resolved(name, provides):
            guard = self.guarded and text.gpu_only
            if guard != guard_open:
                chunks.append(self._guard(opens=guard))
                guard_open = guard
            if not name.endswith((".sh", ".tpl")):
                chunks.append(f"{{{{- /* {text.fragment} */}}}}\n")
            lines = _text(segments)
            if self.marks:
                lines = "".join(self.marks.marked(each.text, text.path, each.line) for each in segments)
            chunks.append(self._render(lines, text.path, indent=indent))
        if guard_open:
            chunks.append(self._guard(opens=False))
        return _indent("".join(chunks), indent).rstrip("\n")

    def _guard(self, *, opens: bool) -> str:
        return f'{{{{- if include "{self.chart}.gpu" . }}}}\n' if opens else "{{- end }}\n"

    def _resolved(self, name: str, provides: str) -> list[tuple[SlotText, list[Segment]]]:
        filling = [fragment for fragment in self.target.fragments if name in fragment.slots]
        texts = [fragment.slots[name] for fragment in filling if not provides or provides in fragment.provides]
        return [(text, segments) for text, segments in resolve(texts) if segments]

    def _part(self, launcher: Launcher, name: str) -> str:
        return self._render(launcher.parts.get(name, ""), launcher.path / name, launcher=launcher).rstrip("\n")

    def _devices(self, fragment: Fragment) -> str:
        contract = fragment.contract
        return self._render(contract.devices, fragment.path / "fragment.yaml") if contract else ""

    # -- values

    def _values_of(self, folder: Path) -> Part:
        path = folder / "values.yaml"
        source = read_text(path)
        return Part(path, source, self._render(source, path))

    def _values(self, parts: list[Part]) -> str:
        """Join values.yaml from the common, the fragments' and the launchers'."""
        text = join_parts(parts) + "\nlaunchers:\n"
        for launcher in self.target.launchers:
            text += f"  {launcher.name}:\n" + _indent(self._launcher_values(launcher), 4)
        return text

    def _check_defaults(self, text: str, schema: dict[str, Any], parts: list[Part]) -> None:
        """Check a user's defaults against the chart's schema; chartgen's own are checked by its tests."""
        if self.target.library.is_builtin(self.target.path):
            return
        from chartgen.helm.values import coalesce

        data = coalesce(require_map(load(text, "values.yaml"), "values.yaml"), {})
        problems = validate(data, schema, lambda keys: place_of(tuple(keys), parts, self.target.document))
        if problems:
            raise ChartgenError(problems)

    def _launcher_values(self, launcher: Launcher) -> str:
        paths = [BUILTIN / "launchers" / "values.yaml", launcher.path / "values.yaml"]
        return "".join(self._render(read_text(path), path, launcher=launcher) for path in paths if path.is_file())

    # -- jinja2

    def _render(self, text: str, path: Path, **more: object) -> str:
        if self.marks and path.name != "fragment.yaml":
            text = self.marks.marked(text, path)
        # by far the most frequent tag; most files hold no other, and jinja2 takes a millisecond to compile one
        text = text.replace("<%= chart %>", self.chart)
        if "<%" not in text:
            return text
        context, trusted = {**self._context, **more}, self.target.library.is_builtin(path)
        if trusted:
            text = _FACT.sub(lambda fact: _told(fact, context), text)
        return fill(text, path, context, trusted=trusted) if "<%" in text else text

    def _queue_needs(self) -> list[str]:
        if "kueue" not in {fragment.name for fragment in self.target.fragments}:
            return []
        claims = any("resourceClaims.yaml" in fragment.slots for fragment in self.target.fragments)
        return queue_needs(self.workload.name, claims=claims)

    @cached_property
    def _context(self) -> dict[str, object]:
        return {
            "chart": self.chart,
            "target": self.target,
            "workload": self.workload.name,
            "container": self.workload.container,
            "kind": self.workload,
            "setup": not self.guarded,
            "version": __version__,
            "compat": lock,
            "queue_needs": self._queue_needs(),
            "exceptions": exceptions(self.target.fragments),
            "slot": self._slot,
            "part": self._part,
            "common": _program,
            "devices": self._devices,
            "workload_validate": self._workload_validate,
        }

    def _workload_validate(self) -> str:
        path = self.workload.path / "validate.tpl"
        return self._render(read_text(path), path).rstrip("\n") if path.is_file() else ""


def _workload(target: Target, name: str) -> Workload:
    try:
        return load_workload(target.library.find("workload", name))
    except UsageError as error:
        if name != target.workload:
            raise
        found = error.problems[0]
        raise UsageError(target.document.problem(found.message, ("workload",), found.hint)) from None


def _template_name(file: Path) -> str:
    """Skeleton files that only define templates keep their own extension for editors; Helm wants `.tpl`."""
    return f"templates/{file.stem}.tpl" if file.name.startswith("_") else f"templates/{file.name}"


def _check_defined_once(files: Mapping[str, str], sources: Mapping[str, Path]) -> None:
    """Refuse two templates of one name, of which Helm would silently take the last."""
    first: dict[str, str] = {}
    problems = []
    for name, text in files.items():
        for match in _DEFINE.finditer(text):
            if match[1] in first:
                line = text.count("\n", 0, match.start()) + 1
                message = f"template {match[1]!r} is already defined in {sources[first[match[1]]]}"
                problems.append(Problem(message, sources[name], line, hint="rename it"))
            first.setdefault(match[1], name)
    if problems:
        raise ChartgenError(problems)


def _program(name: str) -> str:
    """Return a program that every run needs. A stranger's tag can name no other file."""
    if name not in _PROGRAMS:
        raise ValueError(f"common({name!r}): there is no such program; known: {', '.join(_PROGRAMS)}")
    return read_text(COMMON / name)


def _told(fact: re.Match[str], context: Mapping[str, object]) -> str:
    """Fill in a fact; a name that the context lacks is a loop's, and jinja2's to fill."""
    return str(attrgetter(fact[2])(context[fact[1]])) if fact[1] in context else fact[0]


def _text(segments: Sequence[Segment]) -> str:
    return "".join(segment.text for segment in segments)


def _indent(text: str, indent: int) -> str:
    pad = " " * indent
    return "\n".join(pad + line if line.strip() else line for line in text.split("\n"))


def _tidy(text: str) -> str:
    """End a file in one newline; what stands inside is the author's."""
    return text.strip("\n") + "\n"
