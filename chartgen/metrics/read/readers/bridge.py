"""The line that Megatron-Bridge's rank 0 prints besides Megatron's own.

`Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU`: the step's number is missing, so steps are counted. Source:
NVIDIA-NeMo/Megatron-Bridge @ 067f987, src/megatron/bridge/training/utils/train_utils.py; v0.1 wrote TFLOP/s/GPU.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence

from chartgen.metrics.read.events import Event, Step
from chartgen.metrics.read.prefix import Lines, Prefix
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.columns import NUMBER, steps_of

_TEXT = rb"Step Time : +(%s)s GPU utilization: +(%s)(?:MODEL_)?TFLOP/s/GPU" % (NUMBER, NUMBER)
_LINE = re.compile(_TEXT)
_LINES = re.compile(rb"(?m)^%s$" % _TEXT)


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    reader = BridgeReader()
    return Reader(reader.read, reader.read_many)


class BridgeReader:
    """Counts the lines of each rank."""

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Return the step of a line."""
        match = _LINE.search(line)
        if match is None:
            return ()
        number = self._seen[prefix.rank] = self._seen.get(prefix.rank, 0) + 1
        return (Step(number, prefix.when, {"seconds": float(match[1]), "tflops": float(match[2])}),)

    def read_many(self, lines: Lines) -> Sequence[Event]:
        """Return the steps of many lines."""
        rows = _LINES.findall(lines.text)
        if len(rows) != lines.total:
            return ()
        first = self._seen.get(lines.rank, 0) + 1
        numbers = array("q", range(first, first + lines.total))
        steps = steps_of(numbers, lines.when, ("seconds", "tflops"), [*zip(*rows, strict=True)])
        self._seen[lines.rank] = first + lines.total - 1
        return (steps,) if steps else ()
