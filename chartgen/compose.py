"""Composes a chart: fragments' slot texts into the skeleton of a workload kind, values and schemas into one each.

The skeleton and the fragments are Helm text; jinja2 with `<% %>` only joins them, so that their Go templates, comments
and order survive. Nothing is written here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen import __version__
from chartgen.chart import Chart
from chartgen.definition import Field, read_definition
from chartgen.documented import Row, describe, rows
from chartgen.errors import ChartgenError, Problem, did_you_mean
from chartgen.fragment import Fragment, check_combination
from chartgen.launcher import Launcher
from chartgen.library import BUILTIN
from chartgen.schema import closed, merge_schemas
from chartgen.slots import Segment, SlotText, resolve
from chartgen.target import Target
from chartgen.yamltext import Document, leaves, load, read_text, require_map

if TYPE_CHECKING:
    from jinja2 import Environment, Template

COMMON = BUILTIN / "workloads" / "common"
SETUP = BUILTIN / "workloads" / "setup"
WORKLOAD_FIELDS = {
    "description": Field("string", "one sentence: what the kind is for", required=True),
    "container": Field("string", "name of the program's container", required=True),
    "api": Field("string", "API group and version of its object", required=True),
    "requires": Field("array", "fragments or capabilities that every target of the kind must list"),
    "sources": Field("array", "the documents that its fields come from", required=True),
}
_MODELINE = "# yaml-language-server: $schema=values.schema.json\n"
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
    return _Composer(target, workload or target.workload).run_chart()


def compose_setup(target: Target) -> Chart | None:
    """Compose the setup chart of a target, which takes the same values; None when no fragment has setup templates."""
    if not any(fragment.setup for fragment in target.fragments):
        return None
    return _Composer(target, target.workload).setup_chart()


class _Composer:
    def __init__(self, target: Target, workload: str) -> None:
        self.target, self.workload = target, workload
        self.skeleton = target.library.find("workload", workload)
        self.meta = _workload(self.skeleton)
        check_combination(target.fragments, target.path, workload, self.meta.get("requires", []))
        self.chart = target.name if workload == target.workload else f"{target.name}-{workload}"
        self.guarded = True

    def run_chart(self) -> Chart:
        folders = [COMMON / "templates", self.skeleton / "templates"]
        files = {}
        for file in (file for folder in folders for file in sorted(folder.iterdir())):
            files[_template_name(file)] = self._render(read_text(file), file)
        for fragment in self.target.fragments:
            for name, text in fragment.manifests.items():
                files[f"templates/{name}"] = self._render(text, fragment.path / "manifests" / name)
            files |= self._helpers(fragment)
        return self._finish(files, COMMON / "README.md", f"Training on {self.target.description}")

    def setup_chart(self) -> Chart:
        self.chart = f"{self.chart}-setup"
        # the setup chart has no launcher to ask whether GPUs are in use: its objects are for runs that use them
        self.guarded = False
        files = {f"templates/{name}": self._common(f"templates/{name}") for name in _COMMON_IN_SETUP}
        files["templates/NOTES.txt"] = self._render(read_text(SETUP / "templates/NOTES.txt"), SETUP / "NOTES.txt")
        for fragment in self.target.fragments:
            for name, text in fragment.setup.items():
                files[f"templates/{name}"] = self._render(text, fragment.path / "setup" / name)
        return self._finish(files, SETUP / "README.md", f"Queues and storage for training on {self.target.description}")

    def _finish(self, files: dict[str, str], readme: Path, description: str) -> Chart:
        text, table = self._values()
        schema = self._schema(table)
        files |= {
            "Chart.yaml": self._common("Chart.yaml", description=description),
            "LICENSE": read_text(COMMON / "LICENSE"),
            ".helmignore": read_text(COMMON / "helmignore"),
            "README.md": self._render(read_text(readme), readme, description=description, values_table=table),
            "values.yaml": _MODELINE + text,
            "values.schema.json": json.dumps(schema, indent=2) + "\n",
        }
        return Chart(self.chart, {path: _tidy(files[path]) for path in sorted(files)})

    def _common(self, name: str, **more: object) -> str:
        return self._render(read_text(COMMON / name), COMMON / name, **more)

    def _helpers(self, fragment: Fragment) -> dict[str, str]:
        slot = fragment.slots.get("helpers.tpl")
        if slot is None:
            return {}
        return {f"templates/_{fragment.name}.tpl": self._render(_text(slot.segments), slot.path)}

    # -- slots

    def _slot(self, name: str, indent: int) -> str:
        chunks, guard_open = [], False
        for text, segments in self._resolved(name):
            fragment = next(fragment for fragment in self.target.fragments if fragment.slots.get(name) is text)
            guard = self.guarded and fragment.gpu_only and not name.endswith(".tpl")
            if guard != guard_open:
                chunks.append(self._guard(guard))
                guard_open = guard
            if not name.endswith((".sh", ".tpl")):
                chunks.append(f"{{{{- /* {fragment.name} */}}}}\n")
            chunks.append(self._render(_text(segments), text.path, indent=indent))
        if guard_open:
            chunks.append(self._guard(False))
        return _indent("".join(chunks), indent).rstrip("\n")

    def _guard(self, opens: bool) -> str:
        return f'{{{{- if include "{self.chart}.gpu" . }}}}\n' if opens else "{{- end }}\n"

    def _resolved(self, name: str) -> list[tuple[SlotText, list[Segment]]]:
        texts = [fragment.slots[name] for fragment in self.target.fragments if name in fragment.slots]
        return [(text, segments) for text, segments in resolve(texts) if segments]

    def _part(self, launcher: Launcher, name: str) -> str:
        return self._render(launcher.parts.get(name, ""), launcher.path / name, launcher=launcher).rstrip("\n")

    # -- values

    def _values(self) -> tuple[str, list[Row]]:
        """Join values.yaml from the common, the fragments' and the launchers', with the target's defaults over them."""
        texts = [(COMMON / "values.yaml", self._common("values.yaml"))]
        for fragment in self.target.fragments:
            path = fragment.path / "values.yaml"
            if path.is_file():
                texts.append((path, self._render(read_text(path), path)))
        _check_owners(texts)
        text = "\n".join(text.rstrip("\n") + "\n" for _, text in texts) + "\nlaunchers:\n"
        for launcher in self.target.launchers:
            text += f"  {launcher.name}:\n" + _indent(self._launcher_values(launcher), 4)
        return _with_defaults(text, self.target)

    def _launcher_values(self, launcher: Launcher) -> str:
        paths = [BUILTIN / "launchers" / "values.yaml", launcher.path / "values.yaml"]
        return "".join(self._render(read_text(path), path, launcher=launcher) for path in paths if path.is_file())

    def _schema(self, table: list[Row]) -> dict[str, Any]:
        parts = [(str(path), _json(path)) for path in self._schema_files()]
        common = BUILTIN / "launchers" / "values.schema.json"
        for launcher in self.target.launchers:
            own = launcher.path / "values.schema.json"
            properties = {**_json(common), **(_json(own) if own.is_file() else {})}
            parts.append(
                (
                    str(own),
                    {
                        "properties": {
                            "launchers": {"properties": {launcher.name: {"type": "object", "properties": properties}}}
                        }
                    },
                )
            )
        enums = {"launcher": [one.name for one in self.target.launchers], "machineType": list(self.target.machines)}
        parts.append((str(self.target.path), {"properties": {key: {"enum": names} for key, names in enums.items()}}))
        schema = closed(merge_schemas(parts))
        describe(schema, table)
        return schema

    def _schema_files(self) -> Iterator[Path]:
        yield COMMON / "values.schema.json"
        for fragment in self.target.fragments:
            path = fragment.path / "values.schema.json"
            if path.is_file():
                yield path

    # -- jinja2

    def _render(self, text: str, path: Path, **more: object) -> str:
        # by far the most frequent tag; most files hold no other, and jinja2 takes a millisecond to compile one
        text = text.replace("<%= chart %>", self.chart)
        if "<%" not in text:
            return text
        from jinja2 import TemplateError, TemplateSyntaxError

        try:
            return _template(text, self.target.library.is_builtin(path)).render(self._context, **more)
        except TemplateSyntaxError as error:
            raise ChartgenError(Problem(error.message or "invalid <% %>", path, error.lineno)) from None
        except TemplateError as error:
            raise ChartgenError(Problem(error.message or "invalid <% %>", path)) from None

    @cached_property
    def _context(self) -> dict[str, object]:
        return {
            "chart": self.chart,
            "target": self.target,
            "workload": self.workload,
            "container": self.meta["container"],
            "api": self.meta["api"],
            "version": __version__,
            "slot": self._slot,
            "part": self._part,
            "workload_validate": self._workload_validate(),
        }

    def _workload_validate(self) -> str:
        path = self.skeleton / "validate.tpl"
        return read_text(path).rstrip("\n") if path.is_file() else ""


