"""The cost of a run."""

from __future__ import annotations

from typing import NamedTuple

from chartgen.metrics.figures.facts import Facts, FigureNote


class Cost(NamedTuple):
    """The cost of a run, in the currency of the price.

    Args:
        total: Cost of the wall time; None = unknown.
        per_billion_tokens: Cost at the speed of the window; None = unknown.
        machines: Number of machines.
        price: Price per machine and hour.
        currency: Its currency; empty = not stated.
    """

    total: float | None
    per_billion_tokens: float | None
    machines: int
    price: float
    currency: str = ""


def cost_of(
    price: float, facts: Facts, wall: float | None, tokens: float | None, *, per_gpu: bool = False, currency: str = ""
) -> Cost | FigureNote:
    """Return the cost of a run.

    Args:
        price: Price per machine and hour.
        facts: The number of machines, and of GPUs.
        per_gpu: Whether it is the price of a GPU.
        currency: Its currency.
        wall: Wall time in seconds; None = unknown.
        tokens: Tokens per second; None = unknown.
    """
    machines = facts.get("machines")
    if not machines:
        return FigureNote("the cost is not known without the machines", "give --machines, or values with -f")
    if per_gpu:
        if not (gpus := facts.get("gpus")):
            return FigureNote("the cost is not known without the GPUs", "give --gpus, or values with -f")
        price = price * gpus / machines
    rate = price * machines / 3600
    return Cost(rate * wall if wall else None, rate / tokens * 1e9 if tokens else None, machines, price, currency)
