"""`chartgen list`: list the building blocks of charts, and releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from chartgen.cli.options import (
    context_option,
    library,
    namespace_option,
    open_place,
    output_option,
    path_option,
    price_option,
    show_table,
)
from chartgen.cli.output import show_answer
from chartgen.cli.status import show_all

if TYPE_CHECKING:
    from chartgen.composer.library import Library

_BLOCKS = ("targets", "fragments", "launchers", "workloads", "policies", "presets")
_WORDS = ("slots", "helpers", "facts")


@click.command("list")
@click.argument("kind", type=click.Choice([*_BLOCKS, *_WORDS, "releases"]))
@namespace_option
@click.option("-A", "--all-namespaces", is_flag=True, help="Releases of all namespaces.")
@context_option
@price_option
@output_option
@path_option
def list_command(
    kind: str,
    namespace: str,
    all_namespaces: bool,
    context: str | None,
    price: float | None,
    output: str,
    path: tuple[Path, ...],
) -> None:
    """List the building blocks of charts, the presets, the vocabulary of your own ones, or releases.

    Slots are the files of a fragment, helpers the templates that it can include, facts what its rules can name.
    Releases are those of a cluster, as `chartgen status` shows them.

    \b
    Examples:
      chartgen list targets
      chartgen list presets
      chartgen list slots
      chartgen list releases -A
    """
    if kind == "releases":
        with open_place(context, namespace) as (cluster, place):
            show_all(cluster, "" if all_namespaces else place.namespace, output, price)
        return
    if namespace or all_namespaces or context or price is not None:
        raise click.UsageError("a namespace, --context and --price are for `chartgen list releases`")
    found = library(path)
    rows = _blocks(found, kind) if kind in _BLOCKS else _words(found, kind)
    if output == "json":
        show_answer("list/v1", {"kind": kind, "items": rows})
        return
    show_table([(row.name, _line(row)) for row in rows])


class ListRow(NamedTuple):
    """One row of a list.

    Args:
        name: Its name.
        description: Its description.
        type: Shape of a slot, type of a fact.
        fragment: Of a helper, the fragment that defines it.
        example: Of a slot, a complete file.
    """

    name: str
    description: str
    type: str = ""
    fragment: str = ""
    example: str = ""


def _blocks(found: Library, kind: str) -> list[ListRow]:
    from chartgen.composer.library import KINDS
    from chartgen.composer.presets import preset_summary, presets
    from chartgen.helm.yaml import load_file, require_map

    if kind == "presets":
        return [ListRow(name, preset_summary(file)) for name, file in presets(found).items()]
    singular = next(name for name, folder in KINDS.items() if folder == kind)
    rows = []
    for name in found.names(singular):
        file = found.find(singular, name)
        document = load_file(file if file.is_file() else file / f"{singular}.yaml")
        rows.append(ListRow(name, str(require_map(document, kind).get("description", ""))))
    return rows


def _words(found: Library, kind: str) -> list[ListRow]:
    from chartgen.composer.vocabulary import VOCABULARY

    return [
        ListRow(word.name, word.meaning, word.kind, word.fragment, word.example) for word in VOCABULARY[kind](found)
    ]


def _line(row: ListRow) -> str:
    """Return a row's text: type, description, and the fragment that a helper needs."""
    text = f"{row.type}: {row.description}" if row.type else row.description
    return f"{text} (fragment {row.fragment})" if row.fragment else text
