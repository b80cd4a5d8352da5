"""`chartgen upgrade`: change the values or the chart of a release."""

from __future__ import annotations

from typing import Any

import click

from chartgen.cli.install import chart_options, roll_out
from chartgen.cli.job import FolderCommand
from chartgen.cli.rollout import confirm_changes, yes_option


@click.command(cls=FolderCommand)
@chart_options
@click.option("-i", "--install", "or_install", is_flag=True, help="Install the release if it does not exist.")
@yes_option
def upgrade(*, yes: bool, **options: Any) -> None:
    """Upgrade a release to these values; of earlier revisions only the files of --program-file and --code are kept.

    Shows the changes and asks for confirmation. Unchanged values change nothing; changed values replace the run: the
    old run stops with all its pods, then the new one resumes from the release's checkpoints. Without checkpoints, all
    steps so far are lost: this is shown, and must be confirmed with the release's name or with --lose-progress.

    \b
    Example:
      chartgen upgrade gke-a3mega my-run --preset gpt3-175b -f site.yaml
    """
    roll_out("upgrade", options, lambda rollout: confirm_changes(rollout, yes=yes, lose=options["lose_progress"]))
