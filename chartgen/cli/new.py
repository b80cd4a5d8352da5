"""`chartgen new`: write the skeleton of a target, a fragment, a launcher or a workload kind."""

from __future__ import annotations

from pathlib import Path

import click

from chartgen.cli.job import library


@click.command()
@click.argument("kind", type=click.Choice(["target", "fragment", "launcher", "workload"]))
@click.argument("name")
@click.option(
    "--path",
    type=click.Path(path_type=Path, file_okay=False),
    default="library",
    show_default=True,
    help="Folder of your own definitions; created if it does not exist.",
)
def new(kind: str, name: str, path: Path) -> None:
    """Write a commented skeleton of a target, fragment, launcher or workload kind; it builds and lints unchanged.

    An existing definition is never overwritten. List a new fragment or launcher in the file of your target.

    \b
    Examples:
      chartgen new target aks-h100
      chartgen new fragment aks-rdma --path ours
    """
    from chartgen.composer.library import KINDS
    from chartgen.composer.skeletons import write_skeleton

    known = library((path,) if any((path / kind).is_dir() for kind in KINDS.values()) else ())
    for file in write_skeleton(kind, name, path, known):
        click.echo(str(file))
    step = f"chartgen build {name} --path {path}"
    steps = {"target": step, "workload": f"chartgen build TARGET --workload {name} --path {path}"}
    click.echo(f"next: {steps.get(kind, f'list {name} in the {kind}s of a target')}", err=True)
