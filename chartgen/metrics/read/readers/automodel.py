"""NeMo Automodel's line of a step.

`step 7 | epoch 0 | loss 2.1034 | grad_norm 1.2031 | lr 1.00e-05 | mem 33.95 GiB | tps 4211.05(526.38/gpu) |
num_label_tokens 4040`: it has no step time, which follows from the batch. Source: NVIDIA-NeMo/Automodel @ 36044ad,
nemo_automodel/recipes/llm/train_ft.py (log_train_metrics).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from math import isfinite

from chartgen.metrics.read.clock import times_of
from chartgen.metrics.read.events import Event, Setting, Step
from chartgen.metrics.read.prefix import Lines, Prefix, written
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.columns import NUMBER, STEP, scaled, steps_of

_TEXT = rb"step (%s) \| epoch \d+ \| loss (%s) \| grad_norm (%s) \| lr \S+ \| mem (%s) GiB \| tps (%s)\((%s)/gpu\)"
_LINE = re.compile(_TEXT % (rb"\d+", *[NUMBER] * 5))
# As Automodel's own logging begins a line; with anything else before it, lines are read one by one.
_LINES = re.compile(
    rb"(?m)^(?:(\d{4}-\d\d-\d\d \d\d:\d\d):(\d\d(?:\.\d{1,9})?) \| \w+ \| \w+ \| )?"
    + _TEXT % (STEP, *[NUMBER] * 5)
    + rb" \| num_label_tokens"
)
_GIB = 1024**3 / 1e9


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    return Reader(read, read_many)


def read(line: bytes, prefix: Prefix) -> Sequence[Event]:
    """Return the step of a line, and the number of GPUs, which follows from the speed of all and of one."""
    match = _LINE.search(line)
    if match is None:
        return ()
    loss, gradient, memory, speed, own = map(float, match.groups()[1:])
    when = written(prefix, line, match.start())
    values = {"loss": loss, "gradient": gradient, "memory": memory * _GIB, "tokens": own}
    step = Step(int(match[1]), when, values)
    return (step, *_gpus(speed, own))


def read_many(lines: Lines) -> Sequence[Event]:
    """Return the steps of many lines."""
    rows = _LINES.findall(lines.text)
    if len(rows) != lines.total:
        return ()
    minutes, seconds, numbers, losses, gradients, memory, speeds, own = zip(*rows, strict=True)
    when = times_of(minutes, seconds) if lines.when is None else lines.when
    names, texts = ("loss", "gradient", "memory", "tokens"), (losses, gradients, memory, own)
    steps = steps_of(array("q", map(int, numbers)), when, names, texts)
    whole = array("d", map(float, speeds))
    if steps is None or not all(map(isfinite, (*whole, *steps.columns["tokens"]))) or min(steps.columns["tokens"]) <= 0:
        return ()
    steps.columns["memory"] = scaled(steps.columns["memory"], _GIB)
    return (steps, *_gpus(whole[-1], steps.columns["tokens"][-1]))


def _gpus(speed: float, own: float) -> tuple[Setting, ...]:
    return (Setting("world_size", str(round(speed / own))),) if own > 0 and isfinite(speed / own) else ()
