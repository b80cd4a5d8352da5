"""The line that Megatron-Bridge's rank 0 prints besides Megatron's own.

`Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU`: the step's number is missing, so steps are counted. Source:
NVIDIA-NeMo/Megatron-Bridge @ 067f987, src/megatron/bridge/training/utils/train_utils.py; v0.1 wrote TFLOP/s/GPU.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence

from chartgen.metrics.read.events import Event
from chartgen.metrics.read.prefix import Prefixes
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.columns import ColumnReader, Columns, LineField, LineTable, steps_of

_BETWEEN = b"GPU utilization:"
_LINE = re.compile(rb"(Step Time : +)\S{1,40}?(s )%s( +)\S{1,40}?((?:MODEL_)?TFLOP/s/GPU)" % _BETWEEN)


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    return BridgeReader().reader


class BridgeReader(ColumnReader):
    """Counts the lines of each rank."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[bytes, int] = {}

    def learn(self, line: bytes) -> LineTable | None:
        """Return the form of a line."""
        match = _LINE.search(line)
        if match is None or line.count(_BETWEEN) > 1:
            return None
        time = LineField(0, line[: match.end(1)], match[2], "seconds")
        return LineTable(_BETWEEN, 2, (time, LineField(1, match[3], line[match.start(4) :], "tflops")))

    def steps(self, columns: Columns, prefixes: Prefixes) -> Sequence[Event]:
        """Return the steps of some lines."""
        first = self._seen.get(prefixes.rank, 0) + 1
        after = first + len(columns["seconds"])
        steps = steps_of(array("q", range(first, after)), prefixes.when, columns)
        self._seen[prefixes.rank] = after - 1
        return (steps,) if steps else ()
