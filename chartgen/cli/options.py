"""Options and arguments that several commands have, and the types of their values."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click

from chartgen.cli.completion import complete_key, complete_preset, complete_release, complete_target, complete_workload
from chartgen.cli.job import GivenJob

if TYPE_CHECKING:
    from chartgen.helm.values import Values
    from chartgen.kube import Cluster
    from chartgen.releases.place import Place

Command: TypeAlias = Callable[..., Any]
_PATH = click.Path(path_type=Path)


class Amount(click.ParamType[float]):
    """A number with a unit, such as 10m or 1.5T.

    Args:
        what: The noun for it, with examples.
        units: The size of each unit, that of `least` and `most` first; an empty one needs not be written.
    """

    name = "amount"

    def __init__(self, what: str, units: Mapping[str, float], *, least: float = 0, most: float = math.inf) -> None:
        self._what, self._units, self._least, self._most = what, units, least, most

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a number and its unit."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d+\.?\d*|\.\d+)([a-zA-Z]?)", value)
        unit = match and (self._units.get(match[2]) or self._units.get(match[2].upper()))
        if not match or not unit:
            self.fail(f"{value!r} is not {self._what}", param, ctx)
        amount = float(match[1]) * unit
        smallest = next(iter(self._units))
        if amount < self._least:
            self.fail(f"{value!r} is less than {self._least:g}{smallest}", param, ctx)
        if amount > self._most:
            self.fail(f"{value!r} is more than {self._most:g}{smallest}", param, ctx)
        return amount


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SPAN = "a time span such as 90s, 10m or 2h"
DURATION = Amount(_SPAN, _SECONDS)
PATIENCE = Amount(_SPAN, {**_SECONDS, "": 1}, least=1)


class FiniteRange(click.FloatRange):
    """A number between two limits that is neither infinite nor NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        if not math.isfinite(number := super().convert(value, param, ctx)):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class ValuesFile(click.Path):
    """A values file of this machine; `-` is the standard input, as in Helm."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the file's path."""
        if re.match(r"https?://", str(value)):
            self.fail(f"{value} is not on this machine; download it, and keep the copy with the run", param, ctx)
        return super().convert("/dev/stdin" if value == "-" else value, param, ctx)


def _checked(_ctx: click.Context, _param: click.Parameter, release: str | None) -> str | None:
    """Reject a name that Helm does not accept, before anything else is done."""
    from chartgen.releases.place import check_name

    if release is not None:
        check_name(release)
    return release


def _as_namespace(_context: click.Context, _option: click.Parameter, name: str) -> str:
    """Reject a name that no namespace can have."""
    if name and not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
        raise click.BadParameter(f"{name!r} cannot be a namespace; use lower-case letters, digits and '-'")
    return name


def namespace_option(default: str, words: str) -> Callable[[Command], Command]:
    """Return `--namespace`, which takes only what a namespace can be called."""
    names = ("-n", "--namespace")
    return click.option(*names, default=default, show_default=bool(default), callback=_as_namespace, help=words)


target_argument = click.argument("target", shell_complete=complete_target)
release_argument = click.argument("release", shell_complete=complete_release, callback=_checked)
any_release_argument = click.argument("release", required=False, shell_complete=complete_release, callback=_checked)
new_release_argument = click.argument("release", default="my-run", callback=_checked)
price_option = click.option(
    "--price", type=FiniteRange(min=0), help="Price of one machine for an hour: adds the cost so far."
)
path_option = click.option(
    "--path",
    multiple=True,
    type=_PATH,
    help="Folder with your own targets, fragments, workloads or launchers; repeatable, also CHARTGEN_PATH.",
)
output_option = click.option(
    "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the result."
)
workload_option = click.option(
    "--workload",
    shell_complete=complete_workload,
    help="Another workload kind than the target's, such as job or jobset.",
)


class GivenPlace(NamedTuple):
    """The cluster and the namespace that a command's options name."""

    context: str | None
    namespace: str

    @contextmanager
    def open(self) -> Iterator[tuple[Cluster, Place]]:
        """Connect to the cluster, and yield it with its place for Helm; default the context's namespace."""
        from chartgen.kube import connect
        from chartgen.releases.place import Place

        with connect(context=self.context) as cluster:
            yield cluster, Place(self.namespace or cluster.namespace, context=self.context)

    @contextmanager
    def open_for(self, release: str) -> Iterator[tuple[Cluster, Place]]:
        """Connect for a release whose name may have been meant for a file.

        Raises:
            MissingToolError: No cluster answers; another problem reports that the file is missing.
        """
        from chartgen.errors import MissingToolError, Problem
        from chartgen.releases.place import check_name

        check_name(release)
        try:
            with self.open() as opened:
                yield opened
        except MissingToolError as error:
            raise MissingToolError([Problem("no such file or folder", release), *error.problems]) from None


