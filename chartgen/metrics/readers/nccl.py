"""Rows of nccl-tests, from its own programs and from launcher nccl-test, which prints the same columns.

Source: NVIDIA/nccl-tests v2.17.9, src/common.cu (columns). Launcher nccl-test names the collective in a line of its own
before each table, a program of nccl-tests in its own first line.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from chartgen.metrics.prefix import read_prefix

_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")
# `# all_reduce`, `# Collective test starting: all_reduce_perf`, or the call of the program in a job's log
_NAME = re.compile(rf"(?:^#\s*|/|:\s+|\s)({'|'.join(_COLLECTIVES)})(?:_perf(?:_mpi)?)?(?:\s|$)")


class Bandwidth(NamedTuple):
    """What one size reached.

    Args:
        operation: The collective; empty where the log does not name it.
        place: out or in: where the result went.
        bytes: Size of the message.
        time: Microseconds.
        algbw: Algorithm bandwidth, GB/s.
        busbw: Bus bandwidth, GB/s.
        wrong: Elements that were wrong.
    """

    operation: str
    place: str
    bytes: int
    time: float
    algbw: float
    busbw: float
    wrong: int


class TableReader:
    """Reads a log piece by piece; remembers which collective is tested."""

    def __init__(self) -> None:
        self._operation = ""

    def read(self, text: bytes) -> list[Bandwidth]:
        """Give the rows of some whole lines; of all others only those count that name the collective."""
        found: list[Bandwidth] = []
        for line in text.splitlines():
            told = line[read_prefix(line).size :].decode(errors="replace")
            words = told.split()
            # alltoall of few bytes has rows of none
            if len(words) == 13 and words[0].isdigit() and int(words[0]):
                found += _halves(self._operation, words)
            elif name := _NAME.search(told):
                self._operation = name[1]
        return found


def _halves(operation: str, words: list[str]) -> list[Bandwidth]:
    size, halves = int(words[0]), (("out", words[5:9]), ("in", words[9:]))
    return [
        Bandwidth(operation, place, size, float(told[0]), float(told[1]), float(told[2]), _count(told[3]))
        for place, told in halves
        if told[0] != "N/A"
    ]


def _count(text: str) -> int:
    # nccl-tests writes N/A where it does not check
    return 0 if text == "N/A" else int(float(text))
