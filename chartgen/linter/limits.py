"""What the lint of one chart may take: a chart of a stranger costs a bounded time and memory, whatever is in it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

# The rule of what lint could not finish: silence about it would be taken for soundness.
UNFINISHED = "lint-finishes"


@dataclass(frozen=True)
class Limits:
    """What the lint of one chart may take.

    Args:
        seconds: Of wall time in all, and of processor time of each process.
        step: Seconds of wall time of one step; the steps after it go on.
        memory: Bytes of address space of each process, Helm's included, which reserves 1.3 GB before it does anything.
        answer: Bytes that its findings take.
    """

    seconds: float = 120
    step: float = 30
    memory: int = 3 * 1024**3
    answer: int = 64 * 1024**2

    @classmethod
    def of(cls, seconds: float) -> Limits:
        """Return limits with another time in all, and a quarter of it for a step."""
        return cls(seconds, seconds / 4)


class OutOfTimeError(BaseException):
    """A step took longer than it may. Like KeyboardInterrupt nothing on the way may take it for an error of its own."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` in a `with` block that takes longer; for main threads only, where signals arrive.

    A pattern that backtracks is interrupted too: Python's `re` looks for signals while it matches.
    """

    def expire(*_: object) -> NoReturn:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
