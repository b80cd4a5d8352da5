"""`chartgen install`, `upgrade`, `rollback` and `uninstall`: releases, changed safely."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.follow import Duration
from chartgen.cli.options import (
    F,
    context_option,
    find_chart,
    namespace_option,
    open_place,
    output_option,
    path_option,
    read_values,
    say,
    show_plan,
    show_warnings,
    target_argument,
    values_options,
    workload_option,
)

if TYPE_CHECKING:
    from chartgen.helm.chart import Chart
    from chartgen.helm.values import Values
    from chartgen.kube import Cluster
    from chartgen.releases import Loss, Rollout
    from chartgen.releases.helm_release import Place, Release
    from chartgen.releases.preflight import Diagnosis

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask; needed where stdin is not a terminal.")
lose_option = click.option(
    "--lose-progress", is_flag=True, help="Agree that steps of a live run are lost which no checkpoint holds."
)
_PHASES = ("queued", "running", "finished")


def _follow_options(command: F) -> F:
    """Add what every command that starts a run takes."""
    options = (
        click.option("--description", default="", metavar="TEXT", help="A note for the release's history."),
        click.option("--wait-for", type=click.Choice(_PHASES), help="Wait until the run reaches this phase or fails."),
        click.option(
            "--timeout", type=Duration(), default="2h", show_default=True, metavar="TIME", help="For how long."
        ),
        lose_option,
        namespace_option,
        context_option,
        output_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


def _chart_options(command: F) -> F:
    """Add what `install` and `upgrade` take alike."""
    force = click.option("--force", is_flag=True, help="Skip the preflight of the cluster (`chartgen doctor`).")
    options = (target_argument, click.argument("release"), values_options, workload_option, force, _follow_options)
    for option in reversed((*options, path_option)):
        command = option(command)
    return command


@click.command()
@_chart_options
def install(**options: Any) -> None:
    """Install a target's chart, or a chart folder, as a new release.

    The values are checked, the cluster is looked at, every object is tried on the API server; then Helm installs. Helm
    never waits for a training run; --wait-for does.

    \b
    Example:
      chartgen install gke-a3mega my-run -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f site.yaml
    """
    _roll_out("install", options, lambda rollout: _agree(rollout, lose=options["lose_progress"]))


@click.command()
@_chart_options
@click.option("-i", "--install", "or_install", is_flag=True, help="Install it when there is no such release.")
@yes_option
def upgrade(*, yes: bool, **options: Any) -> None:
    """Upgrade a release to these values; values of earlier revisions are not carried over.

    Shows what changes and asks. Unchanged values change nothing; changed ones replace the run: the old one stops with
    all its pods, then the new one resumes from the release's checkpoints. Where there are none, all steps so far are
    lost: that is shown, and asked for by the release's name, or with --lose-progress.

    \b
    Example:
      chartgen upgrade gke-a3mega my-run -f values/gpt3-175b.yaml -f values/gke-a3mega/gpt3-175b.yaml -f site.yaml
    """
    _roll_out("upgrade", options, lambda rollout: _ask(rollout, yes=yes, lose=options["lose_progress"]))


@click.command()
@click.argument("release")
@click.argument("revision", type=click.IntRange(min=1), required=False)
@click.option("--again", default="", metavar="WORD", help="Run it once more although that run has finished.")
@yes_option
@_follow_options
def rollback(release: str, revision: int | None, again: str, *, yes: bool, **options: Any) -> None:
    """Return to the chart and values of an earlier revision, as a new revision; default: the one before.

    \b
    Example:
      chartgen rollback my-run 3
    """
    from chartgen.releases import prepare_rollback

    with open_place(options["context"], options["namespace"]) as (cluster, place):
        with _untouched():
            rollout = prepare_rollback(cluster, place, release, revision, again=again)
            _ask(rollout, yes=yes, lose=options["lose_progress"])
        _execute(rollout, cluster, place, options)


@click.command()
@click.argument("release")
@lose_option
@namespace_option
@context_option
@output_option
def uninstall(release: str, lose_progress: bool, **options: Any) -> None:
    """Uninstall a release: its run stops, what failed upgrades left of it goes, its data stays.

    Steps of a live run that no checkpoint holds are shown before, and asked for as `upgrade` does.

    \b
    Example:
      chartgen uninstall my-run
    """
    from chartgen.releases import check_installed, losses
    from chartgen.releases import uninstall as act

    with open_place(options["context"], options["namespace"]) as (cluster, place):
        with _untouched():
            state = check_installed(cluster, place, release)
            _agree_to("uninstall", release, losses(cluster, state, state.runs), lose=lose_progress)
        removal = act(cluster, place, release, progress=say)
    if options["output"] == "json":
        click.echo(json.dumps(asdict(removal), indent=2))
        return
    click.echo(f"{release}: uninstalled" + (f", {removal.chart}" if removal.chart else "") + f" in {removal.namespace}")
    for kept in removal.kept:
        click.echo(f"  kept: {kept}")
    for loss in removal.losses:
        click.echo(f"  lost: {loss}")
    if removal.survival and removal.survival.risk and not removal.losses:
        click.echo(f"  note: {removal.survival.risk}")


def _roll_out(action: str, options: dict[str, Any], ask: Callable[[Rollout], None]) -> None:
    from chartgen.checks import check, raise_errors
    from chartgen.composer.origin import origin_of
    from chartgen.releases.helm_release import check_name

    check_name(options["release"])
    values = read_values(options)
    chart = find_chart(options["target"], options["path"], options["workload"])
    found = check(chart, values)
    raise_errors(found)
    with open_place(options["context"], options["namespace"]) as (cluster, place):
        with _untouched():
            action = _action(action, cluster, place, options)
            # a setup chart takes the values of its run chart, whose checks are not its own
            if not origin_of(chart).setup:
                show_warnings(found)
            rollout = _prepare(action, cluster, place, chart, values, options)
            ask(rollout)
        _execute(rollout, cluster, place, options)


def _action(action: str, cluster: Cluster, place: Place, options: dict[str, Any]) -> str:
    """Settle what is done before anything else is worked out: a release that exists, or does not, ends it at once."""
    from chartgen.releases import check_existence, survey

    state = survey(cluster, options["release"], place.namespace)
    if options.get("or_install") and state.last is None:
        return "install"
    check_existence(state, action)
    return action


def _prepare(
    action: str, cluster: Cluster, place: Place, chart: Chart, values: Values, options: dict[str, Any]
) -> Rollout:
    from chartgen.composer.origin import Foreign, origin_of
    from chartgen.helm.manifests import objects, render
    from chartgen.releases import prepare
    from chartgen.releases.plan import plan_objects

    release = options["release"]
    # what installs is imported while Helm renders: a tenth of the whole command
    threading.Thread(target=import_module, args=("pyhelm3",), daemon=True).start()
    rendered = objects(render(chart, release, place.namespace, values.data, cluster.version))
    # what the values of others mean is not known, also where their keys are called as ours are
    is_ours = not isinstance(origin_of(chart), Foreign)
    if is_ours and (plan := plan_objects(chart, values, rendered, release, place.namespace)):
        show_plan(plan)
    if options["force"]:
        say("preflight of the cluster skipped (--force)")
    else:
        from chartgen.releases.preflight import examine

        _heed(examine(cluster, chart, values, rendered, release, place.namespace))
    return prepare(cluster, place, chart, release, values.data, action=action, rendered=rendered)


@contextmanager
def _untouched() -> Iterator[None]:
    """Say of an interrupted command that it had not begun to change anything."""
    from chartgen.releases.stage import UNTOUCHED

    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted: {UNTOUCHED}")
        raise


def _heed(found: list[Diagnosis]) -> None:
    """Show what a preflight has found amiss; what would stop the run stops the command."""
    from chartgen.cli.doctor import show_diagnoses
    from chartgen.errors import ChartgenError, Problem

    show_diagnoses([diagnosis for diagnosis in found if diagnosis.status != "pass"], err=True)
    failed = [diagnosis.name for diagnosis in found if diagnosis.status == "fail"]
    if failed:
        problem = Problem(
            f"the cluster is not ready for this release: {', '.join(failed)}", hint="see above; --force tries"
        )
        raise ChartgenError(problem)


def _ask(rollout: Rollout, *, yes: bool, lose: bool) -> None:
    """Show the changes and ask, when there is something to decide."""
    from chartgen.errors import UsageError
    from chartgen.releases.diff import describe

    for line in describe(rollout.changes):
        click.echo(line, err=True)
    click.echo(f"Effect: {rollout.effect or 'nothing runs in this chart'}", err=True)
    _agree(rollout, lose=lose)
    has_agreed = bool(rollout.preview.losses) and not lose  # by the release's name, which is more than a yes
    if has_agreed or yes or not (rollout.changes or rollout.findings):
        return
    if not can_ask():
        raise UsageError(f"{rollout.action} asks before it changes a release, but stdin is not a terminal; pass --yes")
    click.confirm(f"{rollout.action.capitalize()} {rollout.state.release}?", abort=True, err=True)


def _agree(rollout: Rollout, *, lose: bool) -> None:
    _agree_to(rollout.action, rollout.state.release, rollout.preview.losses, lose=lose)


def _agree_to(action: str, release: str, lost: list[Loss], *, lose: bool) -> None:
    """Show what is lost, and ask for more than a yes."""
    from chartgen.errors import Problem, UsageError

    for loss in lost:
        click.echo(f"{click.style('lost', fg='red')}: {loss}", err=True)
    if lose or not lost:
        return
    if not can_ask():
        problem = f"{action} loses steps that no checkpoint holds, but stdin is not a terminal"
        raise UsageError(Problem(problem, hint="pass --lose-progress, or let the run finish first"))
    if click.prompt(f"Type {release} to {action} it all the same", default="", show_default=False, err=True) != release:
        raise click.Abort


def can_ask() -> bool:
    """Report whether somebody sits at a terminal."""
    return sys.stdin.isatty()


def _execute(rollout: Rollout, cluster: Cluster, place: Place, options: dict[str, Any]) -> None:
    from chartgen.releases import execute

    for finding in rollout.findings:
        say(finding)
    made = execute(rollout, cluster, place, description=options["description"], progress=say)
    _show(made, rollout, options["output"])
    if phase := options["wait_for"]:
        try:
            _wait(cluster, made, phase, options["timeout"])
        except KeyboardInterrupt:
            say(f"interrupted: revision {made.revision} is {made.status}, and its run goes on; see `chartgen status`")
            raise


def _wait(cluster: Cluster, made: Release, phase: str, timeout: float) -> None:
    from chartgen.releases.status.text import describe
    from chartgen.releases.status.watch import wait_for_phase

    readout = wait_for_phase(cluster, made.name, phase, namespace=made.namespace, timeout=timeout, progress=say)
    if readout.phase == "failed":
        click.echo(describe(readout), err=True)
        sys.exit(1)


def _show(release: Release, rollout: Rollout, output: str) -> None:
    if output == "json":
        facts = {**asdict(release), "updated": release.updated.isoformat(), "run": rollout.run}
        facts |= {**asdict(rollout.preview), "changes": [asdict(change) for change in rollout.changes]}
        click.echo(json.dumps(facts, indent=2))
        return
    click.echo(
        f"{release.name}: {release.status}, revision {release.revision} of {release.chart} in {release.namespace}"
    )


COMMANDS = (install, upgrade, rollback, uninstall)