def named_release(places: tuple[str, ...]) -> str:
    """Return the release that arguments mean: one word that is not a file and does not look like one; else empty."""
    name = places[0]
    is_file = len(places) > 1 or name == "-" or "/" in name or "." in name or Path(name).exists()
    return "" if is_file else name


def place_options(command: Command) -> Command:
    """Add `--namespace` and `--context`; they reach the command as `where`."""

    @wraps(command)
    def run(*, context: str | None, namespace: str, **options: Any) -> Any:
        return command(where=GivenPlace(context, namespace), **options)

    run = click.option("--context", default=None, help="Kubeconfig context; default: the current one.")(run)
    return namespace_option("", "Namespace; default: the context's.")(run)


def _set_option(flag: str, name: str, metavar: str, meaning: str) -> Callable[[Command], Command]:
    return click.option(flag, name, multiple=True, shell_complete=complete_key, metavar=metavar, help=meaning)


_LAYERS = (
    click.option(
        *("-f", "--values", "files"),
        multiple=True,
        type=ValuesFile(),
        help="Values file, or - for the standard input; later ones win.",
    ),
    _set_option("--set", "set_values", "KEY=VALUE", "One value, as in Helm."),
    _set_option("--set-string", "set_strings", "KEY=TEXT", "One value as text."),
    _set_option("--set-json", "set_json", "KEY=JSON", "One value as JSON."),
    _set_option("--set-file", "set_files", "KEY=FILE", "One value from a file."),
)
_OF_JOBS = (
    click.option(
        "--preset",
        "preset_names",
        multiple=True,
        metavar="NAME",
        shell_complete=complete_preset,
        help="Preset with its overlay for the target, below each -f; see `chartgen list presets`.",
    ),
    click.option(
        "--code",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Folder of your own program, which goes with the run; its main.py or train.py starts, or --program-file.",
    ),
    click.option(
        "--program-file",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Program of your own that torchrun starts on every machine; it goes with the run.",
    ),
)
LAYERS = ("files", "set_values", "set_strings", "set_json", "set_files")


def with_options(command: Command, *options: Callable[[Command], Command]) -> Command:
    """Add options to a command in the order in which its help shows them."""
    for option in reversed(options):
        command = option(command)
    return command


def layer_options(command: Command) -> Command:
    """Add `-f` and the `--set` options, with Helm's meaning."""
    return with_options(command, *_LAYERS)


def job_options(command: Command) -> Command:
    """Add `--path` and the options of values; they reach the command as `job`, with its target and `--workload`."""

    @wraps(command)
    def run(*, path: tuple[Path, ...], target: str | None = None, workload: str | None = None, **options: Any) -> Any:
        given = {name: options.pop(name) for name in ("preset_names", "code", "program_file", *LAYERS)}
        return command(job=GivenJob(target or "", path, workload, given), **options)

    return with_options(run, *_OF_JOBS, *_LAYERS, path_option)


def team_option(command: Command) -> Command:
    """Add `--team` to a command with simulated machines: the setup chart in the namespaces of teams."""
    words = "Install the setup chart in a team's namespace too, with FILE above the other values; repeatable."
    option = click.option("--team", "teams", multiple=True, metavar="NAMESPACE=FILE", callback=_teams, help=words)
    return option(command)


def _teams(_context: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, Values]:
    from chartgen.helm.values import load_values

    parted = [each.partition("=") for each in given]
    if wrong := next((each for each, (name, _, file) in zip(given, parted, strict=True) if not (name and file)), None):
        raise click.BadParameter(f"{wrong!r} is not NAMESPACE=FILE")
    return {name: load_values([Path(file)]) for name, _, file in parted}


def _may_build(_context: click.Context, _option: click.Parameter, refused: bool) -> Callable[[list[str]], bool]:
    """Return the function that decides on builds: it asks once, on a terminal only."""
    answers = [False] if refused else []

    def may_build(names: list[str]) -> bool:
        """Ask once for all engines, on a terminal alone."""
        question = f"{', '.join(names)}: not here. Build what is missing? It takes minutes, once"
        if not answers:
            asks = sys.stdin.isatty() and sys.stderr.isatty()
            answers.append(not asks or click.confirm(question, default=True, err=True))
        return answers[0]

    return may_build


_NO_BUILD = "Exit 3 instead of building programs that cannot be downloaded."
build_option = click.option("--no-build", "may_build", is_flag=True, callback=_may_build, help=_NO_BUILD)
