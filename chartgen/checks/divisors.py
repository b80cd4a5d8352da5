"""Divisors of numbers that are given by users, who may mistype them: found in steps of their square root."""

from __future__ import annotations

import math


def divisors(number: int) -> list[int]:
    """Give all divisors of a number from 1 on, smallest first."""
    small = [size for size in range(1, math.isqrt(number) + 1) if number % size == 0]
    return small + [number // size for size in reversed(small) if size * size != number]
