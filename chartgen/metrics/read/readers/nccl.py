"""Rows of nccl-tests, from its own programs and from launcher nccl-test, which prints the same columns.

Source: NVIDIA/nccl-tests v2.17.9, src/common.cu (columns). Launcher nccl-test names the collective in a separate line
before each table, a program of nccl-tests in its first line. Before v2.11 the last column of a half is the largest
error, and some collectives omit the operation or the root.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import NamedTuple

from chartgen.metrics.read.prefix import read_prefix
from chartgen.metrics.read.readers import TABLE

_COLLECTIVES = b"all_reduce|all_gather|reduce_scatter|alltoall"
_PROGRAMS = _COLLECTIVES + b"|broadcast|reduce|sendrecv|scatter|gather|hypercube"
# `# all_reduce`, `# Collective test starting: all_reduce_perf`, or the call of the program in a job's log
_NAME = re.compile(rb"(?:^#|/|\s)(?:(%s)_perf(?:_mpi)?(?=\s|$)|(%s)(?=\s|$))" % (_PROGRAMS, _COLLECTIVES), re.MULTILINE)
_OUT_OF_BOUNDS = re.compile(rb"^# Out of bounds values : (\d{1,18})\b")
# Size, count and type; some collectives have an operation, a root, or both; then the two halves.
_FEWEST, _MOST, _HALF = 11, 13, 4
_LONGEST = 2000


class Bandwidth(NamedTuple):
    """The result of one message size."""

    operation: str  # the collective; empty when the log does not name it
    place: str  # `out` or `in`, for out of place or in place
    bytes: int  # size of the message
    microseconds: float  # time of one operation
    algbw: float  # algorithm bandwidth, GB/s
    busbw: float  # bus bandwidth, GB/s
    wrong: int  # number of wrong elements
    test: int = 1  # number of the test in the log, from 1


class TableReader:
    """Reads a log piece by piece; keeps the current test and its collective."""

    def __init__(self) -> None:
        self._operation = ""
        self._test = 0
        # The meaning of a half's fourth column: the number of wrong elements, or the largest error.
        self._errors = False

    def read(self, text: bytes) -> list[Bandwidth]:
        """Return the rows of some whole lines; other lines matter only when they name the collective."""
        found: list[Bandwidth] = []
        for line in text.splitlines():
            if len(line) > _LONGEST:
                continue
            body = line[read_prefix(line).size :]
            words = body.decode(errors="replace").split()
            if rows := self._row(words):
                found += rows
            elif TABLE in body:
                self._test += 1
                self._errors = words[-1:] == ["error"]
            elif found and self._errors and (match := _OUT_OF_BOUNDS.search(body)):
                found[-1] = found[-1]._replace(wrong=int(match[1]))
            elif name := _NAME.search(body):
                self._operation = (name[1] or name[2]).decode()
        return found

    def _row(self, words: list[str]) -> list[Bandwidth]:
        """Return both halves of a row; nothing when the line is not a row, or a small alltoall has no result."""
        if not (_FEWEST <= len(words) <= _MOST and words[0].isdecimal() and words[1].isdecimal()):
            return []
        try:
            size, halves = int(words[0]), (("out", words[-2 * _HALF : -_HALF]), ("in", words[-_HALF:]))
            return [self._half(size, place, columns) for place, columns in halves if size and columns[0] != "N/A"]
        except (ValueError, OverflowError):
            return []

    def _half(self, size: int, place: str, columns: list[str]) -> Bandwidth:
        # nccl-tests writes N/A without a check
        wrong = 0 if self._errors or columns[3] == "N/A" else int(float(columns[3]))
        time, algbw, busbw = map(float, columns[:3])
        if not (isfinite(time) and isfinite(algbw) and isfinite(busbw)):
            raise ValueError(columns)
        return Bandwidth(self._operation, place, size, time, algbw, busbw, wrong, max(self._test, 1))
