"""Shared options and arguments of commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from chartgen.cli.completion import complete_key, complete_preset, complete_release, complete_target, complete_workload
from chartgen.cli.folder import with_folder
from chartgen.visible import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chartgen.composer.library import Library
    from chartgen.composer.target import Target
    from chartgen.findings import Finding
    from chartgen.helm.chart import Chart
    from chartgen.helm.values import Values
    from chartgen.kube import Cluster
    from chartgen.releases.helm_release import Place
    from chartgen.releases.plan import Plan

F = TypeVar("F", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)
_FETCH = 60.0  # seconds for a chart of a registry
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Duration(click.ParamType[float]):
    """A time span such as 90s, 10m or 2h, as seconds.

    Args:
        least: The shortest allowed, in seconds.
        bare: Whether a number without a unit is in seconds, instead of an error.
    """

    name = "time"

    def __init__(self, *, least: float = 0, bare: bool = False) -> None:
        self._least = least
        self._bare = bare

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a time span."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+)([smhd])", value) or (self._bare and re.fullmatch(r"(\d+(?:\.\d+)?)()", value))
        if not match:
            self.fail(f"{value!r} is not a time span such as 90s, 10m or 2h", param, ctx)
        seconds = float(match[1]) * _UNITS[match[2] or "s"]
        if seconds < self._least:
            self.fail(f"{value!r} is less than {self._least:g}s", param, ctx)
        return seconds


class ValuesFile(click.Path):
    """A values file of this machine; `-` is the standard input, as in Helm."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the file's path."""
        if re.match(r"https?://", str(value)):
            self.fail(f"{value} is not on this machine; download it, and keep the copy with the run", param, ctx)
        return super().convert("/dev/stdin" if value == "-" else value, param, ctx)


target_argument = click.argument("target", shell_complete=complete_target)
price_option = click.option(
    "--price", type=click.FloatRange(min=0), help="Price of one machine for an hour: adds the cost so far."
)


def _checked(_ctx: click.Context, _param: click.Parameter, release: str | None) -> str | None:
    """Reject a name that Helm does not accept, before anything else is done."""
    from chartgen.releases.helm_release import check_name

    if release is not None:
        check_name(release)
    return release


release_argument = click.argument("release", shell_complete=complete_release, callback=_checked)
any_release_argument = click.argument("release", required=False, shell_complete=complete_release, callback=_checked)
new_release_argument = click.argument("release", default="my-run", callback=_checked)
path_option = click.option(
    "--path",
    multiple=True,
    type=_PATH,
    help="Folder with your own targets, fragments, workloads or launchers; repeatable, also CHARTGEN_PATH.",
)
output_option = click.option(
    "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the result."
)
namespace_option = click.option("-n", "--namespace", default="", help="Namespace; default: the context's.")
context_option = click.option("--context", default=None, help="Kubeconfig context; default: the current one.")


def place_options(command: F) -> F:
    """Add `--namespace` and `--context`."""
    return namespace_option(context_option(command))


workload_option = click.option(
    "--workload",
    shell_complete=complete_workload,
    help="Another workload kind than the target's, such as job or jobset.",
)


_PRESET = click.option(
    "--preset",
    "preset_names",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_preset,
    help="Preset with its overlay for the target, below each -f; see `chartgen list presets`.",
)
_PROGRAM = click.option(
    "--program-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Program of your own that torchrun starts on every machine; it goes with the run.",
)
_CODE = click.option(
    "--code",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Folder of your own program, which goes with the run: its train.py starts, or the --program-file in it.",
)
_LAYERS = (
    click.option(
        "-f",
        "--values",
        "files",
        multiple=True,
        type=ValuesFile(),
        help="Values file, or - for the standard input; later ones win.",
    ),
    click.option(
        "--set",
        "set_values",
        multiple=True,
        shell_complete=complete_key,
        metavar="KEY=VALUE",
        help="One value, as in Helm.",
    ),
    click.option(
        "--set-string",
        "set_strings",
        multiple=True,
        shell_complete=complete_key,
        metavar="KEY=TEXT",
        help="One value as text.",
    ),
    click.option(
        "--set-json", multiple=True, shell_complete=complete_key, metavar="KEY=JSON", help="One value as JSON."
    ),
    click.option(
        "--set-file",
        "set_files",
        multiple=True,
        shell_complete=complete_key,
        metavar="KEY=FILE",
        help="One value from a file.",
    ),
)
_NAMES = ("preset_names", "code", "program_file", "files", "set_values", "set_strings", "set_json", "set_files")


