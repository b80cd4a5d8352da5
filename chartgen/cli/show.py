"""`chartgen show`: show the fragments in the slots of a target's pods."""

from __future__ import annotations

from pathlib import Path

import click

from chartgen.cli.options import library, output_option, path_option, show_table, target_argument
from chartgen.cli.output import show_answer


@click.command()
@target_argument
@output_option
@path_option
def show(target: str, output: str, path: tuple[Path, ...]) -> None:
    """Show which fragment fills which slot of a target's pods.

    \b
    Example:
      chartgen show gke-a3mega
    """
    from chartgen.composer.target import load_target

    found = load_target(target, library(path))
    slots: dict[str, list[str]] = {}
    for fragment in found.fragments:
        templates = [
            *(f"manifests/{name}" for name in fragment.manifests),
            *(f"setup/{name}" for name in fragment.setup),
        ]
        for slot in (*fragment.slots, *templates):
            slots.setdefault(slot, []).append(fragment.name)
    if output == "json":
        facts = {
            "name": target,
            "description": found.description,
            "workload": found.workload,
            "machines": [{"name": one.name, "gpus": one.gpus, "gpu": one.gpu} for one in found.machines.values()],
            "launchers": [launcher.name for launcher in found.launchers],
            "slots": slots,
        }
        show_answer("target/v1", facts)
        return
    click.echo(f"{target}: {found.description}\n")
    machines = [("machine", f"{machine.name}: {machine.gpus} x {machine.gpu}") for machine in found.machines.values()]
    launchers = ", ".join(launcher.name for launcher in found.launchers)
    show_table([*machines, ("workload", found.workload), ("launchers", launchers)])
    click.echo()
    show_table([(slot, ", ".join(fragments)) for slot, fragments in sorted(slots.items())])
