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

from chartgen.metrics.read.clock import epoch_seconds, minute_of
from chartgen.metrics.read.events import NEVER, Event, Mark, Step
from chartgen.metrics.read.prefix import Lines, Prefix
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.columns import NUMBER, STEP, Layout, Layouts, steps_of

_HEAD = rb"(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d):(\d\d(?:\.\d+)?)\] +)?iteration +(%s)/ *(%s|infinity) \|" % (STEP, STEP)
_NUMBER = re.compile(_HEAD)
_NOTHING = re.compile(rb"(?!)")
_MEMORY = re.compile(rb"\(after (\d{1,18}) iterations\) memory \(MB\)")
_MOST = re.compile(rb"max allocated: ([\d.]+)")
_EVALUATED = re.compile(rb"validation loss at iteration (\d{1,18})\b[^|]{0,100}\| lm loss value: (%s) \|" % NUMBER)
_TIMES = ("milliseconds", "seconds")
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
    layouts = Layouts(_learn)

    def read_many(lines: Lines) -> Sequence[Event]:
        columns = layouts.columns(lines)
        return _steps(columns, lines.when) if columns else ()

    return Reader(MegatronReader().read, read_many)


class MegatronReader:
    """Keeps the layout of the previous line, which most lines share, so that one expression reads a whole line."""

    def __init__(self) -> None:
        self._pattern, self._names = _NOTHING, tuple[str, ...]()

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Return the step of a line; for a truncated line, only the complete fields."""
        match = self._pattern.search(line)
        if match is None:
            head = _NUMBER.search(line)
            if head is None:
                return _other(line, prefix)
            pattern, self._names = _fields(line[head.end() : line.rfind(b"|") + 1])
            self._pattern = re.compile(pattern)
            match = self._pattern.search(line)
        if match is None or not {*_TIMES} & {*self._names}:
            return ()
        minute, seconds, number, planned, *texts = match.groups()
        values = dict(zip(self._names, map(float, texts), strict=True))
        if "milliseconds" in values:
            values["seconds"] = values.pop("milliseconds") / 1000
        when = prefix.when
        if isnan(when):
            when = minute_of(minute) + float(seconds) if minute else NEVER
        return (Step(int(number), when, values, _planned(planned)),)


def _learn(line: bytes) -> Layout | None:
    """Learn the layout of a line without a prefix, since a prefix contains another time or process."""
    head = re.match(rb" ?" + _HEAD, line)
    if head is None:
        return None
    pattern, names = _fields(line[head.end() : line.rfind(b"|") + 1])
    whole = re.compile(rb"(?m)^ ?%s *$" % pattern)
    return (whole, ("minute", "second", "number", "planned", *names)) if {*_TIMES} & {*names} else None


def _steps(columns: dict[str, Sequence[bytes]], logged: Sequence[float] | None) -> Sequence[Event]:
    minutes, seconds = columns.pop("minute"), columns.pop("second")
    when = epoch_seconds(minutes, seconds) if logged is None else logged
    numbers = array("q", map(int, columns.pop("number")))
    planned = next(filter(None, map(_planned, reversed(columns.pop("planned")))), 0)
    steps = steps_of(numbers, when, [*columns], [*columns.values()], planned)
    if steps is None:
        return ()
    if "milliseconds" in steps.columns:
        steps.columns["seconds"] = array("d", [value / 1000 for value in steps.columns.pop("milliseconds")])
    return (steps,)


def _planned(text: bytes) -> int:
    return 0 if text == b"infinity" else int(text)


def _fields(fields: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return the pattern of a line's fields, each of which ends in a bar, and the names of the fields to read."""
    pattern, names = _HEAD, list[str]()
    for field in fields.split(b"|")[:-1]:
        name, colon, _ = field.partition(b":")
        known = _FIELDS.get(name.strip())
        if known and known not in names:
            names.append(known)
            # some forks add their own mean after a slash, and GPT-NeoX a unit: 55.2TFLOPS
            pattern += re.escape(name + colon) + rb" *([^ |/\nT]+)[^|\n]*\|"
        else:
            pattern += re.escape(name) + rb"[^|\n]*\|"
    # the layout differs when the previous line was truncated and this one has more fields
    return pattern + rb"(?![^\n]*\|)", tuple(names)


def _other(line: bytes, prefix: Prefix) -> Sequence[Event]:
    """Return the memory or the evaluation of a line."""
    if match := _EVALUATED.search(line):
        return (Mark("eval", prefix.when, str(float(match[2])), step=int(match[1])),)
    match = _MEMORY.search(line)
    most = _MOST.search(line, match.end()) if match else None
    return (Step(int(match[1]), prefix.when, {"memory": float(most[1]) * _MIB}),) if match and most else ()
