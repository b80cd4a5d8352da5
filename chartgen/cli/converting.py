"""`chartgen convert`: values of charts that people wrote by hand, as chartgen's."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from chartgen.cli.options import say

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("values", type=_PATH)
@click.option("--from", "source", type=click.Choice(["gpu-recipes"]), required=True, help="Whose values they are.")
@click.option("--config", type=_PATH, help="The recipe's NeMo configuration, which holds the model.")
@click.option("--target", default="gke-a3mega", show_default=True, help="Target of the overlay.")
@click.option("--name", help="Name of the workload; default: the model's, or the file's.")
@click.option("-d", "--destination", type=_PATH, default="values", show_default=True, help="Folder of the presets.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
def convert(
    values: Path, source: str, config: Path | None, target: str, name: str | None, destination: Path, force: bool
) -> None:
    """Write the preset and the overlay that an older values file stands for, and list what could not be carried over.

    VALUES is the values.yaml of a training recipe of AI-Hypercomputer/gpu-recipes. What the team's cluster is called
    (queue, buckets) goes into a file of its own. The result is checked; exit 1 when it cannot run as it is.

    \b
    Example:
      chartgen convert --from gpu-recipes recipe/values.yaml --config nemo-configs/gpt3-175b-256gpus-fp8.yaml
    """
    from chartgen.checks import check
    from chartgen.composer import compose_interface
    from chartgen.convert import convert_recipe, paths, yaml_text
    from chartgen.errors import ChartgenError, Problem
    from chartgen.files import write_whole
    from chartgen.target import load_target
    from chartgen.values import load_values
    from chartgen.yamltext import load_file

    chart = compose_interface(load_target(target))
    made = convert_recipe(load_file(values), load_file(config) if config else None)
    name = name or str(made.preset.get("model", {}).get("name", values.resolve().parent.name))
    parts = list(zip(paths(destination, target, name), (made.preset, made.overlay, made.site), strict=True))
    parts = [(path, data) for path, data in parts if data]
    if there := [path for path, _ in parts if path.exists() and not force]:
        raise ChartgenError(Problem("is there already", path, hint="use --force, or another --name") for path in there)
    for path, data in parts:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"# Converted from {source}: {values.name}\n{yaml_text(data)}")
        click.echo(str(path))
    for problem in made.left:
        _tell("warning", str(problem))
    findings = check(chart, load_values([path for path, _ in parts]))
    for found in findings:
        _tell(found.severity, str(found))
    say(f"{len(made.left)} things were not carried over")
    if any(found.severity == "error" for found in findings):
        sys.exit(1)


def _tell(severity: str, text: str) -> None:
    click.echo(f"{click.style(severity, fg='red' if severity == 'error' else 'yellow')}: {text}", err=True)


COMMANDS = (convert,)
