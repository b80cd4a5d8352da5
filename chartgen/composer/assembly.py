"""Composes a chart: fragments' slot texts into the skeleton of a workload kind, values and schemas into one each.

Nothing is written here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from chartgen.composer.chart_tags import COMMON, DEFINE, Tags, joined
from chartgen.composer.definition import files_in, is_builtin, source_text
from chartgen.composer.fragment import Fragment, check_combination
from chartgen.composer.interface import interface_of, setup_interface_of
from chartgen.composer.library import BUILTIN
from chartgen.composer.origin import Composed
from chartgen.composer.policies import policy_text
from chartgen.composer.presets import for_values
from chartgen.composer.privileges import KUBE_LINTER, WITHOUT_TTL, kube_linter_config
from chartgen.composer.rule_lines import rule_lines
from chartgen.composer.rules import rules_of
from chartgen.composer.tags import FragmentLine, LineMarks
from chartgen.composer.target import Target, of_kind, with_fragments, with_launchers
from chartgen.composer.values import ValueRow
from chartgen.composer.workload import load_workload
from chartgen.errors import ChartgenError, Problem, UsageError, refuse
from chartgen.helm.chart import Chart
from chartgen.helm.gotemplate import split_definitions
from chartgen.helm.schema import SCHEMA_FILE

SETUP = BUILTIN / "workloads" / "setup"
_INCLUDE = re.compile(r'\binclude\s+"([^"]+)"')
_GET = re.compile(r'\.Files\.Get "files/([^"]+)"')
_ACCESSORS = "templates/_accessors.tpl"
_NOT_IN_EVERY_CHART = {_ACCESSORS, *(f"templates/_{name}.tpl" for name in ("hydra", "rendezvous", "tokenizers"))}
_POLICIES = "templates/_policies.tpl"
_SPEC = "templates/_workload.tpl"  # of a workload kind: the definition of its object's spec
_COMMON_IN_SETUP = ("templates/_helpers.tpl", "templates/_settings.tpl")
# A definition with the comment above it, after the end of a line; the composer's marks may end each line. It begins in
# characters that are found fast.
_DEFINITION = re.compile(r'\n\{\{-?\s*(?:/\*[^*]*(?:\*(?!/)[^*]*)*\*/[^\n]*\n\{\{-?\s*)?define\s+"([^"]+)"')


def compose(
    target: Target,
    workload: str | None = None,
    *,
    values: Mapping[str, Any] | None = None,
    fragments: Sequence[str] = (),
    launchers: Sequence[str] = (),
) -> Chart:
    """Compose the run chart of a target.

    Args:
        workload: Another workload kind than the target's own; the same fragments fill it.
        values: Leave out the launchers that these values do not name; None for all of the target.
        fragments: Names of more fragments of the target's library, behind those of the target.
        launchers: Names of the only launchers, the first as default; none for all.

    Returns:
        The chart in memory, named after the target; with another workload kind, `<target>-<workload>`.

    Raises:
        UsageError: Unknown workload kind, fragment or launcher.
        ChartgenError: Fragments that exclude each other, slots that clash, text that does not render.
    """
    kind = _known_kind(target, workload)
    target = with_launchers(with_fragments(target, fragments), launchers) if fragments or launchers else target
    return _Composer(target if values is None else for_values(target, values, workload), kind).run_chart()


def compose_interface(target: Target, workload: str | None = None) -> Chart:
    """Compose only the schema and the values of a run chart: enough to check values, in a fraction of the time.

    Returns:
        A chart without templates: values.yaml and values.schema.json.
    """
    return _Composer(target, _known_kind(target, workload)).interface()


def compose_setup(target: Target, workload: str | None = None) -> Chart | None:
    """Compose the setup chart of a target, which takes the same values; None when no fragment has setup templates.

    Args:
        workload: Another workload kind; it has a setup chart of its own only when other fragments fill it.
    """
    found = of_kind(with_launchers(target, ()), workload or target.workload)
    if not any(fragment.setup for fragment in found.fragments):
        return None
    usual = of_kind(found, target.workload)
    kind = target.workload if usual.fragments == found.fragments else found.kind
    return _Composer(usual, _known_kind(usual, kind), setup=True).setup_chart()


def compose_sources(composed: Composed) -> dict[str, list[tuple[str, FragmentLine | None]]]:
    """Return where a chart's templates come from: path in the chart -> each line and its source; raise as `compose`."""
    marks = LineMarks()
    composer = _Composer(composed.target, composed.workload, marks, setup=composed.setup)
    files = composer.setup_templates() if composed.setup else composer.run_templates()
    return {path: marks.read(_tidy(text)) for path, text in files.items()}


