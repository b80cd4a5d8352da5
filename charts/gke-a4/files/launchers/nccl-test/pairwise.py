"""Pairs of machines: who meets whom, which machine is slow, and how a run avoids it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator

Pair = tuple[int, int]


def rounds(machines: int) -> Iterator[list[Pair]]:
    """Pair each machine with each other, at most one at a time, as in a tournament; of an odd number one pauses."""
    seats = [*range(machines), *([-1] * (machines % 2))]
    half = len(seats) // 2
    for _ in seats[1:]:
        pairs = zip(seats[:half], reversed(seats[half:]), strict=True)
        yield [(min(pair), max(pair)) for pair in pairs if -1 not in pair]
        seats = [seats[0], seats[-1], *seats[1:-1]]


def levels(reached: dict[Pair, float], machines: int) -> list[float]:
    """Return what each machine reaches with the best quarter of its partners: a slow one must not count against it."""
    own = [sorted(figure for pair, figure in reached.items() if each in pair) for each in range(machines)]
    return [figures[-(len(figures) // 4 + 1)] for figures in own]


def report(names: list[str], found: list[float], percent: int) -> tuple[list[str], list[str]]:
    """Write what each machine reaches in GB/s, and which are slow: below some percent of what most machines reach."""
    usual, width = statistics.median(found), max(map(len, names))
    table, slow_machines, slow = [f"# {'machine':<{width}}  {'busbw':>7}   share"], [], []
    for name, figure in zip(names, found, strict=True):
        share = figure / usual
        table.append(f"  {name:<{width}}  {figure:>7.2f}  {share:>6.1%}")
        if share < percent / 100:
            slow.append(name)
            reached = f"{figure:.2f} GB/s with its partners, {share:.0%} of the {usual:.2f} GB/s of most machines"
            slow_machines.append(f"chartgen: nccl-test: {name} is slow: {reached}")
    avoidance = [
        "chartgen: nccl-test: values that keep a run away from what is slow:",
        f"avoidNodes: {json.dumps(slow)}",
    ]
    return table, slow_machines + avoidance if slow else []
