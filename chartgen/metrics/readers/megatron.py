"""Megatron-LM's line of an iteration, old and new, which Megatron-Bridge prints too.

` [2026-02-06 20:55:02.918469] iteration      292/95367431 | consumed samples:         9344 | elapsed time per
iteration (ms): 3075.7 | throughput per GPU (TFLOP/s/GPU): 478.0 | energy per GPU (J/iter/GPU): 1992.5 | ... |`

Source: NVIDIA/Megatron-LM @ d98e8a6, megatron/training/training.py (training_log), and report_memory in
megatron/training/utils/common_utils.py. Old versions print no time, and no loss for a skipped iteration.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from math import isnan
from operator import lt
from typing import NamedTuple

from chartgen.metrics.clock import minute_of
from chartgen.metrics.events import NEVER, Event, Step, Steps
from chartgen.metrics.prefix import Prefix
from chartgen.metrics.readers import Reader

_ELAPSED = b"elapsed time per iteration (ms)"
_HEAD = rb"(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d):(\d\d(?:\.\d+)?)\] +)?iteration +(\d+)/ *(\d+|infinity) \|"
_NUMBER = re.compile(_HEAD)
_NOTHING = re.compile(rb"(?!)")
_MEMORY = re.compile(rb"\(after (\d+) iterations\) memory \(MB\).*?max allocated: ([\d.]+)")
_MIB = 1024 * 1024 / 1e9
_FIELDS = {
    b"consumed samples": "samples",
    _ELAPSED: "milliseconds",
    b"throughput per GPU (TFLOP/s/GPU)": "tflops",
    b"energy per GPU (J/iter/GPU)": "energy",
    b"global batch size": "batch",
    b"lm loss": "loss",
    b"grad norm": "gradient",
    b"number of skipped iterations": "skipped",
    b"number of nan iterations": "nans",
}


def open_reader() -> Reader:
    """Give the reader of a log's lines."""
    reader = MegatronReader()
    return Reader(reader.read, reader.read_many)


class _Layout(NamedTuple):
    """The fields of a line: most lines of a run have the same ones, so one pattern reads a whole line at once."""

    pattern: re.Pattern[bytes]
    line: re.Pattern[bytes]
    names: tuple[str, ...]


class MegatronReader:
    """Remembers the layout of the line before."""

    def __init__(self) -> None:
        self._layout = _Layout(_NOTHING, _NOTHING, ())

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Give the step of a line; of a line that was cut off, the fields that are whole."""
        match = self._layout.pattern.search(line)
        if match is None:
            head = _NUMBER.search(line)
            if head is None:
                return _memory(line, prefix)
            self._layout = _layout(line[head.end() : line.rfind(b"|") + 1])
            match = self._layout.pattern.search(line)
        if match is None or "milliseconds" not in self._layout.names:
            return ()
        minute, seconds, number, planned, *texts = match.groups()
        values = dict(zip(self._layout.names, map(float, texts), strict=True))
        values["seconds"] = values.pop("milliseconds") / 1000
        when = prefix.when
        if isnan(when):
            when = minute_of(minute) + float(seconds) if minute else NEVER
        return (Step(int(number), when, values, _planned(planned)),)

    def read_many(self, text: bytes, start: int, end: int, count: int) -> Steps | None:
        """Give the steps of many lines without prefixes that have the layout of the one before."""
        rows = self._layout.line.findall(text, start, end)
        if len(rows) != count or "milliseconds" not in self._layout.names:
            return None
        minutes, seconds, numbers, planned, *texts = zip(*rows, strict=True)
        steps = array("q", map(int, numbers))
        try:
            columns = {
                name: array("d", map(float, column)) for name, column in zip(self._layout.names, texts, strict=True)
            }
        except ValueError:
            return None
        if not all(map(lt, steps, steps[1:])):
            return None
        columns["seconds"] = array("d", [value / 1000 for value in columns.pop("milliseconds")])
        times = zip(minutes, seconds, strict=True)
        when = array("d", [minute_of(minute) + float(second) if minute else NEVER for minute, second in times])
        return Steps(steps, when, columns, _planned(planned[-1]))


def _planned(text: bytes) -> int:
    return 0 if text == b"infinity" else int(text)


def _layout(fields: bytes) -> _Layout:
    """Learn the fields of a line: each ends in a bar."""
    pattern, names = _HEAD, list[str]()
    for field in fields.split(b"|")[:-1]:
        name, colon, _ = field.partition(b":")
        known = _FIELDS.get(name.strip())
        if known and known not in names:
            names.append(known)
            # some forks add their own mean behind a slash
            pattern += re.escape(name + colon) + rb" *([^ |/]+)[^|]*\|"
        else:
            pattern += re.escape(name) + rb"[^|]*\|"
    # without a prefix, which would tell another time or another process
    return _Layout(re.compile(pattern), re.compile(rb"(?m)^ ?" + pattern), tuple(names))


def _memory(line: bytes, prefix: Prefix) -> Sequence[Event]:
    match = _MEMORY.search(line)
    return (Step(int(match[1]), prefix.when, {"memory": float(match[2]) * _MIB}),) if match else ()
