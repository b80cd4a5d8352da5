"""`chartgen convert`: convert values of hand-written charts into those of chartgen."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from chartgen.cli.completion import complete_target
from chartgen.cli.options import library, path_option, say
from chartgen.visible import one_line

_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("values", type=_PATH)
@click.option("--from", "source", type=click.Choice(["gpu-recipes"]), required=True, help="Kind of the values file.")
@click.option("--config", type=_PATH, help="The recipe's NeMo configuration, which describes the model.")
@click.option("--launcher", type=_PATH, help="The script that starts its program; default: launcher.sh beside VALUES.")
@click.option("--set", "set_values", multiple=True, metavar="KEY=VALUE", help="A value that the README passes to Helm.")
@click.option(
    "--target",
    default="",
    shell_complete=complete_target,
    help="Target of the overlay; default: the target with the recipe's machines.",
)
@click.option("--machine", default="", help="Machine type, for recipes that do not name theirs.")
@click.option("--name", help="Name of the workload; default: the model's, or the folder's.")
@click.option("-d", "--destination", type=_PATH, default="values", show_default=True, help="Folder of the presets.")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@path_option
def convert(
    values: Path, source: str, name: str | None, destination: Path, force: bool, path: tuple[Path, ...], **given: Any
) -> None:
    """Convert an older values file to a preset and an overlay, and list the settings that cannot be converted.

    VALUES is the values.yaml of a training recipe of AI-Hypercomputer/gpu-recipes. The names of the team's cluster
    (queue, buckets) go into a separate file. A recipe is not converted when chartgen cannot determine its program,
    model, image or machine: exit 1, with each missing item and the option or file that supplies it. The result is
    checked; exit 1 when it cannot run unchanged.

    \b
    Example:
      chartgen convert --from gpu-recipes recipe/values.yaml --config nemo-configs/gpt3-175b-256gpus-fp8.yaml \\
        --set workload.image=nvcr.io/nvidia/nemo:24.07 --set "volumes.gcsMounts[0].bucketName=my-logs"
    """
    from chartgen.checks import check
    from chartgen.composer.assembly import compose_interface
    from chartgen.helm.values import load_values
    from chartgen.helm.yaml import values_text
    from chartgen.linter.recipes.convert import convert_recipe

    made = convert_recipe(
        load_values([values], set_values=given["set_values"]),
        given["config"],
        script=given["launcher"],
        target=given["target"],
        machine=given["machine"],
        library=library(path),
    )
    name = name or str(made.preset.get("model", {}).get("name", values.resolve().parent.name))
    texts = [values_text(data) if data else "" for data in (made.preset, made.overlay, made.site)]
    written = _write(destination, made.target.name, name, texts, f"{source}: {values.name}", force=force)
    for problem in made.left:
        _tell("warning", str(problem))
    findings = check(compose_interface(made.target), load_values(written, set_values=made.stand_ins))
    for found in findings:
        _tell(found.severity, str(found))
    say(f"{len(made.left)} things were not carried over")
    if any(found.severity == "error" for found in findings):
        sys.exit(1)


def _write(folder: Path, target: str, name: str, texts: list[str], source: str, *, force: bool) -> list[Path]:
    """Write the non-empty ones of preset, overlay and site, all or nothing; return the files."""
    from chartgen.errors import ChartgenError, Problem
    from chartgen.files import write_whole
    from chartgen.linter.recipes.convert import paths

    parts = [(path, text) for path, text in zip(paths(folder, target, name), texts, strict=True) if text]
    if there := [path for path, _ in parts if os.path.lexists(path) and not force]:
        raise ChartgenError(Problem("already exists", path, hint="use --force, or another --name") for path in there)
    for path, text in parts:
        write_whole(path, f"# Converted from {one_line(source)}\n{text}", parents=True)
        click.echo(str(path))
    return [path for path, _ in parts]


def _tell(severity: str, text: str) -> None:
    click.echo(f"{click.style(severity, fg='red' if severity == 'error' else 'yellow')}: {one_line(text)}", err=True)