@lru_cache
def _workload(skeleton: Path) -> dict[str, Any]:
    return read_definition(skeleton / "workload.yaml", WORKLOAD_FIELDS)[1]


@lru_cache(maxsize=2)
def _environment(trusted: bool) -> Environment:
    from jinja2 import Environment, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    make: Callable[..., Environment] = Environment if trusted else ImmutableSandboxedEnvironment
    environment = make(
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<%=",
        variable_end_string="%>",
        comment_start_string="<%#",
        comment_end_string="%>",
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  the output is Helm text, not HTML
    )
    environment.filters["quoted"] = json.dumps
    return environment


@lru_cache(maxsize=256)
def _template(text: str, trusted: bool) -> Template:
    return _environment(trusted).from_string(text)


def _template_name(file: Path) -> str:
    """Skeleton files that only define templates keep their own extension for editors; Helm wants `.tpl`."""
    return f"templates/{file.stem}.tpl" if file.name.startswith("_") else f"templates/{file.name}"


def _text(segments: Any) -> str:
    return "".join(segment.text for segment in segments)


def _indent(text: str, indent: int) -> str:
    pad = " " * indent
    return "".join(pad + line if line.strip() else line for line in text.splitlines(keepends=True))


def _tidy(text: str) -> str:
    """End a file in one newline and drop the blank runs that empty slots leave."""
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", text)).strip("\n") + "\n"


