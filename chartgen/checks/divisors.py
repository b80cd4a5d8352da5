"""Divisors of numbers that are given by users, who may mistype them: found in steps of their square root."""

from __future__ import annotations

import math


def divisors(number: int, most: int | None = None) -> list[int]:
    """Return the divisors of a number, smallest first.

    Args:
        number: The number, from 1 on.
        most: The largest divisor that is wanted; None for all.
    """
    small = [size for size in range(1, math.isqrt(number) + 1) if number % size == 0]
    found = small + [number // size for size in reversed(small) if size * size != number]
    return found if most is None else [size for size in found if size <= most]
