"""NeMo 1 and 2: progress, and the list of all step times that NeMo 1 writes at the end.

- NeMo 1 draws a bar; its updates are separated by carriage returns, and each step may be drawn several times:
  `Epoch 0: :  47%|...| 7/15 [06:19<07:13, reduced_train_loss=11.50, global_step=5.000, train_step_timing in s=49.50]`
- At its end: `[NeMo I 2025-03-10 16:24:43 perf_metrics_utils:42] train_step_timing in s: [7.13, 7.12]`, rounded to two
  digits, from the oldest TensorBoard file in the run's directory.
- NeMo 2 prints names in any order; with a log interval above 1 all but global_step are means:
  `Training epoch 0, iteration 97/99 | lr: 1.469e-05 | global_step: 97 | train_step_timing in s: 12.22`

Source: NVIDIA/NeMo @ 8cfedd7, nemo/collections/common/parts/perf_metrics_utils.py and
nemo/lightning/pytorch/callbacks/progress_printer.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chartgen.metrics.events import Event, Step, Timings
from chartgen.metrics.prefix import Prefix, written
from chartgen.metrics.readers import Reader
from chartgen.metrics.readers.pairs import values_of

_LIST = re.compile(rb"train_step_timing in s: \[([^\]]*)\]")
_LINE = re.compile(rb"Training epoch \d+, iteration (\d+)/(\d+) \|")


def open_reader() -> Reader:
    """Give the reader of a log's lines."""
    return Reader(read)


def read(line: bytes, prefix: Prefix) -> Sequence[Event]:
    """Give the step of a line, or the step times of a whole run."""
    if b"timing in s=" in line:
        return _bar(line, prefix)
    if match := _LINE.search(line):
        values = values_of(_numbers(line[match.end() :].decode(errors="replace")))
        return (Step(int(match[1]), prefix.when, values, int(match[2]) + 1),) if "seconds" in values else ()
    if match := _LIST.search(line):
        seconds = [float(item) for item in match[1].split(b",") if item.strip()]
        when = written(prefix, line)
        return (Timings(seconds, when),)
    return ()


def _bar(line: bytes, prefix: Prefix) -> Sequence[Event]:
    start, end = line.rfind(b"["), line.rfind(b"]")
    if start > end:  # cut off: its last number may be, too
        return ()
    parts = line[start:end].decode(errors="replace").split(", ")
    pairs = dict([part.split("=", 1) for part in parts if "=" in part])
    number = pairs.pop("global_step", None)
    return (Step(int(float(number)), prefix.when, values_of(pairs.items())),) if number else ()


def _numbers(text: str) -> Iterator[tuple[str, float]]:
    for part in text.split("|"):
        name, _, value = part.partition(":")
        try:
            yield name.strip(), float(value)
        except ValueError:
            continue  # cut off, or another rank's text behind it
