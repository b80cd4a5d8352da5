"""NeMo Automodel's lines of a step and of an evaluation.

`step 7 | epoch 0 | loss 2.1034 | grad_norm 1.2031 | lr 1.00e-05 | mem 33.95 GiB | tps 4211.05(526.38/gpu) |
num_label_tokens 4040`: the step time is missing, but follows from the batch. Recipes differ in their fields, and old
versions log only the tokens of all GPUs, whose number is unknown. `[val] name "default" | step 9 | epoch 0 | loss
2.2500 | lr 1.00e-05 | num_label_tokens 64`. Steps count from 0. Source: nemo-automodel 0.5.0 to 0.7.0 (PyPI),
nemo_automodel/recipes/llm/train_ft.py (log_train_metrics, log_val_metrics); for other recipes, lines in public logs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite

from chartgen.metrics.read.events import Event, Mark, Setting, Step
from chartgen.metrics.read.prefix import Prefix, line_time
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.forms import NUMBER

_STEP = re.compile(rb"\bstep (\d{1,18}) \| epoch \d+ \| ")
_FIELD = re.compile(rb"(loss|grad_norm|lr|mem):? (%s)(?: GiB)?" % NUMBER)
_SPEED = re.compile(rb"tps (%s)\((%s)/gpu\)" % (NUMBER, NUMBER))
_NAMES = {b"loss": "loss", b"grad_norm": "gradient", b"lr": "rate", b"mem": "memory"}
_EVALUATION = re.compile(rb'\[val\] name "[^"]{0,200}" \| step (\d{1,18}) \| epoch \d+ \| loss (%s) \|' % NUMBER)
_GIB = 1024**3 / 1e9


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    return Reader(read_automodel)


def read_automodel(line: bytes, prefix: Prefix) -> Sequence[Event]:
    """Return the step of a line, and the number of GPUs, which follows from its two speeds; or the evaluation."""
    if evaluation := _EVALUATION.search(line):
        when = line_time(prefix, line, evaluation.start())
        return (Mark("eval", when, str(float(evaluation[2])), step=int(evaluation[1])),)
    match = _STEP.search(line)
    if match is None:
        return ()
    values, gpus = dict[str, float](), tuple[Setting, ...]()
    for text in line[match.end() :].split(b" | "):
        if field := _FIELD.fullmatch(text.strip()):
            values[_NAMES[field[1]]] = float(field[2])
        elif speed := _SPEED.fullmatch(text.strip()):
            values["tokens"], gpus = float(speed[2]), _gpus(float(speed[1]), float(speed[2]))
    if "memory" in values:
        values["memory"] *= _GIB
    when = line_time(prefix, line, match.start())
    return (Step(int(match[1]), when, values), *gpus) if "loss" in values else ()


def _gpus(speed: float, own: float) -> tuple[Setting, ...]:
    return (Setting("world_size", str(round(speed / own))),) if own > 0 and isfinite(speed / own) else ()
