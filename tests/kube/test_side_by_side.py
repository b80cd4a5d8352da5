"""Requests that do not depend on each other wait at the same time, and fail as if they came one after the other."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from chartgen.errors import ChartgenError
from chartgen.kube import side_by_side


def test_calls_wait_at_the_same_time_and_answer_in_order() -> None:
    together = threading.Barrier(3)

    def meet(name: str) -> str:
        together.wait(timeout=60)
        return name

    assert side_by_side(partial(meet, name) for name in "abc") == ["a", "b", "c"]


def test_the_error_of_the_first_call_is_raised_whichever_fails_first() -> None:
    failed = threading.Event()

    def late() -> None:
        failed.wait(timeout=60)
        raise ChartgenError("first in order")

    def early() -> None:
        failed.set()
        raise ChartgenError("first in time")

    with pytest.raises(ChartgenError, match="first in order"):
        side_by_side([late, early])
