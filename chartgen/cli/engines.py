"""`chartgen engines`: get and list the programs of a rehearsal."""

from __future__ import annotations

from typing import Any

import click

from chartgen.cli.options import build_option, output_option
from chartgen.cli.output import note, show_answer


@click.group()
def engines() -> None:
    """Get or list the programs of a rehearsal: Helm, etcd, Kubernetes, kwok and the controllers.

    They come into your cache once, at pinned versions; Helm and kubectl on PATH are used instead.
    """


@engines.command("get")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@build_option
def engines_get(names: tuple[str, ...], **options: Any) -> None:
    """Download the named engines, or all that users need, and build those that cannot be downloaded.

    `CHARTGEN_ENGINES_MIRROR` is the URL of a server that has each file below HOST/PATH, or `off` to download nothing.

    \b
    Example:
      chartgen engines get helm kubectl
    """
    from chartgen.rehearsal import engines as table
    from chartgen.rehearsal.engine_download import get

    for name, path in get(names or table.of_users(), progress=note, **options).items():
        click.echo(f"{name}: {path}")


@engines.command("list")
@output_option
def engines_list(output: str) -> None:
    """List the engines with pinned version and location.

    \b
    Example:
      chartgen engines list --output json
    """
    from chartgen.rehearsal import engines as table

    rows = table.engine_places()
    if output == "json":
        show_answer("engines/v1", {"engines": rows})
        return
    width = max(len(row.name) for row in rows)
    for row in rows:
        click.echo(f"{row.name:{width}}  {row.version:8}  {row.source or 'missing':8} {row.path or ''}".rstrip())
