"""`chartgen upgrade`: change the values or the chart of a release."""

from __future__ import annotations

from typing import Any

import click

from chartgen.cli.install import chart_options, roll_out
from chartgen.cli.job import FolderCommand
from chartgen.cli.rollout import confirm_changes, yes_option


class UpgradeCommand(FolderCommand):
    """A command on a target and a release, or on a release alone."""

    takes_release_alone = True


@click.command(cls=UpgradeCommand)
@chart_options
@click.option("-i", "--install", "or_install", is_flag=True, help="Install the release if it does not exist.")
@yes_option
def upgrade(*, yes: bool, **options: Any) -> None:
    """Upgrade a release to these values; of earlier revisions only the files of --program-file and --code are kept.

    Shows the changes and asks for confirmation. Unchanged values change nothing; changed values replace the run: the
    old run stops with all its pods, then the new one resumes from the release's checkpoints. Without checkpoints, all
    steps so far are lost: this is shown, and must be confirmed with the release's name or with --lose-progress.
    With RELEASE alone, its target and all of its values stay, under the given ones.

    \b
    Examples:
      chartgen upgrade gke-a3mega my-run --preset gpt3-175b -f site.yaml
      chartgen upgrade my-run --set steps=2000
    """
    roll_out("upgrade", options, lambda rollout: confirm_changes(rollout, yes=yes, lose=options["lose_progress"]))
