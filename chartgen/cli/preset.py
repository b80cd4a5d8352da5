"""`chartgen preset`: write the model block of a preset."""

from __future__ import annotations

import click

from chartgen.cli.output import remark


@click.command()
@click.option(
    "--from-hf",
    "config",
    required=True,
    metavar="CONFIG.JSON|FOLDER|REPOSITORY",
    help="A model of the Hugging Face hub: its config.json or folder, or its name in your cache, as Qwen/Qwen3-8B.",
)
@click.option("--name", default="", help="Name of the model; default: the folder of the file.")
def preset(config: str, name: str) -> None:
    """Print the `model` block that a Hugging Face config.json describes, and list what has no portable key.

    Nothing is downloaded. Each setting without a portable key is printed to stderr, if possible with the option of
    Megatron-Bridge that states it. Exit 1 when the file lacks a size that every model has, and for
    models that do not predict the next token.

    \b
    Example:
      chartgen preset --from-hf Llama-3.1-405B/config.json
    """
    from chartgen.composer.hugging_face import config_of, describe_model
    from chartgen.helm.yaml import values_text

    file, known = config_of(config)
    found = describe_model(file, name or known)
    click.echo(values_text({"model": found.model}), nl=False)
    for problem in found.left:
        remark("warning", problem)