@lru_cache
def _json(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ChartgenError(Problem(error.msg, path, error.lineno, error.colno)) from None
    return data


@lru_cache(maxsize=256)
def _top_level(text: str, path: Path) -> Document:
    return load(text, path)


def _check_owners(texts: list[tuple[Path, str]]) -> None:
    owners: dict[str, Path] = {}
    problems = []
    for path, text in texts:
        document = _top_level(text, path)
        for key in require_map(document, "a values file"):
            if key in owners:
                hint = "each top-level key has one owner; use another name"
                problems.append(document.problem(f"{key!r} is already defined in {owners[key]}", (key,), hint))
            owners.setdefault(key, path)
    if problems:
        raise ChartgenError(problems)


def _with_defaults(text: str, target: Target) -> tuple[str, list[Row]]:
    """Write the target's default values over the fragments' own, keeping comments and order."""
    document = load(text, "values.yaml")
    table = {row.keys: row for row in rows(text, document)}
    edits, problems = [], []
    for keys, value in leaves(target.values):
        row, span = table.get(keys), document.span(keys)
        if row is None or span is None:
            dotted = ".".join(map(str, keys))
            hint = did_you_mean(dotted, [row.key for row in table.values()])
            problems.append(target.document.problem(f"the chart has no value {dotted!r}", ("values", *keys), hint))
        else:
            edits.append((*span, json.dumps(value)))
            table[keys] = replace(row, default=json.dumps(value))
    if problems:
        raise ChartgenError(problems)
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text, list(table.values())
