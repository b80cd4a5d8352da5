"""Limits for the lint of one chart: a third-party chart takes bounded time and memory, whatever it contains."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn


@dataclass(frozen=True)
class Limits:
    """Limits for the lint of one chart."""

    seconds: float = 120  # wall time of the whole lint, and processor time of each process
    step: float = 30  # wall time of one step in seconds; later steps still run
    # Bytes of address space of each process, including Helm, which reserves 1.3 GB at its start
    memory: int = 3 * 1024**3
    answer: int = 64 * 1024**2  # bytes of its findings
    call: float = 1800  # wall time of all charts of a call in seconds

    @classmethod
    def of(cls, seconds: float, call: float) -> Limits:
        """Return limits with other times of a chart, a quarter of it for a step, and of all charts."""
        return cls(seconds, seconds / 4, call=call)


class OutOfTimeError(BaseException):
    """A step took longer than its limit; like KeyboardInterrupt it is not an Exception, so handlers let it pass."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` in a `with` block that takes longer; only in main threads, which receive signals.

    A pattern that backtracks is interrupted too: Python's `re` checks for signals while it matches.
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