def layer_options(command: F) -> F:
    """Add `-f` and the `--set` options, with Helm's meaning."""
    for option in reversed(_LAYERS):
        command = option(command)
    return command


def values_options(command: F) -> F:
    """Add `--preset`, `--code`, `--program-file`, `-f` and the `--set` options to a command with a target."""
    return _PRESET(_CODE(_PROGRAM(layer_options(command))))


def team_option(command: F) -> F:
    """Add `--team` to a command with simulated machines: the setup chart in the namespaces of teams."""
    words = "Install the setup chart in a team's namespace too, with FILE above the other values; repeatable."
    return click.option("--team", "teams", multiple=True, metavar="NAMESPACE=FILE", callback=_teams, help=words)(
        command
    )


def _teams(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, Values]:
    from chartgen.helm.values import load_values

    parted = [each.partition("=") for each in given]
    if wrong := next((each for each, (name, _, file) in zip(given, parted, strict=True) if not (name and file)), None):
        raise click.BadParameter(f"{wrong!r} is not NAMESPACE=FILE")
    return {name: load_values([Path(file)]) for name, _, file in parted}


_CODE_KEYS = ("launchers", "torchrun", "files", "code.py")


def read_values(options: dict[str, Any], target: str = "") -> Values:
    """Remove the values options from a command's options and return them as layers.

    Args:
        options: The options; those of values are removed.
        target: The target or chart folder of the presets; default the command's own.
    """
    from chartgen.helm.values import load_values

    target = target or click.get_current_context().params.get("target") or ""
    given, line = with_folder({name: options.pop(name, ()) for name in _NAMES}, target)
    if line:
        note(line)
    layers = _preset_layers(given.pop("preset_names"), target)
    code = given.pop("code")
    with _temporary_folder() if code else nullcontext("") as folder:
        if program := _program(code, given.pop("program_file"), folder):
            given = _with_program(program, given)
        values = load_values([*layers, *given.pop("files")], **given)
    named = (
        each._replace(source=f"--code {code}") if code and _CODE_KEYS in each.assigned else each
        for each in values.layers
    )
    return replace(values, presets=len(layers), layers=tuple(named))


def _temporary_folder() -> AbstractContextManager[str]:
    from tempfile import TemporaryDirectory

    return TemporaryDirectory()


def _program(code: Path | None, program: Path | None, folder: str) -> Path | None:
    """Return the program's file: a folder of code is packed into one."""
    if not code:
        return program
    from chartgen.composer.code_folder import packed_code

    packed = Path(folder, "code.py")
    packed.write_text(packed_code(code, program or None), "utf-8")
    return packed


