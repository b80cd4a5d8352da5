"""`chartgen list`: list the building blocks of charts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chartgen.cli.job import library
from chartgen.cli.options import output_option, path_option
from chartgen.cli.output import note, show_answer, show_table

if TYPE_CHECKING:
    from chartgen.composer.library import Library, ListRow

_BLOCKS = ("targets", "machines", "fragments", "launchers", "workloads", "policies", "presets")
_WORDS = ("slots", "helpers", "facts")


@click.command("list")
@click.argument("kind", type=click.Choice([*_BLOCKS, *_WORDS]))
@click.option("--gpu", default="", help="Targets or machines with this GPU, machine type or cloud: h100, gke.")
@output_option
@path_option
def list_command(kind: str, gpu: str, output: str, path: tuple[Path, ...]) -> None:
    """List the building blocks of charts, the presets, or the vocabulary of your own ones.

    Slots are the files of a fragment, helpers the templates that it can include, facts what its rules can name.

    \b
    Examples:
      chartgen list targets --gpu h100
      chartgen list presets
      chartgen list slots
    """
    if gpu and kind not in ("targets", "machines"):
        raise click.UsageError("--gpu is for `chartgen list targets` and `chartgen list machines`")
    found = library(path)
    if gpu or kind == "machines":
        rows = _machines(found, kind, gpu)
    else:
        rows = _blocks(found, kind) if kind in _BLOCKS else _words(found, kind)
    if output == "json":
        show_answer("list/v1", {"kind": kind, "items": rows})
        return
    if not rows:
        note(f"found no {kind}; --path and CHARTGEN_PATH name folders with your own")
    show_table([(row.name, _line(row)) for row in rows])


def _machines(found: Library, kind: str, gpu: str) -> list[ListRow]:
    from chartgen.composer.library import ListRow
    from chartgen.errors import Problem, UsageError, did_you_mean

    every = [*found.machine_types()]
    known = [each for each in every if not gpu or each.answers_to(gpu)]
    if gpu and not known:
        hint = did_you_mean(gpu, {each.gpu for each in every}) or "`chartgen list machines` has all"
        raise UsageError(Problem(f"no target has the GPU {gpu!r}", hint=hint))
    if kind == "targets":
        return [row for row in _blocks(found, kind) if row.name in {each.target for each in known}]
    return [ListRow(each.name, f"{each.count} x {each.gpu}, target {each.target}") for each in known]


def _blocks(found: Library, kind: str) -> list[ListRow]:
    from chartgen.composer.library import KINDS, ListRow
    from chartgen.composer.presets import preset_summary, presets

    if kind == "presets":
        return [ListRow(name, preset_summary(file)) for name, file in presets(found).items()]
    singular = next(name for name, folder in KINDS.items() if folder == kind)
    paths = {name: found.find(singular, name) for name in found.names(singular)}
    files = {name: path if path.is_file() else path / f"{singular}.yaml" for name, path in paths.items()}
    return [ListRow(name, _description(file)) for name, file in files.items()]


def _description(file: Path) -> str:
    """Return the description in a definition's file; the rest of the file is not read as YAML."""
    from chartgen.helm.yaml import load, read_text, require_map

    head = re.search(r"^description:.*\n?(?:[ #\n].*\n?)*", read_text(file), re.MULTILINE)
    document = load(head[0] if head else "", file)
    return str(require_map(document, "a definition").get("description", ""))


def _words(found: Library, kind: str) -> list[ListRow]:
    from chartgen.composer.vocabulary import VOCABULARY

    return [*VOCABULARY[kind](found)]


def _line(row: ListRow) -> str:
    """Return a row's text: type, description, and the fragment that a helper needs."""
    text = f"{row.type}: {row.description}" if row.type else row.description
    return f"{text} (fragment {row.fragment})" if row.fragment else text
