"""Megatron-LM's line of an iteration, old and new, which Megatron-Bridge prints too.

` [2026-02-06 20:55:02.918469] iteration      292/95367431 | consumed samples:         9344 | elapsed time per
iteration (ms): 3075.7 | throughput per GPU (TFLOP/s/GPU): 478.0 | energy per GPU (J/iter/GPU): 1992.5 | ... |`

Source: NVIDIA/Megatron-LM @ d98e8a6, megatron/training/training.py (training_log), and report_memory in
megatron/training/utils/common_utils.py. Old versions omit the time, and the loss of a skipped iteration. Forks use
other names: `elapsed time per iteration (s)`, `TFLOPs`, `tokens per gpu per second (tgs)`, `lm-loss`, `approx flops per
GPU` (bigscience-workshop/Megatron-DeepSpeed and deepspeedai/Megatron-DeepSpeed, megatron/training.py;
EleutherAI/gpt-neox, megatron/logging.py). An evaluation is
` validation loss at iteration 100 | lm loss value: 8.581882E+00 | lm loss PPL: 5.334132E+03 | `.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from math import isnan

from chartgen.metrics.read.events import Event, Mark, Step
from chartgen.metrics.read.prefix import Prefix
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.forms import NUMBER, Columns, Form, Places, Times, steps_of

_HEAD = re.compile(
    rb"(?:\[(?P<minute>\d{4}-\d\d-\d\d \d\d:\d\d):(?P<second>\d\d(?:\.\d+)?)\] +)?"
    rb"iteration +(?P<step>\d{1,18})/ *(?P<planned>\d{1,18}|infinity) *\|"
)
# Behind a value, some forks add their own mean after a slash, and GPT-NeoX a unit: 55.2TFLOPS.
_FIELD = re.compile(rb" *([^|:]+?) *: *([^ /T|]+)[^|]*\|")
_FIELD_OF_2019 = re.compile(rb" *([^|:]+?)(?: *: *| (?=[\d.]+E))([^ /T|]+)[^|]*\|")  # lm loss 9.5E+00
_MEMORY = re.compile(rb"\bafter (\d{1,18}) iterations\)? memory \(MB\)")
_MOST = re.compile(rb"max allocated: ([\d.]+)")
_EVALUATED = re.compile(rb"validation loss at iteration (\d{1,18})\b[^|]{0,100}\| lm loss value: (%s) \|" % NUMBER)
_MIB = 1024 * 1024 / 1e9
_FIELDS = {
    b"consumed samples": "samples",
    b"elapsed time per iteration (ms)": "milliseconds",
    b"elapsed time per iteration (s)": "seconds",
    b"throughput per GPU (TFLOP/s/GPU)": "tflops",
    b"TFLOPs": "tflops",
    b"approx flops per GPU": "tflops",
    b"tokens per gpu per second (tgs)": "tokens",
    b"tokens per GPU (tokens/s/GPU)": "tokens",
    b"actual seqlen": "sequence",
    b"reserve_length": "kept",
    b"learning rate": "rate",
    b"energy per GPU (J/iter/GPU)": "energy",
    b"global batch size": "batch",
    b"lm loss": "loss",
    b"lm-loss": "loss",
    b"lm_loss": "loss",
    b"loss": "loss",
    b"grad norm": "gradient",
    b"number of skipped iterations": "skipped",
    b"number of nan iterations": "nans",
}


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    form = Form(_places, _steps)

    def read(line: bytes, prefix: Prefix) -> Sequence[Event]:
        return form.read(line, prefix) or _other(line, prefix)

    return Reader(read, form)


def _places(line: bytes, prefix: Prefix) -> Places:
    """Return the places of the values between bars; of a truncated line, only the complete ones."""
    head = _HEAD.search(line, prefix.size)
    if head is None:
        return {}
    own = ("minute", "second") if head["minute"] and isnan(prefix.when) else ()
    places = {name: head.span(name) for name in ("step", "planned", *own)}
    form = _FIELD_OF_2019 if b"| lm loss " in line else _FIELD
    for field in form.finditer(line, head.end()):
        if name := _FIELDS.get(field[1]):
            places.setdefault(name, field.span(2))
    return places if places.keys() & {"milliseconds", "seconds"} else {}


def _steps(columns: Columns, when: Times, _rank: bytes) -> Sequence[Event]:
    numbers, planned = array("q", map(int, columns.pop("step"))), columns.pop("planned")
    most = next((int(steps) for steps in reversed(planned) if steps != b"infinity" and int(steps)), 0)
    steps = steps_of(numbers, when, columns, most)
    for each in steps:
        if "milliseconds" in each.columns:
            each.columns["seconds"] = array("d", [value / 1000 for value in each.columns.pop("milliseconds")])
    return steps


def _other(line: bytes, prefix: Prefix) -> Sequence[Event]:
    """Return the memory or the evaluation of a line."""
    if match := _EVALUATED.search(line):
        return (Mark("eval", prefix.when, str(float(match[2])), step=int(match[1])),)
    match = _MEMORY.search(line)
    most = _MOST.search(line, match.end()) if match else None
    return (Step(int(match[1]), prefix.when, {"memory": float(most[1]) * _MIB}),) if match and most else ()
