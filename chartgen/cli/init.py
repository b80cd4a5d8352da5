"""`chartgen init`: write a site file to fill in."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.completion import complete_preset
from chartgen.cli.job import library
from chartgen.cli.options import GivenPlace, path_option, place_options, target_argument
from chartgen.cli.output import note

if TYPE_CHECKING:
    from chartgen.helm.chart import Chart


@click.command()
@target_argument
@click.option("--to", default="site.yaml", show_default=True, type=click.Path(path_type=Path), help="File to write.")
@click.option(
    "--preset",
    "preset_name",
    default="",
    metavar="NAME",
    shell_complete=complete_preset,
    help="Preset of the runs here.",
)
@click.option("--from-cluster", is_flag=True, help="Name the queue, machines and claim that the cluster has.")
@click.option("--ask/--no-ask", default=None, help="Ask for each name.  [default: on a terminal]")
@place_options
@path_option
def init(
    target: str,
    *,
    to: Path,
    preset_name: str,
    from_cluster: bool,
    ask: bool | None,
    where: GivenPlace,
    path: tuple[Path, ...],
) -> None:
    """Write a site file for a target: the names in your cluster, such as queue, buckets and secrets.

    A chartgen.yaml beside it names target, preset and site file for the commands in this folder. An existing one
    is kept.

    On a terminal it asks for each name: Enter keeps the one in brackets, a hyphen (-) leaves it out. Elsewhere, and
    with --no-ask, it writes the example to fill in. An existing file is never overwritten. --from-cluster only reads
    from the cluster; where it has several queues or claims, they are listed in a comment.

    \b
    Examples:
      chartgen init gke-a3mega --preset gpt3-175b
      chartgen init eks-p5 --from-cluster --namespace ml
      chartgen init gke-a3mega --no-ask
    """
    from chartgen.composer.presets import preset_layers, site_example
    from chartgen.composer.site_names import replace_names
    from chartgen.composer.target import load_target
    from chartgen.errors import ChartgenError, Problem, UsageError
    from chartgen.files import write_whole
    from chartgen.helm.yaml import read_text

    if (where.namespace or where.context) and not from_cluster:
        raise UsageError(Problem("--namespace and --context name a cluster to read", hint="add --from-cluster"))
    opened = library(path)
    loaded = load_target(target, opened)
    name = loaded.name
    example = site_example(name, opened)
    if example is None:
        hint = f"add values/site.{name}.example.yaml to your folder"
        raise ChartgenError(Problem(f"target {name!r} has no example of a site file", hint=hint))
    if preset_name:
        preset_layers(preset_name, name, opened)
    if os.path.lexists(to):  # a link to nothing too
        raise UsageError(Problem("already exists", to, hint="choose another file with --to"))
    # the examples lie one folder below what `chartgen build` writes
    text = read_text(example).replace("$schema=../charts/", "$schema=charts/")
    text = text.replace(f"$schema=charts/{example.name.split('.')[1]}/", f"$schema=charts/{name}/")
    if from_cluster:
        from chartgen.releases.site_survey import site_file, survey_site

        with where.open() as (cluster, place):
            text = site_file(text, survey_site(cluster, loaded, place.namespace), loaded)
    asks = sys.stdin.isatty() and sys.stderr.isatty() if ask is None else ask
    if asks:
        from chartgen.composer.assembly import compose_interface

        text = replace_names(text, partial(_ask, compose_interface(loaded)))
    write_whole(to, text)
    _show_next(name, preset_name, to, filled=asks)


def _show_next(target: str, preset: str, site: Path, *, filled: bool) -> None:
    """Name the runs of this folder, and print the command that follows."""
    from chartgen.composer.folder_settings import SETTINGS

    named = _name_runs(target, preset, site)
    first = "" if filled else "enter the names of your cluster, then "
    rest = "" if named and preset else f" {target} --preset {preset or 'NAME'}{'' if named else f' -f {site}'}"
    note(f"wrote {site}{f' and {SETTINGS}' if named else ''}: {first}run `chartgen check{rest}`")


def _name_runs(target: str, preset: str, site: Path) -> bool:
    """Write the settings of the working folder, unless it has some or the site file lies elsewhere."""
    from chartgen.composer.folder_settings import SETTINGS, is_here
    from chartgen.files import write_whole
    from chartgen.helm.yaml import values_text

    if os.path.lexists(SETTINGS) or not is_here(site):
        return False
    names = {"target": target, **({"preset": preset} if preset else {}), "values": [os.path.relpath(site)]}
    write_whole(Path(SETTINGS), f"# Of the commands in this folder; their arguments win.\n{values_text(names)}")
    return True


def _ask(chart: Chart, keys: tuple[str, ...], default: str | int) -> str | int | None:
    """Ask for the value of a key until the chart's schema permits the answer; keys beside it are not judged."""
    from chartgen.checks import effective_values
    from chartgen.helm.schema import SCHEMA_FILE, validate_schema
    from chartgen.helm.values import Values

    name, schema = ".".join(keys), json.loads(chart.files[SCHEMA_FILE])
    while True:
        answer = click.prompt(name, default=str(default), err=True).strip()
        if answer == "-":
            return None
        value = int(answer) if isinstance(default, int) and answer.isascii() and answer.isdecimal() else str(answer)
        nested: Any = value
        for key in reversed(keys):
            nested = {key: nested}
        data = effective_values(chart, Values(nested))
        found = validate_schema(data, schema, lambda at: (".".join(map(str, at)), 0, 0))
        refusals = [problem.message for problem in found if problem.path == name]
        if not refusals:
            return value
        click.echo(refusals[0], err=True)