def _with_program(program: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Return values options with a program's file, below all flags."""
    key = program.name.replace("\\", "\\\\").replace(".", "\\.").replace(",", "\\,").replace("=", "\\=")
    place = ("launcher=torchrun", f"launchers.torchrun.program=/etc/chartgen/{program.name}")
    path = re.sub(r"[\\,]", r"\\\g<0>", str(program))
    file = f"launchers.torchrun.files.{key}={path}"
    return {
        **given,
        "set_values": (*place, *given.get("set_values", ())),
        "set_files": (file, *given.get("set_files", ())),
    }


def _preset_layers(names: tuple[str, ...], target: str) -> list[Path]:
    if not names:
        return []
    from chartgen.composer.origin import origin_of
    from chartgen.composer.presets import preset_layers
    from chartgen.errors import Problem, UsageError

    if chart := _read_chart(target):
        target = origin_of(chart).name
    if not target:
        raise UsageError(Problem("--preset needs a target", hint="add --target, or pass the preset's file with -f"))
    opened = library(click.get_current_context().params.get("path") or ())
    return [file for name in names for file in preset_layers(name, target, opened)]


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


def find_chart(
    name: str,
    path: tuple[Path, ...],
    workload: str | None = None,
    *,
    values: Values | None = None,
    values_only: bool = False,
) -> Chart:
    """Return a chart, or compose that of a target; with `values_only` only its values interface.

    Args:
        name: A target, a chart's folder or archive, or its address in a registry or on a web server.
        path: The folders of `--path`.
        workload: Another kind of job than the target's.
        values: The user's values: a target's chart has the launchers that they name; None for all.
        values_only: Whether templates are not needed; the schema then has all launchers.
    """
    from chartgen.composer.composed import composed_chart
    from chartgen.composer.origin import identified
    from chartgen.composer.programs import for_values

    if chart := _read_chart(name):
        return identified(chart, library(path))
    target = _load_target(name, library(path))
    if values_only:
        return composed_chart("compose_interface", target, workload)
    if values:  # which launchers, not which values: that chart is the same for many
        target = for_values(target, values.data, workload)
    return composed_chart("compose", target, workload)


def decided(chart: Chart, values: Values, before: dict[str, Any] | None = None) -> Values:
    """Return values with numbers for the sizes that they leave to chartgen, and print what it chose.

    Args:
        chart: The chart.
        values: The user's values.
        before: The values of the release.
    """
    from chartgen.checks.automatic import decide

    decision = decide(chart, values, before)
    if decision.change:
        note(str(decision))
    return decision.values


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
    from chartgen.helm.packages import fetched, unpack_chart

    with _temporary_folder() as folder:
        place = Path(folder, "fetched")
        place.mkdir()
        archive = fetched(name, place, limit=_FETCH) if is_remote(name) else Path(name)
        return Chart.read(unpack_chart(archive, name, Path(folder)))


@contextmanager
def open_place(context: str | None, namespace: str) -> Iterator[tuple[Cluster, Place]]:
    """Connect to the cluster of --context, and yield it with its place for Helm; default the context's namespace."""
    from chartgen.kube import connect
    from chartgen.releases.helm_release import Place

    with connect(context=context) as cluster:
        yield cluster, Place(namespace or cluster.namespace, context=context)


def note(line: str) -> None:
    """Print a line of progress to stderr."""
    click.echo(f"{click.style('>', fg='cyan')} {one_line(line)}", err=True)


def show_warnings(findings: Iterable[Finding]) -> None:
    """Print warnings and failed checks among findings to stderr."""
    for finding in findings:
        if finding.severity != "error":
            click.echo(f"{click.style(finding.severity, fg='yellow')}: {one_line(str(finding))}", err=True)


def show_plan(plan: Plan) -> None:
    """Print a plan to stderr."""
    from chartgen.releases.plan import describe_plan

    show_lines("Plan", describe_plan(plan))


def show_lines(title: str, lines: Iterable[tuple[str, str]]) -> None:
    """Print lines of (label, text) below a title to stderr."""
    click.echo(title, err=True)
    for label, text in lines:
        click.echo(f"  {label:<11} {one_line(text)}", err=True)


def show_table(rows: list[tuple[str, str]]) -> None:
    """Print rows of name and text, wrapped to the terminal but not at hyphens of names, so that they can be copied."""
    import shutil
    import textwrap

    # in a file, lines that every terminal shows
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    first = min(max((len(name) for name, _ in rows), default=0), 30) + 2
    for name, text in rows:
        lines = textwrap.wrap(text, max(width - first, 20), break_on_hyphens=False, break_long_words=False)
        start = f"{name:<{first}}" if len(name) < first else f"{name}\n{'':{first}}"
        click.echo((start + f"\n{'':{first}}".join(lines)).rstrip())
