"""`chartgen exec`: run the program of a rendered pod on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from chartgen.cli.job import FolderCommand, GivenJob
from chartgen.cli.options import job_options, new_release_argument, output_option, target_argument, workload_option
from chartgen.cli.output import emit, note, show_answer
from chartgen.errors import UsageError

if TYPE_CHECKING:
    from chartgen.rehearsal.local_pod import Execution


@click.command("exec", cls=FolderCommand)
@target_argument
@new_release_argument
@job_options
@click.option("--rank", default=0, show_default=True, metavar="N", help="Number of the pod.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the mounts, such as DIR/outputs; programs in DIR/bin win. Default: a new temporary one, kept.",
)
@click.option("--env", "overrides", multiple=True, metavar="NAME=VALUE", help="A variable that overrides the pod's.")
@click.option("--dry-run", is_flag=True, help="Only show what would run.")
@workload_option
@output_option
def exec_pod(
    job: GivenJob,
    release: str,
    *,
    rank: int,
    root: Path | None,
    overrides: tuple[str, ...],
    dry_run: bool,
    output: str,
) -> None:
    """Run the program of a pod on this machine like the kubelet: with its variables, files, mounts and signals.

    The machine replaces the image, so it must have the dependencies of the program. SIGTERM is passed to the program,
    which then has the pod's grace period to end; this command exits with its exit code. Init containers, sidecars and
    limits are left out. Several pods of a run can share a machine: MASTER_ADDR is this machine unless --env sets it.

    \b
    Examples:
      chartgen exec gke-a3mega --set nodes=1 --dry-run
      chartgen exec charts/onprem-p8000 -f site.yaml --root /tmp/run --env GPUS_PER_NODE=1
    """
    import tempfile

    from chartgen.helm.manifests import objects, render
    from chartgen.rehearsal.local_pod import plan_execution, prepare_pod, run

    chart, values = job.checked()
    found = objects(render(chart, release, "default", values.data))
    if root is None:
        temporary = tempfile.gettempdir() if dry_run else tempfile.mkdtemp(prefix="chartgen-run-")
        root = Path(temporary)
    planned = plan_execution(found, root.absolute(), rank=rank, overrides=dict(map(_pair, overrides)))
    if dry_run:
        if output == "json":
            show_answer("execution/v1", planned, secrets=True)
        else:
            emit(_text(planned), nl=False)
        return
    prepare_pod(planned)
    note(f"mounts below {planned.root}")
    sys.exit(run(planned, os.environ))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError(f"--env {text}: give it as NAME=VALUE")
    return name, value


def _text(planned: Execution) -> str:
    import shlex

    lines = [f"mkdir -p {shlex.quote(str(folder))}" for folder in planned.folders]
    lines += [f"# {path}: {len(text.splitlines())} lines of the chart" for path, text in planned.files.items()]
    lines += [f"# {path} comes from {source}: put its files there" for path, source in planned.lacking.items()]
    lines += [f"# {name} comes from {source}: set it in the environment" for name, source in planned.outside.items()]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in planned.environment.items()]
    return "\n".join([*lines, shlex.join(planned.argv)]) + "\n"
