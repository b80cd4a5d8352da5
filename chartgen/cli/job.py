"""The job that the arguments of a command name: its chart and its values, with what `chartgen.yaml` here adds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from chartgen.cli.output import note, show_warnings

if TYPE_CHECKING:
    from chartgen.checks.automatic import Decision
    from chartgen.composer.library import Library
    from chartgen.composer.target import Target
    from chartgen.findings import Finding
    from chartgen.helm.chart import Chart
    from chartgen.helm.values import Values
    from chartgen.helm.yaml import Plain

_TARGET = "chartgen.target-of-folder"
_FETCH = 60.0  # seconds for a chart of a registry


class FolderCommand(click.Command):
    """A command on a target, with its values: the folder's own where the arguments name none.

    Attributes:
        takes_release_alone: Whether the release may be the only argument, which then names the target.
    """

    takes_release_alone = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, with the target of the folder before them if they lack one."""
        from chartgen.composer.folder_settings import folder_settings

        named = [param.name for param in self.params if isinstance(param, click.Argument)]
        takes_target = {"target", "targets"} & {*named}
        if takes_target and not ctx.resilient_parsing and (target := folder_settings().target):
            options = self.make_parser(ctx).parse_args(list(args))[0]
            words = [word for name in named if isinstance(word := options.get(str(name)), (str, tuple)) and word]
            if len(words) < len(named) and not (words and _is_target(str(words[0]), options.get("path") or ())):
                ctx.meta[_TARGET] = target
                args = [target, *args]
        try:
            return super().parse_args(ctx, list(args))
        except click.MissingParameter as error:
            if not (error.param and error.param.name == "release" and (word := ctx.params.get("target"))):
                raise
            if self.takes_release_alone and not _is_target(word, ctx.params.get("path") or ()):
                ctx.params.clear()
                return super().parse_args(ctx, ["", *args])
            hint = "write TARGET RELEASE; `chartgen status` prints the charts of releases"
            raise click.UsageError(f"of TARGET and RELEASE there is only {word!r}; {hint}", ctx) from None


def _is_target(word: str, path: tuple[str, ...]) -> bool:
    """Report whether the first of fewer words than arguments is a target or a chart, and not a release."""
    from chartgen.composer.library import open_library

    return "/" in word or Path(word).exists() or word in open_library([*map(Path, path)]).names("target")


class _Given(NamedTuple):
    target: str
    path: tuple[Path, ...]
    workload: str | None
    options: Mapping[str, Any]
    before: Mapping[str, Plain] = {}


