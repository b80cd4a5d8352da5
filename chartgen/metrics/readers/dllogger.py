"""NVIDIA DLLogger's lines: `DLLL {"timestamp": "1727486904.618568", "step": 0, "data": {...}}`.

The line with the step PARAMETER holds the configuration, flattened: `cfg/num_layers`. Source: NVIDIA/dllogger,
dllogger/logger.py (JSONStreamBackend); NVIDIA/NeMo @ 8cfedd7, nemo/utils/loggers/dllogger.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isnan
from typing import Any

from chartgen.metrics.events import NEVER, Event, Setting, Start, Step
from chartgen.metrics.prefix import Prefix
from chartgen.metrics.readers import Reader
from chartgen.metrics.readers.pairs import values_of

_CONFIG = "PARAMETER"
# What stands behind the object, another rank's line for example, is not looked at.
_decode = json.JSONDecoder().raw_decode


def open_reader() -> Reader:
    """Give the reader of a log's lines."""
    return Reader(read)


def read(line: bytes, prefix: Prefix) -> Sequence[Event]:
    """Give the step or the configuration of a line; a line that was cut off gives nothing."""
    text = line.decode(errors="replace")
    try:
        record, _ = _decode(text, text.index("{", prefix.size))
    except json.JSONDecodeError:
        return ()
    step, data = record.get("step"), record.get("data") or {}
    when = float(record.get("timestamp", NEVER)) if isnan(prefix.when) else prefix.when
    if step == _CONFIG:
        return (Start(when), *(Setting(name.removeprefix("cfg/"), _text(value)) for name, value in data.items()))
    values = values_of(data.items()) if isinstance(step, int) else {}
    return (Step(step, when, values),) if values else ()


def _text(value: Any) -> str:
    return "None" if value is None else str(value)