class _Composer:
    def __init__(self, target: Target, kind: str, marks: LineMarks | None = None, *, setup: bool = False) -> None:
        target = of_kind(target, kind)
        workload = target.runs or load_workload(target.library.find("workload", kind))
        self.target, self.workload, self.marks, self.setup = target, workload, marks, setup
        check_combination(target.fragments, target.document, workload.name, workload.requires, workload.queues)
        other = "" if kind == target.workload else f"-{kind}"
        self.chart = f"{target.name}{other}{'-setup' if setup else ''}"
        self.tags = Tags(target, workload, self.chart, setup=setup, marks=marks, rules=self._rules)
        self.sources: dict[str, Path] = {}

    def run_chart(self) -> Chart:
        """Compose the chart of runs."""
        stated = [fragment.privileges for fragment in self.target.fragments]
        files = {**self.run_templates(), KUBE_LINTER: kube_linter_config(stated)}
        common = {f"templates/{self.workload.name}.yaml", "templates/job.yaml", "templates/_launch.tpl"}
        others = [
            f"`{path}`"
            for path in sorted(files)
            if path.startswith("templates/") and path not in common and self._is_special(path)
        ]
        description = f"Training on {self.target.description}"
        interface, table = self._interface
        facts = {
            "others": ", ".join(others),
            "values_table": [{"key": row.key, "default": row.default, "meaning": row.meaning} for row in table],
            **self._keys(table),
        }
        return self._finish(files | interface, COMMON, description, **facts)

    def _keys(self, table: Iterable[ValueRow]) -> dict[str, list[str]]:
        """Return the top-level values of a chart, and the values that mean a launcher's default where they are null."""
        defaults = [key for launcher in self.target.launchers for key in launcher.defaults]
        keys = [str(row.keys[0]) for row in table]
        return {name: list(dict.fromkeys(found)) for name, found in (("keys", keys), ("null_keys", defaults))}

    def _is_special(self, path: str) -> bool:
        """Whether a template is of a fragment or a workload kind, and not of every chart."""
        return path in _NOT_IN_EVERY_CHART or not str(self.sources[path]).startswith(f"{COMMON}/")

    def run_templates(self) -> dict[str, str]:
        """Compose the templates of the chart of runs."""
        # a kind's own file replaces the common one of its name
        for folder in (COMMON, *self.workload.folders):
            self.sources |= {_template_name(file): file for file in files_in(folder / "templates")}
        if not self.tags.for_users:
            del self.sources[_ACCESSORS]
        files = {name: self.tags.render(source_text(file), file) for name, file in self.sources.items()}
        files = self._objects(files) | self._launchers("launcher.tpl", "templates/launchers/_{}.tpl")
        for fragment in self.target.fragments:
            for name, text in fragment.manifests.items():
                files |= self._template(name, text, fragment.path / "manifests" / name)
            files |= self._helpers(fragment)
        _check_defined_once(files, self.sources)
        files = self._obeying(self._beginning(files, "resolve"))
        files = _with_used_definitions(files, self.sources, {_ACCESSORS})
        return files | self._read_files(files) | self._launchers("launcher.yaml", "files/launchers/{}/launcher.yaml")

    def setup_chart(self) -> Chart:
        """Compose the chart of what is installed once."""
        files = self.setup_templates()
        interface = setup_interface_of(self.tags, files.values())
        description = f"Queues and storage for training on {self.target.description}"
        return self._finish(files | interface, SETUP, description)

    def setup_templates(self) -> dict[str, str]:
        """Compose the templates of the chart of what is installed once."""
        own = files_in(SETUP / "templates")
        files = {f"templates/{file.name}": self.tags.render(source_text(file), file) for file in own}
        shared = (*_COMMON_IN_SETUP, *([_ACCESSORS] if self.tags.for_users else []))
        files |= {name: self.tags.common(name) for name in shared}
        for fragment in self.target.fragments:
            for name, text in fragment.setup.items():
                files |= self._template(name, text, fragment.path / "setup" / name)
        files = self._obeying(self._beginning(files, "figures"))
        self._add_helpers(files)
        files = _with_used_definitions(files, self.sources, set())
        return files | self._read_files(files)

    def _beginning(self, files: Mapping[str, str], name: str) -> dict[str, str]:
        """Begin the files of objects with what makes .Run: Helm renders files in an order of its own."""
        first = f'{{{{- include "{self.chart}.{name}" . -}}}}\n'
        return {path: text if "/_" in path else first + text for path, text in files.items()}

    def _obeying(self, files: dict[str, str]) -> dict[str, str]:
        """Pass the objects of all files through the template of the policies."""
        if not self.target.policies:
            return files
        text = self.tags.common("policies.tpl", policy=policy_text(self.target.policies))
        self.sources[_POLICIES] = COMMON / "policies.tpl"
        objects = [path for path in files if "/_" not in path and path.endswith(".yaml")]
        return files | {_POLICIES: text} | {path: self._obedient(Path(path).stem, files[path]) for path in objects}

    def _obedient(self, name: str, text: str) -> str:
        body, definitions = split_definitions(text)
        own = f"{self.chart}.bare.{name}"
        return (
            f'{{{{- define "{own}" -}}}}\n{body.strip()}\n{{{{- end }}}}\n\n{definitions.strip()}\n\n'
            f'{{{{- include "{self.chart}.obeying" (list . "{own}") }}}}\n'
        )

    def _read_files(self, files: Mapping[str, str]) -> dict[str, str]:
        """Return the scripts, programs and tables that templates read, path in the chart -> text."""
        read = sorted({name for text in files.values() for name in _GET.findall(text)})
        return {f"files/{name}": text for name in read if (text := self.tags.file(name)) is not None}

    def interface(self) -> Chart:
        """Compose the values and their schema."""
        return Chart(self.chart, self._interface[0], self._origin)

    @cached_property
    def _interface(self) -> tuple[dict[str, str], list[ValueRow]]:
        """The values and their schema as files, and a row for each value."""
        return interface_of(self.tags)

    def _finish(self, files: dict[str, str], folder: Path, description: str, **facts: Any) -> Chart:
        files |= {
            "Chart.yaml": self.tags.common("Chart.yaml", description=description),
            "LICENSE": source_text(COMMON / "LICENSE"),
            ".helmignore": source_text(COMMON / "helmignore"),
        }
        for page in (file for file in files_in(folder) if file.suffix == ".md"):
            files[page.name] = self.tags.render(source_text(page), page, description=description, **facts)
        return Chart(self.chart, {path: _tidy(files[path]) for path in sorted(files)}, self._origin)

    @property
    def _origin(self) -> Composed:
        return Composed(self.target, self.workload.name, setup=self.setup)

    def _helpers(self, fragment: Fragment) -> dict[str, str]:
        slot = fragment.slots.get("helpers.tpl")
        return self._template(f"_{fragment.name}.tpl", joined(slot.segments), slot.path) if slot else {}

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
        return set(DEFINE.findall(self.tags.render(joined(slot.segments), slot.path)))

    def _template(self, name: str, text: str, path: Path) -> dict[str, str]:
        name = f"templates/{name}"
        if name in self.sources:
            hint = "rename it" if path.suffix == ".yaml" else "rename the fragment"
            raise ChartgenError(
                Problem(f"{name} of the chart already comes from {self.sources[name]}", path, hint=hint)
            )
        self.sources[name] = path
        return {name: self.tags.render(text, path)}

    def _objects(self, files: dict[str, str]) -> dict[str, str]:
        """Give the object of a run a file of its kind's name, with its spec below it, and leave out empty files."""
        kind, gpu = self.workload, ".Run.gpu"
        spec = files.pop(_SPEC)
        self.sources.pop(_SPEC)
        own = "objectSpec" if "objectSpec" in self.tags.defined_by_kind else "kindSpec"
        if self.tags.has_other_job:
            made = {
                kind.name: self._object(kind.api, kind.kind, own, gpu, spec, gpus=True),
                "job": self._object("batch/v1", "Job", "job", f"not {gpu}", self.tags.common("job.tpl"), gpus=False),
            }
        else:
            made = {kind.name: self._object(kind.api, kind.kind, own, "", spec)}
        objects = {f"templates/{name}.yaml": text for name, text in made.items()}
        self.sources |= dict.fromkeys(objects, COMMON / "object.yaml")
        return objects | {name: text for name, text in files.items() if text.strip()}

    def _object(
        self, api: str, name: str, spec: str, condition: str, definitions: str, *, gpus: bool | None = None
    ) -> str:
        facts = {
            "api": api,
            "object_kind": name,
            "spec": spec,
            "condition": condition,
            "definitions": definitions.strip(),
        }
        return self.tags.common("object.yaml", gpus=gpus, without_ttl=WITHOUT_TTL, **facts)

    def _launchers(self, source: str, name: str) -> dict[str, str]:
        """Compose a file for each launcher."""
        path = COMMON / source
        files = {
            name.format(launcher.name): self.tags.render(source_text(path), path, launcher=launcher)
            for launcher in self.target.launchers
        }
        self.sources |= dict.fromkeys(files, path)
        return files

    def _rules(self) -> str:
        tasks = tuple((launcher.name, launcher.task) for launcher in self.target.launchers)
        unmarked = _Composer(self.target, self.workload.name) if self.marks else self
        schema = unmarked.interface().files[SCHEMA_FILE]
        lines = rule_lines(self.chart, tuple(rules_of(self.target, self.workload.folders)), schema, tasks)
        marks = self.marks
        return "\n".join(marks.marked(*line) if marks else line.text for line in lines)