class GivenJob(_Given):
    """The job that a command's arguments name.

    Args:
        target: A target, a chart's folder or archive, or its address in a registry or on a web server; may be empty.
        path: The folders of `--path`.
        workload: Another kind of job than the target's.
        options: The options of values, as `load_values` takes them, and `preset_names`, `code` and `program_file`.
        before: Values below the given ones: those of the release.
    """

    @property
    def library(self) -> Library:
        """Return the library with the folders of `--path`."""
        return library(self.path)

    @cached_property
    def _read(self) -> Chart | None:
        """Return the chart that the arguments name, which may be at a remote address; None for a target."""
        return _read_chart(self.target)

    @cached_property
    def values(self) -> Values:
        """Return the values as layers: presets, files, flags, the user's own program."""
        from dataclasses import replace

        from chartgen.helm.values import load_values, merge_values, override

        options = {**self.options, **self._of_folder()}
        names, files = options.pop("preset_names"), options.pop("files")
        presets = self._preset_layers(names)
        given, own = _own_program(options.pop("code"), options.pop("program_file"))
        values = load_values([*presets, *files], **options)
        if names and any(layer.has_keys(("launcher",)) for layer in values.layers[len(presets) :]):
            presets = self._preset_layers(names, values.data.get("launcher"))
            values = load_values([*presets, *files], **options)
        values = replace(values, presets=len(presets))
        if own:
            values = override(values, "--set-json", own)
            values = replace(values, layers=(*values.layers[:-1], values.layers[-1]._replace(source=given)))
        return replace(values, data=merge_values({**self.before}, values.data)) if self.before else values

    def _of_folder(self) -> dict[str, Any]:
        """Return the preset and the files of `chartgen.yaml` for options that are not given, and note them."""
        from chartgen.composer.folder_settings import SETTINGS, folder_settings

        context = click.get_current_context()
        if not isinstance(context.command, FolderCommand) or self.target != (settings := folder_settings()).target:
            return {}
        # a program of one's own brings its own model
        own = self.options["code"] or self.options["program_file"] or not settings.preset
        named = {"preset_names": () if own else (settings.preset,), "files": settings.values}
        taken = {key: value for key, value in named.items() if value and not self.options[key]}
        target = context.meta.get(_TARGET)
        words = {"target": target and [target], "preset": taken.get("preset_names"), "values": taken.get("files")}
        if shown := ", ".join(f"{key} {' '.join(map(str, names))}" for key, names in words.items() if names):
            if not {*settings.values} <= {*taken.get("files", ()), *self.options["files"]}:
                shown += f"; not values {' '.join(map(str, settings.values))}, as -f is given"
            note(f"from {SETTINGS}: {shown}")
        return taken

    def _preset_layers(self, names: tuple[str, ...], launcher: Plain = None) -> list[Path]:
        """Return the files of presets for a program; None for their own."""
        if not names:
            return []
        from chartgen.composer.origin import origin_of
        from chartgen.composer.presets import left_behind, preset_layers
        from chartgen.errors import Problem, UsageError

        target = origin_of(self._read).name if self._read else self.target
        if not target:
            raise UsageError(Problem("--preset needs a target", hint="add --target, or pass the preset's file with -f"))
        opened, program = self.library, launcher if isinstance(launcher, str) else ""
        layers = [file for name in names for file in preset_layers(name, target, opened, program)]
        for name in names if program else ():
            if behind := left_behind(name, program, opened):
                note(behind)
        return layers

    def chart(self, values: Values | None = None) -> Chart:
        """Return the chart; that of a target has the launchers of `values`, or else of the given ones."""
        from chartgen.composer.presets import for_values

        # which launchers, not which values: that chart is the same for many
        data = (values or self.values).data
        return self._composed("compose", lambda target: for_values(target, data, self.workload))

    def interface(self) -> Chart:
        """Return the chart without templates, and with all launchers in its schema."""
        return self._composed("compose_interface", lambda target: target)

    def _composed(self, composer: Literal["compose", "compose_interface"], choose: Callable[[Target], Target]) -> Chart:
        from chartgen.composer.composed import composed_chart
        from chartgen.composer.origin import identified

        if self._read:
            return identified(self._read, self.library)
        return composed_chart(composer, choose(_load_target(self.target, self.library)), self.workload)

    def checked(self) -> tuple[Chart, Values]:
        """Return the chart, and the values with sizes that chartgen chooses; raise ChartgenError if it cannot run."""
        chart = self.chart()
        return chart, checked_values(chart, self.values)

    def decided(self) -> tuple[Target, Values, Decision]:
        """Return the target, the values with the sizes that chartgen chooses, not checked, and the choice."""
        from chartgen.checks.automatic import decide
        from chartgen.composer.target import load_target

        decision = decide(self.interface(), self.values)
        if text := str(decision):
            note(text)
        return load_target(self.target, self.library), decision.values, decision


class JudgedValues(NamedTuple):
    """Values that passed their checks, with numbers for the sizes that they leave to chartgen."""

    values: Values
    notes: list[str]  # what chartgen chose, and what the program has no use for
    findings: list[Finding]  # warnings, and what was not checked

    def report(self) -> None:
        """Print the notes and the warnings."""
        for line in self.notes:
            note(line)
        show_warnings(self.findings)


