"""NeMo Automodel's line of a step.

`step 7 | epoch 0 | loss 2.1034 | grad_norm 1.2031 | lr 1.00e-05 | mem 33.95 GiB | tps 4211.05(526.38/gpu) |
num_label_tokens 4040`: it has no step time, which follows from the batch. Source: NVIDIA-NeMo/Automodel @ 36044ad,
nemo_automodel/recipes/llm/train_ft.py (log_train_metrics).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chartgen.metrics.events import Event, Setting, Step
from chartgen.metrics.prefix import Prefix, written
from chartgen.metrics.readers import Reader

_N = rb"([-+\d.eE]+|nan|inf)"
_LINE = re.compile(
    rb"step (\d+) \| epoch \d+ \| loss %s \| grad_norm %s \| lr \S+ \| mem %s GiB \| tps %s\(%s/gpu\)"
    % (_N, _N, _N, _N, _N)
)
_GIB = 1024**3 / 1e9


def open_reader() -> Reader:
    """Give the reader of a log's lines."""
    return Reader(read)


def read(line: bytes, prefix: Prefix) -> Sequence[Event]:
    """Give the step of a line, and the number of GPUs, which follows from the speed of all and of one."""
    match = _LINE.search(line)
    if match is None:
        return ()
    loss, gradient, memory, speed, own = map(float, match.groups()[1:])
    when = written(prefix, line, match.start())
    values = {"loss": loss, "gradient": gradient, "memory": memory * _GIB, "tokens": own}
    step = Step(int(match[1]), when, values)
    return (step, Setting("world_size", str(round(speed / own)))) if own > 0 else (step,)
