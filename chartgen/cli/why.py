"""`chartgen why`: the first cause of a run's end."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from chartgen.cli.completion import complete_release_or_file
from chartgen.cli.options import GivenPlace, output_option, place_options
from chartgen.cli.output import show_answer
from chartgen.errors import MissingToolError, Problem
from chartgen.visible import one_line


@click.command()
@click.argument("places", nargs=-1, required=True, metavar="RELEASE|PATH...", shell_complete=complete_release_or_file)
@place_options
@output_option
def why(places: tuple[str, ...], where: GivenPlace, output: str) -> None:
    """Show why a run ended or hangs: the first cause, its rank and machine, the lines that show it, what to do.

    PATH is a log (gzip too), a dump of PyTorch's Flight Recorder, or a folder of both, from any cluster; the kernel's
    logs and events may be among them. RELEASE is a release of the cluster. Exit 1 when the cause is unknown.

    \b
    Examples:
      chartgen why my-run
      chartgen why logs/ nccl_trace_rank_*
    """
    from chartgen.masking import masked
    from chartgen.releases.why.explanation import describe_explanation, explain_files

    paths = [Path(place) for place in places]
    if len(paths) == 1 and not paths[0].exists() and "/" not in places[0] and "." not in places[0]:
        from chartgen.releases.helm_release import check_name
        from chartgen.releases.status.explained import explain_release

        check_name(places[0])
        try:
            with where.open() as (cluster, place):
                found = explain_release(cluster, places[0], place.namespace)
        except MissingToolError as error:
            raise MissingToolError([Problem("no such file or folder", paths[0]), *error.problems]) from None
    else:
        found = explain_files(paths)
    if output == "json":
        show_answer("explanation/v1", found)
    else:
        for line in describe_explanation(found):
            click.echo(one_line(masked(line)))
    if found.cause == "unknown":
        sys.exit(1)
