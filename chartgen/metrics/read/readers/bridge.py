"""The line that Megatron-Bridge's rank 0 prints besides Megatron's own.

`Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU`: the step's number is missing, so steps are counted. Source:
NVIDIA-NeMo/Megatron-Bridge @ 067f987, src/megatron/bridge/training/utils/train_utils.py; v0.1 wrote TFLOP/s/GPU.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence

from chartgen.metrics.read.events import Event
from chartgen.metrics.read.prefix import Prefix
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.forms import Columns, Form, Places, Times, steps_of

_LINE = re.compile(rb"Step Time : +(\S{1,40}?)s GPU utilization: +(\S{1,40}?) ?(?:MODEL_)?TFLOP/s/GPU")


def open_reader() -> Reader:
    """Return the reader of a log's lines, which counts those of each rank."""
    seen: dict[bytes, int] = {}

    def steps(columns: Columns, when: Times, rank: bytes) -> Sequence[Event]:
        before, count = seen.get(rank, 0), len(columns["seconds"])
        steps = steps_of(array("q", range(before + 1, before + count + 1)), when, columns)
        seen[rank] = before + count
        return steps

    form = Form(_places, steps)
    return Reader(lambda line, prefix: form.read(line, prefix) or (), form)


def _places(line: bytes, _prefix: Prefix) -> Places:
    match = _LINE.search(line)
    return {"seconds": match.span(1), "tflops": match.span(2)} if match else {}
