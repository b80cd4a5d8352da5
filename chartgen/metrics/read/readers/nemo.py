"""NeMo 1 and 2: progress, and the list of all step times that NeMo 1 writes at the end.

- NeMo 1 draws a bar. Carriage returns separate its updates, and it may draw a step several times. Some programs based
  on it do not show the time:
  `Epoch 0: :  47%|...| 7/15 [06:19<07:13, reduced_train_loss=11.50, global_step=5.000, train_step_timing in s=49.50]`
- At its end, it prints `[NeMo I 2025-03-10 16:24:43 perf_metrics_utils:42] train_step_timing in s: [7.13, 7.12]`,
  rounded to two digits, from the oldest TensorBoard file in the run's directory.
- NeMo 2 prints names in any order; with a log interval above 1, all except global_step are means. The iteration is that
  of the epoch; the number after the slash is that of the run or, in a run without max_steps, of the epoch:
  `Training epoch 0, iteration 97/99 | lr: 1.469e-05 | global_step: 97 | train_step_timing in s: 12.22`

Source: NVIDIA/NeMo @ 8cfedd7, nemo/collections/common/parts/perf_metrics_utils.py and
nemo/lightning/pytorch/callbacks/progress_printer.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chartgen.metrics.read.events import Event, Step, Timings
from chartgen.metrics.read.prefix import Prefix, line_time
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.pairs import Epochs, translate_values

_LIST = b"train_step_timing in s: ["
_LINE = re.compile(rb"Training epoch (\d{1,9}), iteration (\d+)/(\d+) \|")


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    epochs = Epochs()
    return Reader(lambda line, prefix: read_nemo(line, prefix, epochs))


def read_nemo(line: bytes, prefix: Prefix, epochs: Epochs) -> Sequence[Event]:
    """Return the step of a line, or the step times of a whole run."""
    if b"global_step=" in line:
        return _bar(line, prefix)
    if match := _LINE.search(line):
        return _line(line, match, prefix.when, epochs)
    begin, end = line.find(_LIST), line.rfind(b"]")
    if 0 <= begin < end:
        seconds = [float(item) for item in line[begin + len(_LIST) : end].split(b",") if item.strip()]
        when = line_time(prefix, line)
        return (Timings(seconds, when),)
    return ()


def _line(line: bytes, match: re.Match[bytes], when: float, epochs: Epochs) -> Sequence[Event]:
    epoch, iteration, last = map(int, match.groups())
    pairs = dict(_numbers(line[match.end() :].decode(errors="replace")))
    number = int(pairs["global_step"]) if "global_step" in pairs else epochs.number(epoch, iteration)
    values = translate_values(pairs.items())
    return (Step(number, when, values, last + 1),) if values.keys() & {"seconds", "loss"} else ()


def _bar(line: bytes, prefix: Prefix) -> Sequence[Event]:
    at = line.find(b"global_step=")
    start, end = line.rfind(b"[", 0, at), line.find(b"]", at)
    if start < 0 or end < 0:  # truncated: its last number may be, too
        return ()
    parts = line[start:end].decode(errors="replace").split(", ")
    pairs = {name.strip(): value for name, sign, value in (part.partition("=") for part in parts) if sign}
    number = pairs.pop("global_step", None)
    return (Step(int(float(number)), prefix.when, translate_values(pairs.items())),) if number else ()


def _numbers(text: str) -> Iterator[tuple[str, float]]:
    for part in text.split("|"):
        name, _, value = part.partition(":")
        try:
            yield name.strip(), float(value)
        except ValueError:
            continue  # truncated, or followed by another rank's text
