"""`chartgen install`: install a chart as a new release."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.job import FolderCommand, GivenJob, JudgedValues, judged_values
from chartgen.cli.options import (
    Command,
    GivenPlace,
    job_options,
    release_argument,
    target_argument,
    with_options,
    workload_option,
)
from chartgen.cli.output import note, show_plan
from chartgen.cli.rollout import carry_out, confirm_losses, follow_options, show_preview, untouched

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from chartgen.helm.chart import Chart
    from chartgen.helm.values import Values
    from chartgen.kube import Cluster
    from chartgen.releases.helm_release import Place
    from chartgen.releases.history import RevisionRecord
    from chartgen.releases.preflight import Diagnosis
    from chartgen.releases.rollout import Rollout
    from chartgen.releases.state import State


def chart_options(command: Command) -> Command:
    """Add the options that `install` and `upgrade` share."""
    force = click.option("--force", is_flag=True, help="Skip the preflight of the cluster (`chartgen doctor`).")
    dry_run = click.option(
        "--dry-run", is_flag=True, help="Check and try everything, show the changes, change nothing."
    )
    avoid = click.option(
        "--avoid-node", "avoided", multiple=True, metavar="NAME", help="A node that gets no pod; one more avoidNodes."
    )
    options = (target_argument, release_argument, job_options, avoid, workload_option, force, dry_run, follow_options)
    return with_options(command, *options)


@click.command(cls=FolderCommand)
@chart_options
def install(**options: Any) -> None:
    """Install a target's chart, or a chart folder, as a new release.

    Checks the values and the cluster, and tries every object on the API server; then Helm installs. Helm never waits
    for a training run; --wait-for does.

    \b
    Example:
      chartgen install gke-a3mega my-run --preset gpt3-175b -f site.yaml
    """
    roll_out("install", options, lambda rollout: confirm_losses(rollout, lose=options["lose_progress"]))


def roll_out(action: str, options: dict[str, Any], ask: Callable[[Rollout], None]) -> None:
    """Install or upgrade: check the values and the cluster, ask for confirmation, and execute."""
    from concurrent.futures import ThreadPoolExecutor

    from chartgen.errors import ChartgenError
    from chartgen.helm.manifests import render, written_chart
    from chartgen.releases.state import survey_release

    where: GivenPlace = options["where"]
    job = _named(options["job"], where, options["release"])
    chart = job.chart()
    given = _avoiding(chart, job.values, options["avoided"])
    rendering = judged = None
    with ExitStack() as stack:
        try:
            cluster, place = stack.enter_context(where.open())
        except ChartgenError:
            if action == "install":
                judged_values(chart, given)  # which needs no cluster to be wrong
            raise
        pool = stack.enter_context(ThreadPoolExecutor())
        shown = (options["release"], place.namespace)
        with untouched():
            surveying = pool.submit(survey_release, cluster, *shown)
            if action == "install":  # an upgrade keeps files of the release, which is still to be read
                # Helm renders while values are checked, which changes few of them; in a thread beside the checks each
                # file of the chart would wait for the interpreter
                stack.enter_context(written_chart(chart, shared=True))
                rendering = pool.submit(render, chart, *shown, given.data, cluster.version)
                judged = judged_values(chart, given)
            from chartgen.releases.rollout import check_existence  # while Helm renders

            state = surveying.result()
            if state.last or not options.get("or_install"):
                check_existence(state, action)
            if judged is None or state.last:  # sizes that chartgen chose stay
                chart, judged = _continued(job, chart, given, state.last, is_upgrade=action == "upgrade")
            if rendering is None or judged.values.data != given.data:
                rendering = pool.submit(render, chart, *shown, judged.values.data, cluster.version)
            judged.report()
            action = action if state.last else "install"
            values = judged.values
            rollout = _prepare(
                cluster, place, chart, values, state, action=action, rendering=rendering, pool=pool, options=options
            )
            if options["dry_run"]:
                show_preview(rollout, options["output"])
                return
            ask(rollout)
        carry_out(rollout, cluster, place, options)


def _named(job: GivenJob, where: GivenPlace, release: str) -> GivenJob:
    """Return a job with a target: if only its release is named, that of the release, with its values below."""
    if job.target:
        return job
    from chartgen.composer.origin import WORKLOAD
    from chartgen.errors import Problem, UsageError
    from chartgen.releases.history import read_last_record

    with where.open() as (cluster, place):
        last = read_last_record(cluster, release, place.namespace)
    if last is None or not last.target or last.setup:
        problem = f"is of chart {last.chart}, which has no runs of chartgen" if last else "does not exist"
        hint = "write TARGET RELEASE; `chartgen status` prints the charts of releases"
        raise UsageError(Problem(f"release {release} {problem}", hint=hint))
    note(f"{release} is a release of {last.target}; its values stay where no other is given")
    workload = (last.content["metadata"].get("annotations") or {}).get(WORKLOAD)
    return job._replace(target=last.target, workload=job.workload or workload, before=last.values)


def _avoiding(chart: Chart, values: Values, names: tuple[str, ...]) -> Values:
    """Return values with more nodes to avoid, beside those of the files."""
    if not names:
        return values
    import json

    from chartgen.checks import effective_values
    from chartgen.errors import Problem, UsageError
    from chartgen.helm.values import override

    if "avoidNodes" not in effective_values(chart, values):
        hint = "add a nodeAffinity to the values of that chart"
        raise UsageError(Problem(f"--avoid-node: chart {chart.name} has no key avoidNodes", hint=hint))
    known = values.data.get("avoidNodes") or []
    every = [*known, *(name for name in names if name not in known)] if isinstance(known, list) else [*names]
    return override(values, "--set-json", f"avoidNodes={json.dumps(every)}")


def _continued(
    job: GivenJob, chart: Chart, values: Values, last: RevisionRecord | None, *, is_upgrade: bool
) -> tuple[Chart, JudgedValues]:
    """Return the chart and the checked values after a revision; an upgrade keeps its files."""
    from chartgen.releases.plan import keep_files

    before = last.values if last else None
    if is_upgrade:
        values, kept = keep_files(values, before or {})
        if last and kept:
            note(f"kept from revision {last.revision}: {', '.join(kept)}")
            chart = job.chart(values)
    return chart, judged_values(chart, values, before)


def _prepare(
    cluster: Cluster,
    place: Place,
    chart: Chart,
    values: Values,
    state: State,
    *,
    action: str,
    rendering: Future[str],
    pool: Executor,
    options: dict[str, Any],
) -> Rollout:
    from functools import partial

    from chartgen.composer.origin import Foreign, origin_of
    from chartgen.helm.manifests import objects
    from chartgen.helm.program import load_runner
    from chartgen.releases.plan import describe_plan, plan_objects
    from chartgen.releases.preflight import examine
    from chartgen.releases.rollout import prepare

    shown = (options["release"], place.namespace)
    trial = partial(prepare, cluster, place, chart, shown[0], values.data, action=action, state=state)
    reading = pool.submit(lambda: objects(rendering.result()))
    trying = pool.submit(lambda: trial(rendered=reading.result()))
    look = partial(examine, cluster, chart, values)
    examining = None if options["force"] else pool.submit(lambda: look(reading.result(), *shown))
    if not options["dry_run"]:
        load_runner()
    # the meaning of third-party values is unknown, even if their keys have the same names
    is_ours = not isinstance(origin_of(chart), Foreign)
    if is_ours and (plan := plan_objects(chart, values, reading.result(), *shown)):
        show_plan(describe_plan(plan))
    if examining:
        _heed(examining.result())
    else:
        note("preflight of the cluster skipped (--force)")
    return trying.result()


def _heed(diagnoses: list[Diagnosis]) -> None:
    """Show the problems of a preflight; raise on those that would prevent the run."""
    from chartgen.cli.doctor import show_diagnoses
    from chartgen.errors import ChartgenError, Problem

    show_diagnoses([diagnosis for diagnosis in diagnoses if diagnosis.status != "pass"], err=True)
    failed = [diagnosis.name for diagnosis in diagnoses if diagnosis.status == "fail"]
    if failed:
        problem = Problem(
            f"the cluster is not ready for this release: {', '.join(failed)}", hint="see above; --force tries"
        )
        raise ChartgenError(problem)
