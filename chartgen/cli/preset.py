"""`chartgen preset`: write the model block of a preset."""

from __future__ import annotations

from pathlib import Path

import click

from chartgen.visible import one_line


@click.command()
@click.option(
    "--from-hf",
    "config",
    type=click.Path(path_type=Path),
    required=True,
    metavar="CONFIG.JSON",
    help="The config.json of a model of the Hugging Face hub, as a file.",
)
@click.option("--name", default="", help="Name of the model; default: the folder of the file.")
def preset(config: Path, name: str) -> None:
    """Print the `model` block that a Hugging Face config.json describes, and list what has no portable key.

    Nothing is downloaded. Each setting without a portable key is printed to stderr, if possible with the option of
    Megatron-Bridge that states it. Exit 1 when the file lacks a size that every model has.

    \b
    Example:
      chartgen preset --from-hf Llama-3.1-405B/config.json
    """
    from chartgen.composer.hugging_face import describe_model
    from chartgen.helm.yaml import values_text

    found = describe_model(config, name or config.resolve().parent.name)
    click.echo(values_text({"model": found.model}), nl=False)
    for problem in found.left:
        click.echo(f"{click.style('warning', fg='yellow')}: {one_line(str(problem))}", err=True)
