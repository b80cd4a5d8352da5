"""`chartgen init`: write a site file to fill in."""

from __future__ import annotations

from pathlib import Path

import click

from chartgen.cli.options import (
    context_option,
    library,
    namespace_option,
    open_place,
    path_option,
    say,
    target_argument,
)


@click.command()
@target_argument
@click.option("--to", default="site.yaml", show_default=True, type=click.Path(path_type=Path), help="File to write.")
@click.option("--from-cluster", is_flag=True, help="Name the queue, machines and claim that the cluster has.")
@namespace_option
@context_option
@path_option
def init(
    target: str, *, to: Path, from_cluster: bool, namespace: str, context: str | None, path: tuple[Path, ...]
) -> None:
    """Write a site file for a target: the names in your cluster, such as queue, buckets and secrets, to fill in.

    An existing file is never overwritten. --from-cluster only reads from the cluster; where it has several queues or
    claims, they are listed in a comment.

    \b
    Examples:
      chartgen init gke-a3mega
      chartgen init eks-p5 --from-cluster --namespace ml
    """
    from chartgen.composer.presets import site_example
    from chartgen.composer.target import load_target
    from chartgen.errors import ChartgenError, Problem, UsageError
    from chartgen.files import write_whole

    if (namespace or context) and not from_cluster:
        raise UsageError(Problem("--namespace and --context name a cluster to read", hint="add --from-cluster"))
    opened = library(path)
    loaded = load_target(target, opened)
    name = loaded.name
    example = site_example(name, opened)
    if example is None:
        hint = f"add values/site.{name}.example.yaml to your folder"
        raise ChartgenError(Problem(f"target {name!r} has no example of a site file", hint=hint))
    if to.exists():
        raise UsageError(Problem("already exists", to, hint="choose another file with --to"))
    # the examples lie one folder below what `chartgen build` writes
    text = example.read_text(encoding="utf-8").replace("$schema=../charts/", "$schema=charts/")
    if from_cluster:
        from chartgen.releases.site_survey import site_file, survey

        with open_place(context, namespace) as (cluster, place):
            text = site_file(text, survey(cluster, loaded, place.namespace), loaded)
    write_whole(to, text)
    say(f"wrote {to}: enter the names of your cluster, then run `chartgen check {name} --preset NAME -f {to}`")