def _known_kind(target: Target, name: str | None) -> str:
    """Return the name of a workload kind, the target's own for None."""
    try:
        target.library.find("workload", name or target.workload)
    except UsageError as error:
        if name:
            raise
        problem = error.problems[0]
        raise UsageError(target.document.problem(problem.message, ("workload",), problem.hint)) from None
    return name or target.workload


def _template_name(file: Path) -> str:
    """Skeleton files that only define templates keep their own extension for editors; Helm wants `.tpl`."""
    return f"templates/{file.stem}.tpl" if file.name.startswith("_") else f"templates/{file.name}"


def _check_defined_once(files: Mapping[str, str], sources: Mapping[str, Path]) -> None:
    """Refuse two templates of one name, of which Helm would silently take the last."""
    names = [name for text in files.values() for name in DEFINE.findall(text)]
    if len(names) == len(set(names)):
        return
    first: dict[str, str] = {}
    problems = []
    for name, text in files.items():
        for match in DEFINE.finditer(text):
            if match[1] in first:
                line = text.count("\n", 0, match.start()) + 1
                message = f"template {match[1]!r} is already defined in {sources[first[match[1]]]}"
                problems.append(Problem(message, sources[name], line, hint="rename it"))
            first.setdefault(match[1], name)
    refuse(problems)


