"""`chartgen why`: the first cause of a run's end."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from chartgen.cli.completion import complete_release_or_file
from chartgen.cli.options import GivenPlace, named_release, output_option, place_options
from chartgen.cli.output import show_answer
from chartgen.visible import one_line


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="RELEASE|PATH...", shell_complete=complete_release_or_file)
@place_options
@output_option
def why(places: tuple[str, ...], where: GivenPlace, output: str) -> None:
    """Show why a run ended or hangs: the first cause, its rank and machine, the lines that show it, what to do.

    PATH is a log (gzip too; of a large one the last 64 MB are read), a dump of PyTorch's Flight Recorder, or a folder
    of both, from any cluster; the kernel's logs and events may be among them. RELEASE is a release of the cluster.
    Exit 1 when the cause is unknown.

    \b
    Examples:
      chartgen why my-run
      chartgen why logs/ nccl_trace_rank_*
    """
    from chartgen.masking import masked
    from chartgen.releases.why.explanation import describe_explanation, explain_files

    if release := named_release(places):
        from chartgen.releases.status.explained import explain_release

        with where.open_for(release) as (cluster, place):
            found = explain_release(cluster, release, place.namespace)
    else:
        found = explain_files([*map(Path, places)])
    if output == "json":
        show_answer("explanation/v1", found)
    else:
        for line in describe_explanation(found):
            click.echo(one_line(masked(line)))
    if found.cause == "unknown":
        sys.exit(1)
