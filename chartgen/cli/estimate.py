"""`chartgen estimate`: estimate how fast a job will train, how long and for how much."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from chartgen.cli.completion import complete_target
from chartgen.cli.job import FolderCommand, GivenJob
from chartgen.cli.options import Amount, job_options, output_option
from chartgen.cli.output import show_answer

if TYPE_CHECKING:
    from chartgen.checks.automatic import Decision
    from chartgen.checks.speed import Budget, JobSpeed
    from chartgen.estimator import Estimate

_MOST = 1e18  # tokens, or a price; more is a mistake
_TOKENS = Amount(
    "a number of tokens such as 300B or 1.5T", {"": 1, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}, least=1, most=_MOST
)
_PRICE = Amount("a price such as 2.5", {"": 1}, most=_MOST)
# Key of an answer -> figure of an estimate.
_FIGURES = {
    "stepSeconds": "step_seconds",
    "tokensPerSecondPerGpu": "tokens_per_second_per_gpu",
    "tflopsPerGpu": "tflops_per_gpu",
    "mfu": "mfu",
    "made": "made",
}


@click.command(cls=FolderCommand)
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True, shell_complete=complete_target)
@job_options
@click.option("--tokens", type=_TOKENS, help="Tokens of the whole training, such as 1T: adds days and cost.")
@click.option("--price", type=_PRICE, help="Price of one GPU for an hour; default: a list price.")
@output_option
def estimate(job: GivenJob, targets: tuple[str, ...], tokens: float | None, price: float | None, output: str) -> None:
    """Estimate how fast a job will train, without a cluster.

    Each figure has a range that 80 % of measured runs keep; it is wider for a model, GPU or layout that no measured run
    had. Restarts and waiting come on top. Exit 1 if no TARGET has a figure.

    \b
    Examples:
      chartgen estimate gke-a4 --preset llama3.1-405b
      chartgen estimate gke-a3mega gke-a4 oke-h100 --preset llama3-70b --set nodes=8 --tokens 1T
    """
    from chartgen.checks.automatic import speed_on
    from chartgen.checks.speed import JobSpeed, budget_of
    from chartgen.errors import ChartgenError

    found = []
    for name in targets:
        choice = None
        try:
            target, values, choice = job._replace(target=name).decided()
            speed = speed_on(target, values)
        except ChartgenError as error:
            if len(targets) == 1:
                raise
            # the others are compared all the same
            speed = JobSpeed(name, "", "", 0, 0, None, str(error.problems[0]))
        found.append((speed, budget_of(speed, tokens, price) if tokens else None, choice))
    if output == "json":
        rows = [_row(*each) for each in found]
        one = len(rows) == 1
        show_answer("estimate/v1" if one else "estimates/v1", rows[0] if one else {"estimates": rows})
    else:
        for speed, budget, _ in found:
            _show(speed, budget)
        _compare(found)
    if all(speed.estimate is None for speed, *_ in found):
        sys.exit(1)


def _row(speed: JobSpeed, budget: Budget | None, choice: Decision | None) -> dict[str, Any]:
    from chartgen.checks.published import published_layout

    return {
        "target": speed.target,
        "machineType": speed.machine_type,
        "gpu": speed.gpu,
        "gpus": speed.gpus,
        "tokensPerStep": speed.tokens_per_step,
        **{key: getattr(speed.estimate, name, None) for key, name in _FIGURES.items()},
        "unmeasured": speed.estimate.unmeasured if speed.estimate else (),
        "reason": speed.reason,
        "budget": budget,
        "chosen": {**choice.change, **choice.saving} if choice else {},
        "why": choice.reason if choice else "",
        "published": published_layout(speed.run),
    }


def _show(speed: JobSpeed, budget: Budget | None) -> None:
    from chartgen.checks.published import published_layout

    click.echo(f"{speed.target}: {speed.gpus} x {speed.gpu} ({speed.machine_type})")
    if speed.estimate is None:
        click.echo(f"  no estimate: {speed.reason}")
        return
    for label, text in (*_figures(speed.estimate), *(_training(budget, speed) if budget else ())):
        click.echo(f"  {label:10} {text}")
    if figure := published_layout(speed.run):
        click.echo(f"  published  {figure}")


def _figures(found: Estimate) -> Iterator[tuple[str, str]]:
    from chartgen.checks.speed import range_text

    yield "step", f"{range_text(found.step_seconds)} s"
    share = f"{found.tflops_per_gpu.middle:.0f} TFLOP/s, MFU {found.mfu.middle:.0%}"
    yield "speed", f"{range_text(found.tokens_per_second_per_gpu)} tokens/s for each GPU; {share}"
    parts = {name: getattr(found.made, name) for name in ("compute", "exposed_communication", "bubble", "other")}
    shares = [f"{name.replace('_', ' ')} {seconds / found.made.seconds:.0%}" for name, seconds in parts.items()]
    yield "made of", ", ".join(shares)
    yield from (("wider", f"not measured: {what}") for what in found.unmeasured)


def _training(budget: Budget, speed: JobSpeed) -> Iterator[tuple[str, str]]:
    from chartgen.checks.speed import range_text

    yield "training", f"{range_text(budget.days)} days, {range_text(budget.gpu_hours)} GPU hours{speed.extra}"
    if budget.cost is None:
        from chartgen.data.gpus import why_unpriced

        yield "cost", f"no public price ({why_unpriced(speed.machine_type) or 'unknown'}): give yours with --price"
        return
    yield "cost", f"{range_text(budget.cost)} at {budget.price:g} for a GPU and hour"
    if budget.price_source:
        yield "price", budget.price_source


def _compare(found: list[tuple[JobSpeed, Budget | None, Decision | None]]) -> None:
    """Show which of several targets is the fastest and the cheapest."""
    budgets = [(speed.target, budget) for speed, budget, _ in found if budget]
    if len(budgets) < 2:
        return
    click.echo(f"fastest: {min(budgets, key=lambda each: each[1].days.middle)[0]}")
    priced = [(budget.cost.middle, name) for name, budget in budgets if budget.cost]
    if len(priced) > 1:
        click.echo(f"cheapest: {min(priced)[1]}")
