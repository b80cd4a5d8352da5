"""`chartgen show`: show a target, a fragment, a launcher, a workload kind or a preset."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from chartgen.cli.completion import complete_definition, complete_target
from chartgen.cli.job import library
from chartgen.cli.options import output_option, path_option
from chartgen.cli.output import emit, show_answer, show_table

if TYPE_CHECKING:
    from chartgen.composer.library import Library

_KINDS = ("target", "fragment", "launcher", "workload", "preset")  # click needs them before a command runs


@click.command()
@click.argument("name", shell_complete=complete_definition)
@click.option("--kind", type=click.Choice(_KINDS), help="For a name that several kinds have.")
@click.option("--target", default="", shell_complete=complete_target, help="Of a preset, with the target's overlay.")
@click.option("--files", is_flag=True, help="Print the files that it consists of, to copy from.")
@output_option
@path_option
def show(name: str, kind: str | None, target: str, files: bool, output: str, path: tuple[Path, ...]) -> None:
    """Show a target, fragment, launcher or workload kind, or print the values of a preset.

    Of a target: which fragment fills which slot of its pods. Of a fragment or launcher: its keys, files, rules and
    values with their defaults. Of a workload kind: its object, pods and end. Of a preset: its file, or with --target
    its values on that target.

    \b
    Examples:
      chartgen show gke-a3mega
      chartgen show infiniband --files
      chartgen show llama3-70b --target gke-a3mega
    """
    found = library(path)
    chosen = kind or _kind_of(name, found)
    if files and chosen != "preset":
        _show_files(found.find(chosen, name))
    elif chosen == "preset":
        _show_preset(name, target, output, found)
    elif chosen == "target":
        _show_target(name, output, found)
    else:
        _show_part(name, chosen, output, found)


def _show_files(path: Path) -> None:
    from chartgen.helm.yaml import read_text

    for file in sorted(path.rglob("*.*")) if path.is_dir() else [path]:
        if file.is_file() and file.suffix != ".pyc":
            emit(f"# {file.relative_to(path.parent)}\n{read_text(file)}")


def _kind_of(name: str, found: Library) -> str:
    from chartgen.composer.describe import every_name, kinds_of
    from chartgen.errors import Problem, UsageError, did_you_mean

    kinds = kinds_of(name, found)
    if not kinds:
        hint = did_you_mean(name, every_name(found)) or "`chartgen list` shows the names"
        raise UsageError(Problem(f"no definition has the name {name!r}", hint=hint))
    if len(kinds) > 1:
        hint = f"add --kind {' or --kind '.join(kinds)}"
        raise UsageError(Problem(f"{name!r} is the name of a {' and of a '.join(kinds)}", hint=hint))
    return kinds[0]


def _show_preset(name: str, target: str, output: str, found: Library) -> None:
    from chartgen.composer.describe import describe_preset
    from chartgen.composer.presets import presets
    from chartgen.helm.yaml import read_text, values_text

    facts = describe_preset(name, found, target)
    if output == "json":
        show_answer("preset/v1", facts)
    else:
        emit(values_text(facts.values) if target else read_text(presets(found)[name]), nl=False)


def _show_part(name: str, kind: str, output: str, found: Library) -> None:
    """Show a fragment, a launcher or a workload kind."""
    from chartgen.composer import describe

    facts = getattr(describe, f"describe_{kind}")(name, found)
    if output == "json":
        show_answer(f"{kind}/v1", facts)
        return
    click.echo(f"{name}: {facts.description}\n")
    fields = {key: each for key, each in vars(facts).items() if key not in ("name", "description", "values") and each}
    rows = {key.replace("_", " "): each if isinstance(each, str) else ", ".join(each) for key, each in fields.items()}
    show_table([*rows.items()])
    if values := getattr(facts, "values", None):
        click.echo()
        show_table([(value.key, f"{value.default}  {value.meaning}".rstrip()) for value in values])


def _show_target(target: str, output: str, library: Library) -> None:
    from chartgen.composer.extension import own_parts
    from chartgen.composer.slots import SLOTS
    from chartgen.composer.target import load_target

    found = load_target(target, library)
    own = own_parts(found.document) if found.parents else {}
    slots: dict[str, list[str]] = {}
    for fragment in found.fragments:
        names = [SLOTS[slot].label or slot for slot in fragment.slots]
        names += [*(f"manifests/{name}" for name in fragment.manifests), *(f"setup/{name}" for name in fragment.setup)]
        for name in names:
            slots.setdefault(name, []).append(fragment.name)
    if output == "json":
        facts = {
            "name": target,
            "description": found.description,
            "workload": found.workload,
            "extends": [*found.parents],
            "own": own,
            "machines": [{"name": one.name, "gpus": one.gpus, "gpu": one.gpu} for one in found.machines.values()],
            "launchers": [launcher.name for launcher in found.launchers],
            "slots": slots,
        }
        show_answer("target/v1", facts)
        return
    click.echo(f"{target}: {found.description}\n")
    machines = [("machine", f"{machine.name}: {machine.gpus} x {machine.gpu}") for machine in found.machines.values()]
    launchers = ", ".join(launcher.name for launcher in found.launchers)
    policies = [("policy", f"{policy.name}: {policy.data['description']}") for policy in found.policies]
    show_table([*machines, ("workload", found.workload), ("launchers", launchers), *policies])
    if found.parents:
        click.echo()
        show_table([("extends", ", ".join(found.parents)), *((key, ", ".join(names)) for key, names in own.items())])
    click.echo()
    show_table([(slot, ", ".join(fragments)) for slot, fragments in sorted(slots.items())])
