"""What a run cost."""

from __future__ import annotations

from typing import NamedTuple

from chartgen.metrics.figures.facts import Facts, Notice


class Cost(NamedTuple):
    """What a run cost at a price for a machine and hour, in the currency of that price.

    Args:
        total: Of the wall time; None = not told.
        per_billion_tokens: At the speed of the window; None = not known.
        machines: Machines.
        price: Price of a machine for an hour.
    """

    total: float | None
    per_billion_tokens: float | None
    machines: int
    price: float


def cost_of(price: float, facts: Facts, wall: float | None, tokens: float | None) -> Cost | Notice:
    """Work out the cost of a run.

    Args:
        price: Of a machine for an hour.
        facts: How many machines there are.
        wall: Wall time in seconds; None = not told.
        tokens: Tokens a second; None = not known.
    """
    machines = facts.get("machines")
    if not machines:
        return Notice("the cost is not known without the machines", "give --machines, or values with -f")
    rate = price * machines / 3600
    return Cost(rate * wall if wall else None, rate / tokens * 1e9 if tokens else None, machines, price)
