"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from chartgen.errors import ChartgenError
from chartgen.visible import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from chartgen.composer.library import Library
    from chartgen.findings import Finding
    from chartgen.helm.chart import Chart
    from chartgen.helm.values import Values
    from chartgen.kube import Cluster
    from chartgen.releases.helm_release import Place
    from chartgen.releases.plan import Plan

F = TypeVar("F", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)


def complete_target(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a target; nothing when the folders of the command line are wrong, which the command says."""
    from chartgen.composer.library import open_library

    try:
        names = open_library(ctx.params.get("path") or ()).names("target")
    except ChartgenError:
        return []
    return [name for name in names if name.startswith(incomplete)]


target_argument = click.argument("target", shell_complete=complete_target)
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
workload_option = click.option("--workload", help="Another workload kind than the target's, such as job or jobset.")


def values_options(command: F) -> F:
    """Add `-f` and the `--set` family, with Helm's meaning."""
    options = [
        click.option("-f", "--values", "files", multiple=True, type=_PATH, help="Values file; later ones win."),
        click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE", help="One value, as in Helm."),
        click.option("--set-string", "set_strings", multiple=True, metavar="KEY=TEXT", help="One value as text."),
        click.option("--set-json", multiple=True, metavar="KEY=JSON", help="One value as JSON."),
        click.option("--set-file", "set_files", multiple=True, metavar="KEY=FILE", help="One value from a file."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def read_values(options: dict[str, Any]) -> Values:
    """Take the values options out of a command's options and layer them."""
    from chartgen.helm.values import load_values

    names = ("files", "set_values", "set_strings", "set_json", "set_files")
    return load_values(**{name: options.pop(name) for name in names})


def library(path: tuple[Path, ...]) -> Library:
    """Open the library with the folders of `--path`."""
    from chartgen.composer.library import open_library

    return open_library(path)


def find_chart(name: str, path: tuple[Path, ...], workload: str | None = None, *, values_only: bool = False) -> Chart:
    """Return the chart of a folder, or compose that of a target, or only what its values can be."""
    from chartgen.composer.assembly import compose, compose_interface
    from chartgen.composer.origin import identified
    from chartgen.composer.target import load_target
    from chartgen.helm.chart import Chart

    if (Path(name) / "Chart.yaml").is_file():
        return identified(Chart.read(Path(name)), library(path))
    make = compose_interface if values_only else compose
    return make(load_target(name, library(path)), workload)


@contextmanager
def open_place(context: str | None, namespace: str) -> Iterator[tuple[Cluster, Place]]:
    """Connect to the cluster of --context, and give its place for Helm; the namespace is the context's by default."""
    from chartgen.kube import connect
    from chartgen.releases.helm_release import Place

    with connect(context=context) as cluster:
        yield cluster, Place(namespace or cluster.namespace, context=context)


def say(line: str) -> None:
    """Print a line of progress, apart from the result."""
    click.echo(f"{click.style('>', fg='cyan')} {one_line(line)}", err=True)


def show_warnings(found: Iterable[Finding]) -> None:
    """Print the warnings among findings, and what could not be checked, apart from the result."""
    for each in found:
        if each.severity != "error":
            click.echo(f"{click.style(each.severity, fg='yellow')}: {one_line(str(each))}", err=True)


def show_plan(plan: Plan) -> None:
    """Print a plan, apart from the command's result."""
    from chartgen.releases.plan import describe

    click.echo("Plan", err=True)
    for label, text in describe(plan):
        click.echo(f"  {label:<11} {text}", err=True)


def show_table(rows: list[tuple[str, str]]) -> None:
    """Print rows of name and text, wrapped to the terminal but not at the hyphens of names, which people copy."""
    import shutil
    import textwrap

    width = min(shutil.get_terminal_size().columns, 80)
    first = min(max((len(name) for name, _ in rows), default=0), 30) + 2
    for name, text in rows:
        lines = textwrap.wrap(text, max(width - first, 20), break_on_hyphens=False, break_long_words=False)
        start = f"{name:<{first}}" if len(name) < first else f"{name}\n{'':{first}}"
        click.echo((start + f"\n{'':{first}}".join(lines)).rstrip())
