"""NeMo RL's lines of a step and of an evaluation, as GRPO and SFT print them.

`========================= Step 3/60 =========================`, then among others `  • Loss: 0.1234`, with SFT on
Megatron Core `  • Training FLOPS: 3200.00 TFLOPS (400.00 TFLOPS per rank)`, and `  • Total step time: 134.05s`, which
ends the step. Steps count from 1 in each epoch, which `===== Epoch 2/3 =====` opens; in a run of several, the number
after the slash is that of an epoch's steps. GRPO prints the FLOPS behind the time, where they are not read. SFT prints
`    • Validation loss: 1.2500` in an evaluation. Source: NVIDIA-NeMo/RL v0.6.0 and v0.7.0, nemo_rl/algorithms/grpo.py
and sft.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chartgen.metrics.read.events import Event, Mark, Step
from chartgen.metrics.read.prefix import Prefix
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.forms import NUMBER

_HEAD = re.compile(rb"={5,40} (Step|Epoch) (\d{1,12})/(\d{1,12}) ={5,40}")
_VALUE = re.compile("• (Loss|Total step time|Validation loss): ".encode() + rb"(%s)(s?)" % NUMBER)
_FLOPS = re.compile("• Training FLOPS: ".encode() + rb"(?:%s) TFLOPS \((%s) TFLOPS per rank\)" % (NUMBER, NUMBER))


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    return Reader(NemoRlReader().read)


class NemoRlReader:
    """Joins the lines of a step; one process prints them."""

    def __init__(self) -> None:
        self._epoch, self._number = 1, 0
        self._values: dict[str, float] = {}

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Return the step that a line ends, or its evaluation."""
        if head := _HEAD.search(line):
            self._begin(head[1], int(head[2]), int(head[3]))
        elif flops := _FLOPS.search(line):
            self._values["tflops"] = float(flops[1])
        elif value := _VALUE.search(line):
            return self._value(value[1], float(value[2]), prefix.when)
        return ()

    def _begin(self, what: bytes, number: int, total: int) -> None:
        if what == b"Epoch":
            self._epoch = number
            return
        self._number, self._values = (self._epoch - 1) * total + number, {}

    def _value(self, name: bytes, value: float, when: float) -> Sequence[Event]:
        if name == b"Loss":
            self._values["loss"] = value
        elif name != b"Total step time":
            return (Mark("eval", when, str(value), step=self._number),)
        elif "loss" in self._values and self._number:
            return (Step(self._number, when, {**self._values, "seconds": value}),)
        return ()
