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
    """

    total: float | None
    per_billion_tokens: float | None
    machines: int
    price: float


def cost_of(price: float, facts: Facts, wall: float | None, tokens: float | None) -> Cost | FigureNote:
    """Return the cost of a run.

    Args:
        price: Price per machine and hour.
        facts: The number of machines.
        wall: Wall time in seconds; None = unknown.
        tokens: Tokens per second; None = unknown.
    """
    machines = facts.get("machines")
    if not machines:
        return FigureNote("the cost is not known without the machines", "give --machines, or values with -f")
    rate = price * machines / 3600
    return Cost(rate * wall if wall else None, rate / tokens * 1e9 if tokens else None, machines, price)