def _with_used_definitions(
    files: Mapping[str, str], sources: Mapping[str, Path], whole: Collection[str] = ()
) -> dict[str, str]:
    """Leave out chartgen's own definitions that nothing includes; of two with one name, the first is kept.

    Args:
        files: The files of a chart.
        sources: Template -> the file that it comes from.
        whole: Templates that stay unchanged, because templates of users may include what is in them.
    """
    helpers = {
        path: _definitions(text)
        for path, text in files.items()
        if path.startswith("templates/_") and path not in whole and is_builtin(sources.get(path, COMMON))
    }
    defined: dict[str, str] = {}
    for name, text in [each for found in helpers.values() for each in found]:
        defined.setdefault(name, text)
    # a template may also join the chart's name and the definition's
    by_word = {word: name for name in defined for word in (name, name.partition(".")[2])}
    used: set[str] = set()
    left = [text for path, text in files.items() if path not in helpers]
    while left:
        new = {by_word[word] for word in by_word.keys() & left.pop().split('"')} - used
        used |= new
        left += [defined[name] for name in new]
    kept = {
        path: "".join(text for name, text in found if name in used and defined[name] is text)
        for path, found in helpers.items()
    }
    return {path: text for path, old in files.items() if (text := kept.get(path, old))}


def _definitions(text: str) -> list[tuple[str, str]]:
    """Return the definitions of a file of helpers, each by its name with its text."""
    starts = list(_DEFINITION.finditer("\n" + text))  # which moves each start to the brace behind the end of the line
    ends = [*(start.start() for start in starts[1:]), len(text)][: len(starts)]
    return [(start[1], text[start.start() : end]) for start, end in zip(starts, ends, strict=True)]


def _tidy(text: str) -> str:
    """End a file in one newline; the rest is the author's."""
    return text.strip("\n") + "\n"
