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

from chartgen.metrics.read.events import Event, Mark, Step
from chartgen.metrics.read.prefix import Prefix, Prefixes, epoch_seconds
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.columns import (
    NUMBER,
    STEP,
    ColumnReader,
    Columns,
    LineField,
    LineTable,
    steps_of,
)

_HEAD = rb"(?:\[(\d{4}-\d\d-\d\d \d\d:\d\d):(\d\d(?:\.\d+)?)\] +)?iteration +(%s)/ *(%s|infinity) *$" % (STEP, STEP)
_BEHIND = re.compile(_HEAD)
_ALONE = re.compile(rb"(?m)^ *" + _HEAD)
# A value, and the text behind it: some forks add their own mean after a slash, and GPT-NeoX a unit: 55.2TFLOPS.
_VALUE = re.compile(rb" *([^ /\nT]+)([^/\n]*)(/[^\n]*)?")
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
    return MegatronReader().reader


class MegatronReader(ColumnReader):
    """Reads fields between bars; of a truncated line, only the complete ones."""

    def learn(self, line: bytes) -> LineTable | None:
        """Return the form of a line."""
        pieces = line.split(b"|")
        at = next((at for at, piece in enumerate(pieces[:-1]) if _BEHIND.search(piece)), None)
        if at is None:
            return None
        fields = [LineField(at, b"", b"", "head")]
        for index, piece in enumerate(pieces[at + 1 : -1], at + 1):
            native, colon, text = piece.partition(b":")
            name, value = _FIELDS.get(native.strip(), ""), _VALUE.match(text)
            if not value or name in {field.name for field in fields}:
                name = ""
            tail = value[2] if name and value and value[2].strip() else b""
            fields.append(LineField(index, native + colon, tail, name))
        timed = any(field.name in _TIMES for field in fields)
        return LineTable(b"|", len(pieces), tuple(fields)) if timed else None

    def steps(self, columns: Columns, prefixes: Prefixes) -> Sequence[Event]:
        """Return the steps of some lines."""
        heads = columns.pop("head")
        rows = (_ALONE if len(heads) > 1 else _BEHIND).findall(b"\n".join(heads))
        if len(rows) != len(heads):
            return ()
        minutes, seconds, numbers, planned = zip(*rows, strict=True)
        most = next((int(steps) for steps in reversed(planned) if steps != b"infinity" and int(steps)), 0)
        values = {name: _plain(column) for name, column in columns.items()}
        steps = steps_of(array("q", map(int, numbers)), prefixes.when or epoch_seconds(minutes, seconds), values, most)
        if steps and "milliseconds" in steps.columns:
            steps.columns["seconds"] = array("d", [value / 1000 for value in steps.columns.pop("milliseconds")])
        return (steps,) if steps else ()

    def other(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Return the memory or the evaluation of a line."""
        if match := _EVALUATED.search(line):
            return (Mark("eval", prefix.when, str(float(match[2])), step=int(match[1])),)
        match = _MEMORY.search(line)
        most = _MOST.search(line, match.end()) if match else None
        return (Step(int(match[1]), prefix.when, {"memory": float(most[1]) * _MIB}),) if match and most else ()


def _plain(column: Sequence[bytes]) -> Sequence[bytes]:
    """Return a column without the means after slashes."""
    return [text.partition(b"/")[0] for text in column] if b"/" in column[0] else column
