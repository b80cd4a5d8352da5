"""What Megatron-Bridge's rank 0 prints beside Megatron's own line.

`Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU`: it carries no number, so steps are counted. Source:
NVIDIA-NeMo/Megatron-Bridge @ 067f987, src/megatron/bridge/training/utils/train_utils.py; v0.1 wrote TFLOP/s/GPU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chartgen.metrics.events import Event, Step
from chartgen.metrics.prefix import Prefix
from chartgen.metrics.readers import Reader

_NUMBER = rb"([-+\d.eE]+|nan|inf)"
_LINE = re.compile(rb"Step Time : +" + _NUMBER + rb"s GPU utilization: +" + _NUMBER + rb"(?:MODEL_)?TFLOP/s/GPU")


def open_reader() -> Reader:
    """Give the reader of a log's lines."""
    return Reader(BridgeReader().read)


class BridgeReader:
    """Counts the lines of each rank."""

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Give the step of a line."""
        match = _LINE.search(line)
        if match is None:
            return ()
        number = self._seen[prefix.rank] = self._seen.get(prefix.rank, 0) + 1
        return (Step(number, prefix.when, {"seconds": float(match[1]), "tflops": float(match[2])}),)
