"""torchtitan's line of a step.

`[titan] 2026-02-11 00:54:17,768 - root - INFO - step:  2  loss: 12.85991  grad_norm:  2.1345  memory: 19.45GiB(30.39%)
tps: 5,941  tflops: 56.37  mfu: 18.91%`, on one line, with or without colours. tps is per GPU; the step time is missing.
Every rank logs. Those of a pipeline's other stages do not know the loss, and log a negative number in its place: they
count when no rank with the loss is in the log.
Source: torchtitan 0.2.2 and 0.3.0 (PyPI), torchtitan/components/metrics.py (MetricsProcessor.log and log_validation),
train.py and trainer.py (pp_forward_backward_step).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chartgen.metrics.read.events import Event, Mark, Step
from chartgen.metrics.read.prefix import Prefix, line_time
from chartgen.metrics.read.readers import Reader

_COLOUR = re.compile(rb"\x1b\[[\d;]{0,20}m")
# a fork writes the planned steps, too: `step: 640/644 = 99.3789%`
_STEP = re.compile(rb"\b(validate )?step: {0,20}(\d{1,18})(?:/(\d{1,18}) = [\d.]{1,20}%)? ")
_FIELD = re.compile(rb"\b(\w{1,30}): {1,20}([-+\d.,eE]{1,40}|-?nan|-?inf)")
_NAMES = {
    b"loss": "loss",
    b"grad_norm": "gradient",
    b"memory": "memory",
    b"tps": "tokens",
    b"wps": "tokens",
    b"tflops": "tflops",
    b"mfu": "mfu",
    b"lr": "rate",
}
_GIB = 1024**3 / 1e9


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    return Reader(read_torchtitan)


def read_torchtitan(line: bytes, prefix: Prefix) -> Sequence[Event]:
    """Return the step, or the evaluation, of a line."""
    text = _COLOUR.sub(b"", line)
    match = _STEP.search(text)
    if match is None:
        return ()
    fields = _FIELD.findall(text, match.end())
    values = {_NAMES[name]: float(value.replace(b",", b"")) for name, value in fields if name in _NAMES}
    when = line_time(prefix, text, match.start())
    if values.get("loss", 0) < 0:
        del values["loss"]
    if match[1]:
        return (Mark("eval", when, str(values["loss"]), step=int(match[2])),) if "loss" in values else ()
    if "memory" in values:
        values["memory"] *= _GIB
    return (Step(int(match[2]), when, values, int(match[3] or 0)),) if values.keys() & {"loss", "tokens"} else ()
