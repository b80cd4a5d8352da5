"""The tags of a chart's sources: facts of its target, and what fragments, launchers and kinds fill in.

The sources are Helm text; jinja2 with `<% %>` only joins them, so that their Go templates, comments and order survive.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

from chartgen import __version__
from chartgen.composer.definition import file_in, files_in, has_file, is_builtin, source_text
from chartgen.composer.fragment import Fragment
from chartgen.composer.launcher import CONTAINER, INCLUDED, Launcher
from chartgen.composer.library import BUILTIN
from chartgen.composer.pod_files import LAUNCHERS_FIELDS
from chartgen.composer.privileges import patterns
from chartgen.composer.rule_facts import FACTS, PORTABLE
from chartgen.composer.slots import SLOTS, Segment, SlotText, resolve
from chartgen.composer.tags import LineMarks, fill, kind_facts, target_facts
from chartgen.composer.target import Target
from chartgen.composer.workload import Workload
from chartgen.data.compatibility import lock, queue_needs
from chartgen.data.exits import exit_codes, final_exits
from chartgen.errors import did_you_mean

COMMON = BUILTIN / "workloads" / "common"
# What a text defines as a template of Helm's.
DEFINE = re.compile(r'\{\{-?\s*define\s+"([^"]+)"')
_PORTABLE = textwrap.fill(json.dumps(PORTABLE, sort_keys=True), 118, subsequent_indent="  ")
_FACT_OF_RULE = re.compile(r"\$f\.(\w+)")
# A fact of the target or the launcher and nothing else, as most files that do have a tag.
_FACT = re.compile(r"<%= (target|launcher)\.([a-z_.]+) %>")


class Tags:
    """Fills in the tags of a chart's sources.

    Args:
        target: The target, with the fragments of the workload kind.
        setup: Whether the chart is of what is installed once.
        marks: Receives the lines of the sources; None = they are not wanted.
        rules: Composes the lines of the chart's rules.
    """

    def __init__(
        self,
        target: Target,
        workload: Workload,
        chart: str,
        *,
        setup: bool,
        marks: LineMarks | None,
        rules: Callable[[], str],
    ) -> None:
        self.target, self.workload, self.chart, self.setup, self.marks = target, workload, chart, setup, marks
        self._rules = rules

    def render(
        self, text: str, path: Path, launcher: Launcher | None = None, *, gpus: bool | None = None, **more: object
    ) -> str:
        """Fill in the tags of a text.

        Args:
            path: Its file; only tags of chartgen's own files may be any expression.
            launcher: The launcher that the text is of.
            gpus: Whether the text is for runs with GPUs alone, or without; None: it asks when Helm renders it.
            more: Facts beside those of every chart, as plain data.

        Raises:
            ChartgenError: A tag is unknown or fails.
        """
        if self.marks and path.name != "fragment.yaml":
            text = self.marks.marked(text, path)
        # by far the most frequent tag; most files hold no other, and jinja2 takes a millisecond to compile one
        text = text.replace("<%= chart %>", self.chart)
        if "<%" not in text:
            return text
        context, trusted = {**self._context, **more}, is_builtin(path)
        if launcher:
            context["launcher"] = next(each for each in self._facts["launchers"] if each["name"] == launcher.name)
        if gpus is not None:
            context |= self._functions_of(gpus=gpus)
        if trusted:
            text = _FACT.sub(lambda fact: _fact(fact, context), text)
        return fill(text, path, context, trusted=trusted) if "<%" in text else text

    def _functions_of(self, *, gpus: bool) -> dict[str, Callable[..., str]]:
        """Return the functions that differ in texts for runs with GPUs alone, or without."""

        def slot(*arguments: Any, **options: Any) -> str:
            return self.slot(*arguments, gpus=gpus, **options)

        def filled(*arguments: Any, **options: Any) -> str:
            return self._filled(*arguments, gpus=gpus, **options)

        return {"slot": slot, "filled": filled}

    def common(self, name: str, **more: Any) -> str:
        """Fill in a file that all charts share."""
        path = file_in(COMMON, name)
        return self.render(source_text(path), path, **more)

    @cached_property
    def _facts(self) -> dict[str, Any]:
        return target_facts(self.target)

    @cached_property
    def _context(self) -> dict[str, object]:
        return {
            "chart": self.chart,
            "target": self._facts,
            "exits": exit_codes(),
            "final_exits": final_exits(),
            "workload": self.workload.name,
            "container": self.workload.container,
            "kind": kind_facts(self.workload),
            "setup": self.setup,
            "version": __version__,
            "compat": self._compat,
            "queue_needs": self._queue_needs(),
            "slot": self.slot,
            "program_of": lambda name: next(each.program for each in self.target.every_launcher if each.name == name),
            "parts": lambda launcher: list(self._launcher(launcher).parts),
            "launcher_parts": lambda launcher: self._launcher_parts(self._launcher(launcher)),
            "used_parts": self._used_parts,
            "part": lambda launcher, name: self._part(self._launcher(launcher), name),
            "setup_files": lambda fragment: list(self._fragment(fragment).setup),
            "common": self.script,
            "defined": sorted(self.defined_by_kind),
            "filled": self._filled,
            "job": self._job,
            "arguments": self._arguments,
            "other_job": self.has_other_job,
            "without_gpus": self.has_data_programs,
            "devices": self._devices,
            "workload_validate": self._workload_validate,
            "rules": lambda: self._rule_text,
            "made": lambda *facts: not self._facts_of_rules.isdisjoint(facts),
            "portable": _PORTABLE,
            "folders": patterns(),
            "policies": [policy.name for policy in self.target.policies],
        }

    @cached_property
    def _rule_text(self) -> str:
        return self._rules()

    @cached_property
    def _facts_of_rules(self) -> set[str]:
        """Return the facts that the chart makes: those that its rules name, and all where a user's templates may."""
        if self.for_users:
            return {name.partition(".")[0] for name in FACTS}
        return set(_FACT_OF_RULE.findall(self._rule_text))

    @cached_property
    def for_users(self) -> bool:
        """Whether templates of users are in the chart, which may name what chartgen's own do not."""
        paths = [*(part.path for part in self.target.fragments), *(part.path for part in self.target.launchers)]
        return not all(map(is_builtin, [*paths, self.workload.path]))

    def _launcher(self, facts: Mapping[str, str]) -> Launcher:
        """Return the launcher whose facts a tag hands in."""
        return next(launcher for launcher in self.target.launchers if launcher.name == facts["name"])

    def _fragment(self, facts: Mapping[str, str]) -> Fragment:
        """Return the fragment whose facts a tag hands in."""
        return next(fragment for fragment in self.target.fragments if fragment.name == facts["name"])

    # -- slots

    def slot(
        self,
        name: str,
        indent: int,
        provides: str = "",
        *,
        bare: bool = False,
        without_gpus: bool = False,
        gpus: bool | None = None,
    ) -> str:
        """Join what the fragments put into a slot, or only those that provide a capability.

        A setup chart has no launcher to ask for GPUs: its objects are for runs with them. With `without_gpus`, for a
        pod without GPUs in a run that has some, those for GPUs are left out; with `bare`, those for stores too.
        """
        if name not in SLOTS:
            raise ValueError(f"unknown slot {name!r}; {did_you_mean(name, SLOTS)}")
        chunks, guard_open = [], False
        asks = gpus is None and self.has_data_programs
        for text, segments in self._resolved(name, provides, bare=bare):
            if text.gpu_only and (without_gpus or gpus is False):
                continue
            guard = text.gpu_only and asks
            if guard != guard_open:
                chunks.append(_guard(opens=guard))
                guard_open = guard
            if not name.endswith((".sh", ".tpl")):
                chunks.append(f"{{{{- /* {text.fragment} */}}}}\n")
            chunks.append(self._slot_text(text, segments, indent))
        if guard_open:
            chunks.append(_guard(opens=False))
        return indented("".join(chunks), indent).rstrip("\n")

    def _slot_text(self, text: SlotText, segments: Sequence[Segment], indent: int) -> str:
        """Return what a fragment puts into a slot; shell without a template of Helm's is a file of the chart."""
        lines = joined(segments)
        if self.marks:
            lines = "".join(self.marks.marked(segment.text, text.path, segment.line) for segment in segments)
        filled = self.render(lines, text.path, indent=indent - text.column)
        if text.path.name != "beforeLaunch.sh" or "{{" in filled:
            return filled
        return f'{{{{ .Files.Get "files/fragments/{text.fragment}.sh" | trim }}}}\n'

    def _resolved(self, name: str, provides: str, *, bare: bool) -> list[tuple[SlotText, list[Segment]]]:
        filling = [fragment for fragment in self.target.fragments if name in fragment.slots]
        if bare:
            filling = [fragment for fragment in filling if not fragment.gpu_only and "store" not in fragment.provides]
        texts = [fragment.slots[name] for fragment in filling if not provides or provides in fragment.provides]
        return [(text, segments) for text, segments in resolve(texts) if segments]

    def _filled(self, name: str, *, in_list: bool = False, gpus: bool | None = None) -> str:
        """Return what reads the map that fragments fill in, if any does."""
        filling = self._resolved(f"{name}.yaml", "", bare=False)
        if all(text.gpu_only and gpus is False for text, _ in filling):
            return ""
        return f' (include "{self.chart}.slot.{name}" .)' if in_list else f' include "{self.chart}.slot.{name}" .'

    # -- kinds

    @property
    def has_data_programs(self) -> bool:
        """Whether pods of the chart may be without GPUs; objects of a setup chart are for runs with them."""
        return not self.setup and any(launcher.task == "data" for launcher in self.target.launchers)

    @property
    def has_other_job(self) -> bool:
        """Whether data programs run as a Job instead: it needs neither gang nor queue, and every cluster has it."""
        return self.workload.api != "batch/v1" and self.has_data_programs

    @cached_property
    def defined_by_kind(self) -> set[str]:
        """The definitions of the workload kind's own templates, without the chart's name before them."""
        files = [file for folder in self.workload.folders for file in files_in(folder / "templates")]
        names = [name for file in files for name in DEFINE.findall(source_text(file))]
        return {name.partition("%>.")[2] for name in names}

    def _job(self, indent: int, *, gpus: bool = True) -> str:
        return indented(self.common("job.yaml", indent=indent, with_gpus=gpus), indent).rstrip("\n")

    def _arguments(self, indent: int) -> str:
        return indented(self.common("args.yaml"), indent).rstrip("\n")

    def _workload_validate(self) -> str:
        path = self.workload.path / "validate.tpl"
        return self.render(source_text(path), path).rstrip("\n") if path.is_file() else ""

    def _compat(self) -> dict[str, Any]:
        return lock()  # which is itself an object with a cache

    def _queue_needs(self) -> list[str]:
        if "kueue" not in {fragment.name for fragment in self.target.fragments}:
            return []
        claims = any("resourceClaims.yaml" in fragment.slots for fragment in self.target.fragments)
        return queue_needs(self.workload.name, claims=claims)

    def _devices(self, facts: Mapping[str, str]) -> str:
        fragment = self._fragment(facts)
        contract = fragment.contract
        return self.render(contract.devices, fragment.path / "fragment.yaml") if contract else ""

    # -- scripts and programs

    @cached_property
    def scripts(self) -> dict[str, Path]:
        """The scripts of a run, by name; a kind's own replaces the common one."""
        folders = [folder / "files" for folder in (COMMON, *self.workload.folders)]
        return {file.name: file for folder in folders for file in files_in(folder)}

    def script(self, name: str) -> str:
        """Return a script of every run. A stranger's tag can name no other file."""
        if name not in self.scripts:
            raise ValueError(f"common({name!r}): no such file; known: {', '.join(self.scripts)}")
        path = self.scripts[name]
        return self.render(source_text(path), path).rstrip("\n")

    def file(self, path: str) -> str | None:
        """Return the text of a file below files/ that templates read; None where it is unknown."""
        *folder, name = path.split("/")
        if not folder:
            return self.script(name) if name in self.scripts else None
        if folder == ["fragments"]:
            texts = self._resolved("beforeLaunch.sh", "", bare=False)
            return next((self._plain(*text) for text in texts if f"{text[0].fragment}.sh" == name), None)
        launcher = next((launcher for launcher in self.target.launchers if launcher.name == folder[-1]), None)
        return self._part(launcher, name) if launcher and name in launcher.parts else None

    def _plain(self, text: SlotText, segments: Sequence[Segment]) -> str:
        return self.render(joined(segments), text.path)

    @property
    def _used_parts(self) -> list[str]:
        """Return the definitions of launchers that templates include by name; no launcher here has the others."""
        every = [name.partition(".")[0] for name in INCLUDED] + ["programs"]
        if self.for_users:
            return every
        filled = {name for launcher in self.target.launchers for name in _filled_parts(launcher)}
        return [name for name in every if name in filled]

    def _launcher_parts(self, launcher: Launcher) -> dict[str, str]:
        """Return the text of each definition that templates include by name; empty where the launcher has no part."""
        parts = {name.partition(".")[0]: self._included(launcher, name) for name in INCLUDED}
        names = {name: name for name in launcher.modules}
        if launcher.own_program:
            names["{{ base .Run.launcher.program }}"] = launcher.own_program
        parts["programs"] = "\n".join(f"{key}: {self._as_json(launcher, name)}" for key, name in names.items())
        filled = [name for name in names.values() if "{{" in launcher.parts[name]]
        return parts | {name: self._part(launcher, name) for name in filled}

    def _included(self, launcher: Launcher, name: str) -> str:
        """Return a part of a launcher as templates include it: shell without a template of Helm's is a file."""
        if name.endswith(".sh") and "{{" not in launcher.parts.get(name, "{{"):
            return f'{{{{ .Files.Get "files/launchers/{launcher.name}/{name}" }}}}'
        if name == "files.yaml" and launcher.writes_config:
            return f'{{{{ include "{self.chart}.configFile" (list . "{launcher.name}") }}}}'
        return self._part(launcher, name)

    def _as_json(self, launcher: Launcher, name: str) -> str:
        get = f'.Files.Get "files/launchers/{launcher.name}/{name}"'
        if "{{" in launcher.parts[name]:
            get = f'include "{self.chart}.launcher.{launcher.name}.{name}" .'
        return f"{{{{ {get} | trim | toJson }}}}"

    def _part(self, launcher: Launcher, name: str) -> str:
        text = launcher.parts.get(name, "")
        if self.marks or "<%" in text:  # most have no tag, and a hundred paths take a tenth of the time
            in_container = name in LAUNCHERS_FIELDS.values() and not has_file(launcher.path, name)
            text = self.render(text, file_in(launcher.path, CONTAINER if in_container else name), launcher=launcher)
        return text.strip("\n")


def _filled_parts(launcher: Launcher) -> set[str]:
    """Return the definitions that a launcher fills, and those that each chart has."""
    filled = {"config", "args", "env", "beforeLaunch"} | {name.partition(".")[0] for name in launcher.parts}
    filled |= {"programs"} if launcher.own_program else set()
    return filled | ({"files"} if launcher.writes_config else set())


def _guard(*, opens: bool) -> str:
    return "{{- if .Run.gpu }}\n" if opens else "{{- end }}\n"


def joined(segments: Sequence[Segment]) -> str:
    """Return the text of segments."""
    return "".join(segment.text for segment in segments)


def indented(text: str, indent: int) -> str:
    """Indent the lines of a text that are not empty."""
    pad = " " * indent
    return "\n".join(pad + line if line.strip() else line for line in text.split("\n"))


def _fact(fact: re.Match[str], context: Mapping[str, Any]) -> str:
    """Fill in a fact; a name that the context lacks is a loop's, and jinja2's to fill."""
    return str(reduce(dict.__getitem__, fact[2].split("."), context[fact[1]])) if fact[1] in context else fact[0]