def judged_values(chart: Chart, values: Values, before: dict[str, Any] | None = None) -> JudgedValues:
    """Check values, and choose the sizes that they leave to chartgen.

    Args:
        before: The values of the release.

    Raises:
        ChartgenError: The job cannot run.
    """
    from chartgen.checks import checked, raise_errors
    from chartgen.checks.automatic import decide

    findings, decision = checked(chart, values)
    raise_errors(findings)
    if decision is None or before:
        decision = decide(chart, values, before)
    return JudgedValues(decision.values, notes_of(decision, values), findings)


def notes_of(decision: Decision, values: Values) -> list[str]:
    """Return what was chosen for values, and which of them, set for training, another program has no use for."""
    from chartgen.checks.site_file import unused

    others = ", ".join(unused(decision.job, values)[1]) if decision.job else ""
    return [*filter(None, (str(decision), others and f"not used: {others}, set for training"))]


def checked_values(chart: Chart, values: Values, before: dict[str, Any] | None = None) -> Values:
    """Return values with numbers for the sizes that they leave to chartgen, and print what it chose; see above."""
    found = judged_values(chart, values, before)
    for line in found.notes:
        note(line)
    return found.values


def library(path: tuple[Path, ...]) -> Library:
    """Open the library with the folders of `--path`; note once in a command what replaces another definition."""
    from chartgen.composer.library import open_library

    opened = open_library(path)
    noted = click.get_current_context().meta.setdefault("chartgen.replacements", set())
    for each in set(opened.replacements()) - noted:
        kind, name, own, other = each
        note(f"{kind} {name} of {own} replaces {'chartgen' if opened.is_builtin(other) else other}'s own")
        noted.add(each)
    return opened


def _own_program(code: Path | None, program: Path | None) -> tuple[str, str]:
    """Return the option that gives a program of the user's, and the values that start it; empty without one.

    A folder of code is packed into one file.
    """
    if code:
        from chartgen.composer.code_folder import packed_code

        given, name, text = f"--code {code}", "code.py", packed_code(code, program)
    elif program:
        from chartgen.composer.code_folder import LARGEST
        from chartgen.errors import Problem, UsageError
        from chartgen.helm.values import file_text

        given, name, text = f"--program-file {program}", program.name, file_text(str(program))
        if (size := len(text.encode())) > LARGEST:
            problem = f"has {size:,} bytes, and a release has room for {LARGEST:,}"
            raise UsageError(Problem(problem, program, hint="--code FOLDER packs the files of a folder"))
    else:
        return "", ""
    torchrun = {"program": f"/etc/chartgen/{name}", "files": {name: text}}
    return given, json.dumps({"launcher": "torchrun", "launchers": {"torchrun": torchrun}})


def _load_target(name: str, found: Library) -> Target:
    """Load a target; if only the release's name is one, the two are swapped, as Helm takes them."""
    from chartgen.composer.target import load_target
    from chartgen.errors import Problem, UsageError

    try:
        return load_target(name, found)
    except UsageError as error:
        second = click.get_current_context().params.get("release")
        if second not in found.names("target"):
            raise
        raise UsageError(Problem(error.problems[0].message, hint=f"write the target first: {second} {name}")) from None


def _read_chart(name: str) -> Chart | None:
    """Read the chart of a folder, an archive or an address; None for a target."""
    from chartgen.helm.chart import Chart, is_archive, is_remote

    if (Path(name) / "Chart.yaml").is_file():
        return Chart.read(Path(name))
    if not is_remote(name) and not is_archive(Path(name)):
        return None
    from tempfile import TemporaryDirectory

    from chartgen.helm.packages import fetched, unpack_chart

    with TemporaryDirectory() as folder:
        place = Path(folder, "fetched")
        place.mkdir()
        archive = fetched(name, place, limit=_FETCH) if is_remote(name) else Path(name)
        return Chart.read(unpack_chart(archive, name, Path(folder)))
